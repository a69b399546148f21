"""Repositories as an attacker builds them, and a canary that tells when a program of theirs ran."""

import json
import os
import subprocess
import sys
from pathlib import Path

from herdbook.entrypoints.hooks import hook
from tests.e2e.conftest import Person

HOOK = Path(hook.__file__).resolve()

MISSING = "0123456789" * 4
"""The name of a commit that no repository has."""

HOOKS = ("post-checkout", "post-index-change", "pre-auto-gc", "reference-transaction")

SIGNED = """\
tree {tree}
parent {parent}
author somebody <somebody@example.com> 1700000000 +0000
committer somebody <somebody@example.com> 1700000000 +0000
gpgsig -----BEGIN PGP SIGNATURE-----
{blank}
 nobody has signed this
 -----END PGP SIGNATURE-----

signed, so that git would ask a program about it
"""


class Canary:
    """A log that an attacker's programs write their names to; it must stay empty."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def program(self, path: Path) -> Path:
        """Put a program there that writes its name to the log and fails."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {path.name} >>'{self._log}'\nexit 1\n")
        path.chmod(0o755)
        return path

    def ran(self) -> set[str]:
        """The names of the programs that ran since this was asked last."""
        if not self._log.exists():
            return set()
        names = set(self._log.read_text().split())
        self._log.unlink()
        return names


def make_promisor(git_dir: Path, program: Path) -> None:
    """Make a git directory a partial clone that runs a program to fetch its HEAD."""
    (git_dir / "config").write_text(
        "[core]\n\trepositoryformatversion = 1\n\tbare = false\n"
        "[extensions]\n\tpartialClone = evil\n"
        f'[remote "evil"]\n\tpromisor = true\n\turl = {git_dir}\n\tuploadpack = {program}\n'
    )
    (git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    (git_dir / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    (git_dir / "refs" / "heads" / "main").write_text(f"{MISSING}\n")


def embed_bare(folder: Path, canary: Canary) -> Path:
    """Make a folder look like a bare repository that runs `x.sh` when it is asked for its HEAD.

    All of it are ordinary files that a commit can hold.
    """
    folder.mkdir(parents=True)
    (folder / "objects").mkdir()
    (folder / "objects" / ".keep").touch()
    program = canary.program(folder / "x.sh")
    make_promisor(folder, program)
    text = (folder / "config").read_text()
    # Where it will be cloned to is not known yet, so the paths are those of whoever stands in it.
    text = text.replace(f"url = {folder}", "url = .").replace(str(program), "./x.sh")
    (folder / "config").write_text(text.replace("bare = false", "bare = true"))
    return folder


def publish_with_embedded_bare(person: Person, folder: Path, canary: Canary) -> Path:
    """A repository whose `docs/` looks like a bare repository, committed for everybody to clone."""
    person.repository(folder)
    embed_bare(folder / "docs", canary)
    person.git(folder, "add", "--all")
    person.git(folder, "commit", "--quiet", "--message=docs")
    assert "docs/refs/heads/main" in person.git(folder, "ls-files")
    return folder


def traps(programs: Path, canary: Canary) -> str:
    """Settings that make git run a program on almost any occasion."""

    def run(name: str) -> str:
        return f'"{canary.program(programs / name)}"'

    for name in HOOKS:
        canary.program(programs / "hooks" / name)
    return f"""
[core]
	fsmonitor = {run("fsmonitor")}
	hooksPath = "{programs / "hooks"}"
	pager = {run("pager")}
	sshCommand = {run("ssh")}
	askPass = {run("askpass")}
	editor = {run("editor")}
	gitProxy = {run("proxy")}
	alternateRefsCommand = {run("alternates")}
[pager]
	status = {run("pager-status")}
	log = true
	diff = true
	config = true
[diff]
	external = {run("external")}
	submodule = log
[diff "trap"]
	command = {run("diff-command")}
	textconv = {run("textconv")}
[filter "trap"]
	clean = {run("clean")}
	smudge = {run("smudge")}
	required = true
[filter "process"]
	process = {run("process")}
	required = true
[credential]
	helper = {run("credential")}
[gpg]
	program = {run("gpg")}
[gpg "ssh"]
	program = {run("gpg-ssh")}
	defaultKeyCommand = {run("gpg-key")}
[log]
	showSignature = true
[status]
	submoduleSummary = true
[submodule]
	recurse = true
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[protocol "file"]
	allow = always
[alias]
	rev-parse = !{run("alias").strip('"')}
[interactive]
	diffFilter = {run("diff-filter")}
"""


def set_traps(person: Person, repository: Path, canary: Canary) -> None:
    """Let a repository's own config run programs, whatever git is asked about its files.

    Its HEAD is signed, its files go through filters and differ in time from what the index knows,
    and it holds a repository of the same kind.
    """
    programs = repository / ".git" / "programs"
    (repository / ".gitattributes").write_text(
        "*.txt filter=trap diff=trap\n*.bin filter=process diff=trap\n"
    )
    for name in ("a.txt", "b.bin"):
        (repository / name).write_text(f"{name}\n")
    part = person.repository(repository / "part")
    (part / "c.txt").write_text("c\n")
    (part / ".gitattributes").write_text("*.txt filter=trap\n")
    person.git(part, "add", "--all")
    person.git(part, "commit", "--quiet", "--message=part")
    person.git(repository, "add", "--all")
    person.git(repository, "commit", "--quiet", "--message=files")
    _sign(person, repository)
    for each in (repository, part):
        with (each / ".git" / "config").open("a") as config:
            config.write(traps(programs, canary))
    disturb(repository)
    disturb(part)


def disturb(folder: Path) -> None:
    """Let git think that the files of a worktree may have changed."""
    for name in ("a.txt", "b.bin", "c.txt"):
        if (folder / name).exists():
            os.utime(folder / name, (1, 1))


def _sign(person: Person, repository: Path) -> None:
    """Put a commit with a signature, which nobody made, on top."""
    tree, parent = person.git(repository, "rev-parse", "HEAD^{tree}", "HEAD").split()
    signed = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--stdin"],  # noqa: S607
        cwd=repository,
        env=person.variables,
        input=SIGNED.format(tree=tree, parent=parent, blank=" "),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    person.git(repository, "update-ref", "HEAD", signed)


def leave_event(person: Person, folder: Path, event: str = "PostToolUse", **told: object) -> None:
    """Let an agent's hook run in a folder, as its host does."""
    subprocess.run(
        [sys.executable, "-I", "-S", HOOK, event],
        cwd=folder,
        env={**person.variables, "HERDBOOK_AGENT": "otter"},
        input=json.dumps({"session_id": "s1", "hook_event_name": event, **told}),
        check=True,
        text=True,
    )
