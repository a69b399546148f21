"""What people may see of a store's URL."""

from herdbook.adapters.stores.urls import shown_url
from tests.cases import for_each


@for_each(
    ("url", "seen"),
    [
        ("lmdb:///src/app/work.lmdb", "lmdb:///src/app/work.lmdb"),
        ("memory://", "memory://"),
        ("postgresql://me:S3CRET@db.example/x", "postgresql://me@db.example/x"),
        ("postgresql://db.example:5433/x?schema=a", "postgresql://db.example:5433/x?schema=a"),
        ("postgres:///x?password=S3CRET&user=me", "postgres:///x?user=me"),
        ("postgresql:///?service=herd", "postgresql:///?service=herd"),
        ("postgresql://me:S3C@RET@db.example/x", "postgresql://me@db.example/x"),
        ("postgresql://[bad/x?password=S3CRET", "postgresql://…"),
        ("postgresql://db.example/x#S3CRET", "postgresql://db.example/x"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, seen: str) -> None:
    """Wherever in it the password was written; what can be opened again stays as it was."""
    assert shown_url(url) == seen
