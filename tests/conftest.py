"""What every test gets: a home of its own, nothing of the machine's secrets, and a look at what it left running.

- Each test has an empty home, `TRUNKLINE_HOME` and XDG directories, and sees no provider's key and no `TRUNKLINE_*`
  variable of the person who runs it. Changes to the environment are undone after each test.
- `require` is for components that cannot always be had (a server, a browser, a fuzzer). Their absence is listed at the
  end of the run; with CI=true it fails the test.
- A run that leaves a process behind fails, and names the test that started it. What else a test that failed did not
  come to close is closed before the next one.
- Several test processes get the files whose tests take long first, so that none is alone with them in the end.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import logging
import os
import signal
import sys
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage
from hypothesis import settings

# No deadline per example: on a busy machine it measures the neighbours.
settings.register_profile("trunkline", deadline=None, print_blob=True)
# For `make check`.
settings.register_profile("quick", settings.get_profile("trunkline"), max_examples=25)
settings.load_profile("trunkline")

# What could reach a real account or change what a program under test does.
_SCRUBBED_PREFIXES = ("TRUNKLINE_", "ANTHROPIC_", "OPENAI_", "AWS_", "AZURE_", "GOOGLE_", "GEMINI_", "VERTEX_", "XDG_")
_SCRUBBED_SUFFIXES = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY")
_SCRUBBED_NAMES = frozenset(
    {
        # generic names that agents read
        "API_KEY", "BASE_URL", "MODEL", "PROVIDER",
        # would hide a missing flush, a missing install, or colour what is compared as text
        "PYTHONUNBUFFERED", "PYTHONPATH", "FORCE_COLOR", "CLICOLOR_FORCE",
        # would make each start of a program under test compile its source again
        "PYTHONDONTWRITEBYTECODE",
    }
)  # fmt: skip

# Where a test's programs keep what they keep: folders of its own home.
_PLACES = {
    # Skills and the like of whoever runs the tests are in there.
    "HOME": "user",
    "TRUNKLINE_HOME": "state",
    "TRUNKLINE_CACHE": "cache",
    **{f"XDG_{kind}_HOME": f"xdg-{kind.lower()}" for kind in ("CONFIG", "DATA", "STATE", "CACHE")},
}

_UNAVAILABLE = "unavailable component: "
# Where pictures of pages go.
_KEPT_NAMES = ("TRUNKLINE_TEST_OUTPUT",)
# Inherited by whatever a test starts, however far it wanders from its process group or parent.
_MARK = "TRUNKLINE_TEST_RUN"
# pytest keeps the running test's name here; so each process carries the name of the test that started it.
_CURRENT_TEST = b"PYTEST_CURRENT_TEST="
# A process that was told to end in a test's last line may need a moment to be gone, and longer on a busy machine.
_LEFTOVER_GRACE_SECONDS = 20.0
_LEFTOVER_POLL_SECONDS = 0.05

# The marks of tests that may take long; how long, their time limits tell.
_LONG_MARKS = ("long", "slow", "fuzz", "wheel", "browser")
# After which one of them hangs that says nothing else. What takes seconds takes many of them on a busy machine.
_LONG_SECONDS = 300.0
# What such a one is taken to need, to know which files take long.
_USUAL_LONG_SECONDS = 30.0
# What a test with processes takes that is none of these.
_PROCESS_SECONDS = 1.0

# Examples of a property whose coverage is measured. The others run the same lines, at half the speed if measured, too.
_MEASURED_EXAMPLES = 20

_home_numbers = itertools.count()
_leftovers_key = pytest.StashKey[list[str]]()
_failed_key = pytest.StashKey[bool]()


def require(component: str, available: bool, hint: str) -> None:
    """Goes on only when `component` is there; `hint` says how to get it.

    Otherwise the test is skipped and listed at the end of the run, or fails when CI=true.
    """
    if available:
        return
    reason = f"{_UNAVAILABLE}{component} ({hint})"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # Not through tmp_path and monkeypatch: Hypothesis refuses function-scoped fixtures that are not autouse.
    # Thousands of tests pay for this: so no `mktemp`, only what was changed in the environment is put back, and a home
    # that stayed empty goes at once, or the next run has thousands of them to remove.
    home = f"{tmp_path_factory.getbasetemp()}/home-{next(_home_numbers)}"
    os.mkdir(home)
    before = dict(os.environ)
    os.environ |= {name: f"{home}/{folder}" for name, folder in _PLACES.items()}
    yield
    if os.environ != before:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ |= {name: value for name, value in before.items() if os.environ.get(name) != value}
    with suppress(OSError):  # it has something in it
        os.rmdir(home)


@pytest.fixture
def unused_tcp_port() -> int:
    """In place of the one of pytest-asyncio, which the system may give to somebody else before it is used."""
    from tests.support.ports import free_port

    return free_port()


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    # A command that is run within a test may block signals for the rest of its life, which is longer here.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def pytest_sessionstart() -> None:
    # A run in the background, or under nohup, ignores these, and so would every program that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    handed_out_by = os.environ.get(_MARK, "")
    for name in list(os.environ):
        if name in _KEPT_NAMES:
            continue
        if name in _SCRUBBED_NAMES or name.startswith(_SCRUBBED_PREFIXES) or name.endswith(_SCRUBBED_SUFFIXES):
            del os.environ[name]
    # Nothing of a test's belongs into the keyring of whoever runs it.
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
    # A worker's mark begins with that of the process that hands out the tests.
    os.environ[_MARK] = f"{handed_out_by}{uuid.uuid4().hex}."


@pytest.hookimpl(trylast=True)  # when it is settled which tests run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several test processes: the files that take longest first, then those with the most tests."""
    seconds, tests = defaultdict[Path, float](float), Counter(item.path for item in items)
    for item in items:
        if any(item.get_closest_marker(mark) for mark in _LONG_MARKS):
            limit = item.get_closest_marker("timeout")
            seconds[item.path] += float(limit.args[0]) if limit else _USUAL_LONG_SECONDS
            if limit is None:
                item.add_marker(pytest.mark.timeout(_LONG_SECONDS))
        elif item.get_closest_marker("process"):
            seconds[item.path] += _PROCESS_SECONDS
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (-seconds[item.path], -tests[item.path], str(item.path)))


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of an asynchronous test: on virtual time for those that are marked so."""
    if item.get_closest_marker("virtual_time") is None:
        return {"real": asyncio.new_event_loop}
    from tests.support.loop import VirtualLoop

    return {"virtual": VirtualLoop}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measures the coverage of a property's first examples alone."""
    measuring = Coverage.current()
    test = getattr(getattr(item, "obj", None), "hypothesis", None)
    if measuring is None or test is None:
        return (yield)
    one_example, examples = test.inner_test, itertools.count(1)

    @functools.wraps(one_example)
    def example(*arguments: Any, **named: Any) -> Any:
        if next(examples) == _MEASURED_EXAMPLES + 1:
            measuring.stop()
        return one_example(*arguments, **named)

    test.inner_test = example
    try:
        return (yield)
    finally:
        test.inner_test = one_example
        if next(examples) > _MEASURED_EXAMPLES + 1:
            measuring.start()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_failed_key] = True
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that failed takes no other with it: what it did not come to close ends here.

    Python keeps its frames until the next test runs, and that one would fail for the sockets that are found open then.
    """
    filtered = {logger: list(logger.filters) for logger in _loggers() if logger.filters}
    result = yield
    if item.stash.get(_failed_key, False):
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            vars(sys).pop(name, None)
        told, sys.unraisablehook = sys.unraisablehook, lambda _: None
        try:
            gc.collect()
        finally:
            sys.unraisablehook = told
        for logger in _loggers():
            logger.filters[:] = filtered.get(logger, [])
    return result


def _loggers() -> list[logging.Logger]:
    return [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]


def pytest_collection_finish() -> None:
    # All that was imported and collected stays to the end: no garbage collection need look at it again.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    found = config.stash.setdefault(_leftovers_key, [])
    if _has_workers(config):
        # A worker that crashed ended nothing of what it had started, and told nobody. The watchdog of one that did not
        # ends soon after it.
        if _wait_for_leftovers(of_workers=True):
            found += [f"{line}, whose worker crashed" for line in _leftovers(of_workers=True, end=True)]
    else:
        found += _wait_for_leftovers()
    if hasattr(config, "workeroutput"):  # a pytest-xdist worker: the controller tells the story
        config.workeroutput["leftovers"] = found
    elif found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The controller's side of the above: a worker hands in what it found. (One that crashed has no output.)"""
    found = getattr(node, "workeroutput", {}).get("leftovers", [])
    node.config.stash.setdefault(_leftovers_key, []).extend(found)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    unavailable = sorted(
        {
            text[text.index(_UNAVAILABLE) + len(_UNAVAILABLE) :]
            for outcome in ("skipped", "failed", "error")
            for report in terminalreporter.stats.get(outcome, [])
            if _UNAVAILABLE in (text := _reason(report))
        }
    )
    if unavailable:
        terminalreporter.section("components that could not be had; their tests did not run")
        for line in unavailable:
            terminalreporter.line(line)
    leftovers = config.stash.get(_leftovers_key, [])
    if leftovers:
        terminalreporter.section("processes that were left running", red=True)
        for line in leftovers:
            terminalreporter.line(line)


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):  # a skip: file, line, reason
        return report.longrepr[2]
    return str(report.longrepr)


