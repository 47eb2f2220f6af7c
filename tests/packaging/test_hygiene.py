"""The suite's own promises: absent components are told, homes are separate, nothing is left running."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

# Each runs a pytest of its own.
pytestmark = pytest.mark.process

# What is left running here never goes by itself, and nobody need wait for it.
NO_GRACE = "_LEFTOVER_GRACE_SECONDS = 0.0\n"
CONFTEST = (Path(__file__).parent.parent / "conftest.py").read_text(encoding="utf-8") + NO_GRACE
# As in pyproject.toml: what goes wrong in a destructor fails the test in which that happens.
UNRAISABLE = "error::pytest.PytestUnraisableExceptionWarning"
NEEDS_A_THING = """
    from conftest import require

    def test_something():
        require("a thing", False, "install thing")
"""
# `cat` ends by itself when the inner pytest, which holds its stdin, is gone: nothing is left after these tests either.
# That it repeats a line shows that it is `cat` by now.
LEAVES_A_CHILD = """
    import subprocess

    kept = []

    def test_that_forgets():
        kept.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        kept[0].stdin.write(b"here\\n")
        kept[0].stdin.flush()
        assert kept[0].stdout.readline()
"""
LEAVES_A_DAEMON = LEAVES_A_CHILD.replace('["cat"]', '["setsid", "--fork", "cat"]')


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project of its own with this suite's conftest, in a process of its own."""
    monkeypatch.delenv("CI", raising=False)
    pytester.makeconftest(CONFTEST)
    return pytester


def test_an_absent_component_is_a_skip_listed_at_the_end(inner: pytest.Pytester) -> None:
    inner.makepyfile(NEEDS_A_THING)
    result = inner.runpytest_subprocess()
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*components that could not be had*", "a thing (install thing)"])
    assert result.ret == pytest.ExitCode.OK


def test_an_absent_component_is_a_failure_in_ci(inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    inner.makepyfile(NEEDS_A_THING)
    result = inner.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*components that could not be had*", "a thing (install thing)"])


def test_a_present_component_lets_the_test_run(inner: pytest.Pytester) -> None:
    inner.makepyfile(NEEDS_A_THING.replace("False", "True"))
    result = inner.runpytest_subprocess()
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*could not be had*")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")
@pytest.mark.parametrize("leaves", [LEAVES_A_CHILD, LEAVES_A_DAEMON], ids=["child", "daemon"])
@pytest.mark.parametrize("options", [[], ["-n", "1"]], ids=["alone", "in-a-worker"])
def test_a_process_left_behind_fails_the_run_and_names_its_test(
    inner: pytest.Pytester, leaves: str, options: list[str]
) -> None:
    inner.makepyfile(leaves)
    result = inner.runpytest_subprocess(*options)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*left running*", "*: cat (started by *test_that_forgets*)"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")
def test_what_a_crashed_worker_left_behind_is_named_and_ended(inner: pytest.Pytester) -> None:
    inner.makepyfile("""
        import os, subprocess

        def test_that_crashes():
            child = subprocess.Popen(["sleep", "120"], start_new_session=True)
            open("child", "w").write(str(child.pid))
            os.abort()
    """)
    result = inner.runpytest_subprocess("-n", "1", "--max-worker-restart", "0")
    result.stdout.fnmatch_lines(
        ["*left running*", "*: sleep 120 (started by *test_that_crashes*), whose worker crashed"]
    )
    assert not _runs(int((inner.path / "child").read_text()))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")
def test_the_watchdog_of_a_worker_may_end_after_it(inner: pytest.Pytester) -> None:
    inner.makeconftest(CONFTEST.removesuffix(NO_GRACE))
    (inner.path / "watchdog.py").write_text("import sys, time; sys.stdin.read(); time.sleep(0.5)")
    inner.makepyfile("""
        import subprocess, sys

        kept = []

        def test_that_has_a_watchdog():
            kept.append(subprocess.Popen([sys.executable, "watchdog.py"], stdin=subprocess.PIPE))
    """)
    result = inner.runpytest_subprocess("-n", "1")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK


def _runs(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def test_a_test_that_fails_takes_no_other_with_it(inner: pytest.Pytester) -> None:
    inner.makepyfile("""
        import gc, logging, socket

        def test_that_fails():
            logging.getLogger("some.package").addFilter(lambda _: False)
            left_open, peer = socket.socketpair()
            assert left_open is peer

        def test_that_comes_next(caplog):
            gc.collect()
            logging.getLogger("some.package").warning("hear me")
            assert "hear me" in caplog.text
    """)
    inner.runpytest_subprocess("-W", "error::ResourceWarning", "-W", UNRAISABLE).assert_outcomes(passed=1, failed=1)


def test_secrets_and_settings_of_the_machine_are_out_of_sight(
    inner: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "SOME_TOKEN", "TRUNKLINE_CONFIG", "PYTHONUNBUFFERED", "MODEL"):
        monkeypatch.setenv(name, "value")
    inner.makepyfile("""
        import os

        def test_environment():
            assert not [name for name, value in os.environ.items() if value == "value"]
    """)
    inner.runpytest_subprocess().assert_outcomes(passed=1)


def test_each_test_has_a_home_of_its_own_and_leaves_no_variable_behind(inner: pytest.Pytester) -> None:
    inner.makepyfile("""
        import os
        import pytest

        homes = set()

        @pytest.mark.parametrize("turn", range(2))
        def test_home(turn):
            homes.add(os.environ["TRUNKLINE_HOME"])
            assert len(homes) == turn + 1
            assert os.environ["XDG_STATE_HOME"].startswith(os.path.dirname(os.environ["TRUNKLINE_HOME"]))
            assert "LEFT_BEHIND" not in os.environ
            os.environ["LEFT_BEHIND"] = "1"
    """)
    inner.runpytest_subprocess().assert_outcomes(passed=2)


@given(st.integers())
def test_hypothesis_accepts_the_fixtures_that_every_test_has(number: int) -> None:
    assert "TRUNKLINE_HOME" in os.environ
    assert isinstance(number, int)
