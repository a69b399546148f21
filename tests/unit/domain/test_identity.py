"""The laws of repositories', worktrees' and agents' identity."""

import re
from random import Random
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.identity import (
    GitFacts,
    normalise_origin,
    repository_id,
    worktree_id,
)
from tests.cases import for_each

HERE = GitFacts(
    origin_url=None,
    root_commits=(),
    common_dir="/srv/app/.git",
    git_dir="/srv/app/.git",
    machine_id="m1",
    top_level="/srv/app",
    branch="main",
    is_main=True,
    is_bare=False,
    pinned_repository_id=None,
    pinned_worktree_id=None,
)

WORDS = st.from_regex(r"[a-z][a-z0-9-]{0,11}", fullmatch=True)
HOSTS = st.tuples(WORDS, st.sampled_from(["com", "org", "example"])).map(".".join)
COMPONENTS = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_ .-]{0,10}[A-Za-z0-9_]", fullmatch=True)
PATHS = st.lists(COMPONENTS, min_size=1, max_size=4).map("/".join)
REMOTES = st.tuples(HOSTS, PATHS)
SECRETS = st.from_regex(r"S3CRET[a-zA-Z0-9]{6}", fullmatch=True)
NOISE = st.text(st.sampled_from("ab1:/@#?[]~.%\\ -"), max_size=30)
URLS = NOISE | st.builds(
    "{}{}".format, st.sampled_from(["https://", "ssh://", "file://", "x::y://"]), NOISE
)
PATH_TEXT = st.text(st.characters(exclude_characters="\0"), min_size=1)
SHAS = st.text("0123456789abcdef", min_size=40, max_size=40)


def spellings(host: str, path: str) -> list[str]:
    """Ways people write one remote."""
    quoted = quote(path)
    return [
        f"https://{host}/{quoted}",
        f"https://{host}/{quoted}.git",
        f"https://{host}/{quoted}.git/",
        f"https://{host}//{quoted}//",
        f"https://{host.upper()}/{quoted}",
        f"HTTPS://{host}:443/{quoted}",
        f"https://{host}:/{quoted}",
        f"https://me@{host}/{quoted}",
        f"https://me:pass@{host}/{quoted}.git",
        f"https://{host}/{quoted}?token=abc#x",
        f"http://{host}:80/{quoted}",
        f"git://{host}:9418/{quoted}",
        f"ssh://git@{host}/{quoted}.git",
        f"ssh://git@{host}:22/{quoted}",
        f"ssh://git@{host}/~/{quoted}",
        f"git+ssh://{host}/{quoted}",
        f"git@{host}:{path}.git",
        f"git@{host}:{path}",
        f"git@{host}:/{path}/",
        f"git@{host}:~/{path}",
        f"{host}:{path}",
        f"  https://{host}/{quoted}\n",
    ]


@given(REMOTES)
@example(("example.org", "@scope/a@b"))
def test_all_spellings_of_a_remote_are_one(remote: tuple[str, str]) -> None:
    """Scheme, user, usual port, case of the host, `.git` and slashes make no difference."""
    host, path = remote
    # `a.git` and `a.git.git` are two repositories, and each has its own spellings.
    path = path.removesuffix(".git")
    assert {normalise_origin(url) for url in spellings(host, path)} == {f"{host}/{path}"}


@given(PATHS)
def test_a_path_is_spelt_with_or_without_its_scheme(path: str) -> None:
    """A local path and its `file://` URL are one, and stay a path."""
    path = path.removesuffix(".git")
    urls = [f"/{path}", f"/{path}.git", f"/{path}/.git/", f"file:///{quote(path)}.git"]
    assert {normalise_origin(url) for url in urls} == {f"/{path}"}


@given(REMOTES, REMOTES, st.data())
def test_different_remotes_stay_different(
    one: tuple[str, str], other: tuple[str, str], data: st.DataObject
) -> None:
    """Two spellings are equal only when host and path are."""
    first, second = (
        normalise_origin(data.draw(st.sampled_from(spellings(host, path.removesuffix(".git")))))
        for host, path in (one, other)
    )
    same = (one[0], one[1].removesuffix(".git")) == (other[0], other[1].removesuffix(".git"))
    assert (first == second) == same


