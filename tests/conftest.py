"""What holds for every test: none may be skipped, how hard Hypothesis looks, and `--quick`."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from herdbook.adapters.user_state import backup_schedule
from tests.cases import check_fixtures
from tests.postgres_server import TEMPLATES, running_postgres

REFERENCE = "memory"
"""The engine that a quick run never leaves out: it is the reference for the others."""

# Examples are the same in every run of `ci`, so a red build is the change's doing and not luck's;
# `soak` is where new ones are looked for. Time decides nothing: machines that test are busy.
settings.register_profile(
    "ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "soak",
    max_examples=5_000,
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever runs tests in the background of a shell hands this on to every program they start,
    # and those that are to end by Ctrl-C would never end.
    signal.signal(signal.SIGINT, signal.default_int_handler)


class NoSkips:
    """Fails a run in which something was skipped: an engine nobody tested must not look tested."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Notice a module that skipped itself while it was imported."""
        self._notice(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notice a test that was skipped, but not one that is expected to fail."""
        if not hasattr(report, "wasxfail"):
            self._notice(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Turn success into failure."""
        if self.skipped and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which they were."""
        if self.skipped:
            terminalreporter.section("skipped, and so the run has failed", red=True)
            for name in self.skipped:
                terminalreporter.line(name)

    def _notice(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.skipped.append(f"{report.nodeid}: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    """Watch where results are gathered: workers of pytest-xdist report to us.

    No process of a test starts a backup by itself, unless the test asks for it. What a run by
    `nohup` ignores, its programs would ignore too, and some tests end them by it.
    """
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.environ["HERDBOOK_BACKUP"] = "off"
    backup_schedule.start = lambda *_: None
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(NoSkips())
        # What is the same for every worker is made once, by the first that needs it.
        os.environ[TEMPLATES] = tempfile.mkdtemp(prefix="herdbook-templates-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the templates of this run."""
    if not hasattr(config, "workerinput") and TEMPLATES in os.environ:
        shutil.rmtree(os.environ.pop(TEMPLATES), ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server_url() -> Iterator[str]:
    """A PostgreSQL that the tests of one worker share, each in schemas of its own."""
    with running_postgres() as url:
        yield url


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`, which `make quick` gives."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="run a test of all engines on memory and on one more, chosen by the test's name",
    )


@pytest.hookimpl(trylast=True)  # after -k and -m, so that a quick run samples what they leave
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Check what loops share, and leave engines out of a quick run."""
    for item in items:
        check_fixtures(item)
    if config.getoption("quick"):
        sample = _sample(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in sample])
        items[:] = [item for item in items if item in sample]


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what was collected: it stays to the end of the run.

    Going through it again and again took a tenth of the time of tests that make many objects.
    """
    gc.collect()
    gc.freeze()


def _sample(items: list[pytest.Item]) -> set[pytest.Item]:
    """Every item that is the same for all engines, and of the others two engines per test."""
    by_test: dict[str, dict[str, list[pytest.Item]]] = {}
    chosen: set[pytest.Item] = set()
    for item in items:
        engine = _engine_of(item)
        if engine is None:
            chosen.add(item)
        else:
            test = item.nodeid.partition("[")[0]
            by_test.setdefault(test, {}).setdefault(engine, []).append(item)
    for test, engines in by_test.items():
        others = sorted(engines.keys() - {REFERENCE})
        picked = [others[crc32(test.encode()) % len(others)]] if others else []
        for engine in (REFERENCE, *picked):
            chosen.update(engines.get(engine, ()))
    return chosen


def _engine_of(item: pytest.Item) -> str | None:
    call = getattr(item, "callspec", None)
    engine = call.params.get("engine") if call is not None else None
    return engine if isinstance(engine, str) else None
