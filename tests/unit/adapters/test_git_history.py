"""Which commits hooks told of, from where the head of a worktree has been."""

from herdbook.adapters.git.event_folders import HeadMove, match_commits
from herdbook.ports.world.git_history import CommitFacts
from tests.cases import for_each


def move(at: int, name: str, *, made: bool = True) -> HeadMove:
    """A move of the head to the commit of this name."""
    return HeadMove(at, CommitFacts(name, ""), made)


@for_each(
    ("moves", "seconds", "told"),
    [
        ([move(5, "b"), move(3, "a")], [3, 5], ["a", "b"]),
        ([move(5, "b"), move(5, "a")], [5, 5], ["a", "b"]),
        ([move(5, "b"), move(5, "unhooked")], [5], ["b"]),
        ([move(5, "b"), move(4, "a")], [5, 5], ["a", "b"]),
        ([move(9, "later"), move(5, "a")], [6], ["a"]),
        ([move(6, "elsewhere", made=False), move(5, "a")], [6], ["a"]),
        ([move(9, "later")], [5], [None]),
        ([], [5], [None]),
    ],
)
def test_each_hook_told_of_the_last_commit_that_is_left_before_it(
    moves: list[HeadMove], seconds: list[int], told: list[str | None]
) -> None:
    """Also in one second, a second later, and where the head has moved on since."""
    found = match_commits(moves, seconds)
    assert [None if each is None else each.commit_hash for each in found] == told