@for_each(
    ("one", "other"),
    [
        ("https://h.org/a/b", "https://h.org/a/B"),
        ("https://h.org/a/b", "https://h.org:8443/a/b"),
        ("https://h.org:22/a/b", "ssh://h.org:22/a/b"),
        ("https://h.org/a.git", "https://h.org/a.git.git"),
        ("https://h.org/a", "h.org/a"),
        ("https://h.org/a", "/h.org/a"),
        ("https://h.org/%FE", "https://h.org/%FF"),
        ("ssh://[::1]/a", "ssh://[::2]/a"),
        ("codecommit::us-east-1://a", "codecommit::us-west-1://a"),
        ("../a", "a"),
    ],
)
def test_what_may_be_two_places_is_two(one: str, other: str) -> None:
    """Only differences known to mean nothing are dropped."""
    assert normalise_origin(one) != normalise_origin(other)


@for_each(
    ("url", "origin"),
    [
        ("ssh://git@[::1]:2222/a.git", "[::1]:2222/a"),
        ("git@[::1]:a.git", "[::1]/a"),
        ("codecommit::us-east-1://profile@Repo", "codecommit::us-east-1://repo"),
        ("git@h.org:a@b.git", "h.org/a@b"),
        ("vendor/a.git", "./vendor/a"),
        ("../a.git", "../a"),
        ("/srv/a:b@c:d", "/srv/a:b@c:d"),
        ("", ""),
        ("  ", ""),
    ],
)
def test_a_rare_spelling_is_read_as_git_reads_it(url: str, origin: str) -> None:
    """Addresses in brackets, helpers, colons and at signs in odd places come out right."""
    assert normalise_origin(url) == origin


@given(REMOTES, SECRETS, st.sampled_from(["", "@", ":", "/", "?", "#", "%40", " "]), st.data())
def test_no_credential_survives(
    remote: tuple[str, str], secret: str, odd: str, data: st.DataObject
) -> None:
    """Neither a password, a token as user, nor a query is found in an origin or an id.

    Passwords with characters that should have been escaped are dropped whole like any other.
    """
    host, path = remote
    password = f"{secret}{odd}{secret}"
    user = data.draw(st.sampled_from(["", "me", "oauth2"]))
    url = data.draw(
        st.sampled_from(
            [
                f"https://{user}:{password}@{host}/{quote(path)}",
                f"https://{quote(password, safe='')}@{host}/{quote(path)}",
                f"https://{host}/{quote(path)}?access_token={quote(secret)}",
                f"https://{user}:{secret}",
                f"ssh://{user}:{password}@{host}:2222/{quote(path)}",
                f"helper::x://{user}:{password}@{host}/{quote(path)}",
                f"u{user}:{password}@{host}:{path}",
            ]
        )
    )
    facts = HERE._replace(origin_url=url)
    shown = f"{normalise_origin(url)} {repository_id(facts)} {worktree_id(facts)} {facts!r}"
    assert secret.lower() not in shown.lower()


@given(URLS | st.none(), st.lists(SHAS, max_size=2), PATH_TEXT, st.text())
@example("https://h.org/" + "x" * 100, [], "/a", "m")
@example("https://h.org/" + "x" * 39 + "-x", [], "/a", "m")
@example("https://h.org/\udcff", [], "/\udcff", "m")
def test_ids_are_short_and_plain(
    url: str | None, roots: list[str], folder: str, machine: str
) -> None:
    """Whatever git says, a repository's id is a slug with 12 hex digits and fits 64 bytes."""
    facts = HERE._replace(
        origin_url=url, root_commits=tuple(roots), common_dir=folder, machine_id=machine
    )
    assert re.fullmatch(r"(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{12}", repository_id(facts))


@given(PATH_TEXT, st.text())
def test_a_worktree_id_is_twelve_hex_digits(git_dir: str, machine: str) -> None:
    """Whatever the path or the machine's name, the id has one form."""
    facts = HERE._replace(git_dir=git_dir, machine_id=machine)
    assert re.fullmatch("[0-9a-f]{12}", worktree_id(facts))


@for_each(
    ("url", "slug"),
    [
        ("git@h.org:me/My_App.git", "my-app"),
        ("https://h.org/me/" + "long" * 20, "long" * 10),
        ("https://h.org/me/" + "x" * 39 + "-y", "x" * 39),
        ("https://h.org/me/日本", "repo"),
        (None, "repo"),
    ],
    ids=["words", "long", "cut at a dash", "no letters", "no origin"],
)
def test_the_slug_is_the_last_word_of_the_origin(url: str | None, slug: str) -> None:
    """A person can tell from the id which repository it is."""
    assert repository_id(HERE._replace(origin_url=url)).rpartition("-")[0] == slug


