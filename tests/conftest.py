"""What holds for every test: none may be skipped, and how hard Hypothesis looks."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

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
    """Watch where results are gathered: workers of pytest-xdist report to us."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(NoSkips())