def _has_workers(config: pytest.Config) -> bool:
    """True in the process that only hands out tests to pytest-xdist's workers."""
    return config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput")


def _wait_for_leftovers(of_workers: bool = False) -> list[str]:
    deadline = time.monotonic() + _LEFTOVER_GRACE_SECONDS
    # Twice: a process that forks and ends while the first look goes on can hide its child from that look.
    while (found := _leftovers(of_workers) or _leftovers(of_workers)) and time.monotonic() < deadline:
        time.sleep(_LEFTOVER_POLL_SECONDS)
    return found


def _leftovers(of_workers: bool = False, end: bool = False) -> list[str]:
    """Processes that carry this run's mark or are our children, on systems that have /proc; none elsewhere.

    `of_workers`: those that carry the mark of a worker of ours instead. `end`: and end them.
    """
    mark = f"{_MARK}={os.environ[_MARK]}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # "pid (name) state ppid ...", where the name may hold anything, parentheses included
            state, parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            environment = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:  # ended meanwhile, or somebody else's
            continue
        is_child = int(parent) == os.getpid()
        # The watchdog of `trunkline.base.process` lives as long as the process it watches: us.
        is_our_watchdog = is_child and b"watchdog.py" in command
        if of_workers:
            is_suspect = any(value.startswith(mark) and value != mark for value in environment)
        else:
            is_suspect = (is_child or mark in environment) and int(entry.name) != os.getpid()
        if is_suspect and not is_our_watchdog and state != b"Z":
            test = next((v.removeprefix(_CURRENT_TEST) for v in environment if v.startswith(_CURRENT_TEST)), b"?")
            found.append(
                f"{entry.name}: {command.decode(errors='replace')}(started by {test.decode(errors='replace')})"
            )
            if end:
                with suppress(OSError):
                    os.kill(int(entry.name), signal.SIGKILL)
    return found