@given(REMOTES, st.data(), SHAS, SHAS)
def test_clones_of_one_remote_are_one_repository(
    remote: tuple[str, str], data: st.DataObject, root: str, other_root: str
) -> None:
    """With an origin, neither machine, path, history nor spelling changes the repository."""
    urls = st.sampled_from(spellings(*remote))
    one = HERE._replace(origin_url=data.draw(urls), root_commits=(root,))
    other = HERE._replace(
        origin_url=data.draw(urls),
        root_commits=(other_root,),
        common_dir="/elsewhere/.git",
        machine_id="m2",
    )
    assert repository_id(one) == repository_id(other)


@given(st.lists(SHAS, min_size=1, max_size=3, unique=True), st.randoms(use_true_random=False))
def test_copies_without_a_remote_are_known_by_their_first_commit(
    roots: list[str], random: Random
) -> None:
    """Without an origin the smallest root commit names the repository, wherever it lies."""
    shuffled = random.sample(roots, len(roots))
    one = HERE._replace(root_commits=tuple(roots))
    other = HERE._replace(root_commits=(*shuffled, "f" * 40), common_dir="/b/.git", machine_id="m2")
    assert repository_id(one) == repository_id(other)


@given(SHAS, SHAS)
def test_other_first_commits_are_other_repositories(root: str, other: str) -> None:
    """Without an origin, repositories differ exactly when their root commits do."""
    ids = {repository_id(HERE._replace(root_commits=(sha,))) for sha in (root, other)}
    assert len(ids) == len({root, other})


@pytest.mark.parametrize(
    "elsewhere",
    [HERE._replace(common_dir="/b/.git"), HERE._replace(machine_id="m2")],
    ids=["another folder", "another machine"],
)
def test_an_empty_repository_is_known_by_its_place(elsewhere: GitFacts) -> None:
    """Without origin and commits, the common directory and the machine name the repository."""
    assert repository_id(elsewhere) != repository_id(HERE)


def test_sources_of_an_id_never_meet() -> None:
    """An origin, a root commit and a path of the same text give three hashes."""
    origin = HERE._replace(origin_url="/x")
    root = HERE._replace(root_commits=("/x",))
    place = HERE._replace(machine_id="", common_dir="/x")
    assert len({repository_id(facts)[-12:] for facts in (origin, root, place)}) == 3


@given(PATH_TEXT, PATH_TEXT)
def test_worktrees_share_a_repository(git_dir: str, top_level: str) -> None:
    """What differs between worktrees of one repository does not change its id."""
    linked = HERE._replace(git_dir=git_dir, top_level=top_level, branch="other", is_main=False)
    assert repository_id(linked) == repository_id(HERE)


@given(st.tuples(PATH_TEXT, PATH_TEXT), st.tuples(PATH_TEXT, PATH_TEXT))
@example(("m", "1/a"), ("m1", "/a"))
def test_worktrees_differ_by_machine_and_git_directory(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    """Two worktrees have one id exactly when machine and own git directory are the same."""
    ids = {worktree_id(HERE._replace(machine_id=m, git_dir=d)) for m, d in (one, other)}
    assert len(ids) == len({one, other})


@given(st.none() | PATH_TEXT, st.none() | PATH_TEXT)
def test_a_moved_worktree_stays_itself(top_level: str | None, branch: str | None) -> None:
    """Neither the place of its files nor its branch changes a worktree's id."""
    moved = HERE._replace(top_level=top_level, branch=branch)
    assert worktree_id(moved) == worktree_id(HERE)


@given(URLS, st.lists(SHAS, max_size=2), PATH_TEXT)
def test_a_pin_outlives_every_change(url: str, roots: list[str], folder: str) -> None:
    """Once pinned, a new remote, a first commit or another place changes neither id."""
    pinned = HERE._replace(
        pinned_repository_id=repository_id(HERE),
        pinned_worktree_id=worktree_id(HERE),
        origin_url=url,
        root_commits=tuple(roots),
        common_dir=folder,
        git_dir=folder,
        machine_id="m2",
    )
    assert repository_id(pinned) == repository_id(HERE)
    assert worktree_id(pinned) == worktree_id(HERE)


@for_each("pin", ["", "..", "a/b", "a b", "a\n", "x" * 65, "é"])
def test_a_damaged_repository_pin_is_refused(pin: str) -> None:
    """A pin that is no id is an error, because another id would orphan what is kept."""
    with pytest.raises(InvalidValue):
        repository_id(HERE._replace(pinned_repository_id=pin))


@for_each("pin", ["", "0123456789a", "0123456789abc", "0123456789AB", "0123456789ab\n"])
def test_a_damaged_worktree_pin_is_refused(pin: str) -> None:
    """A pin that is not 12 hex digits is an error, because another id would orphan what is kept."""
    with pytest.raises(InvalidValue):
        worktree_id(HERE._replace(pinned_worktree_id=pin))
