"""`trunkline up`, as people run it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli import table, up
from trunkline.cli.app import COMMANDS
from trunkline.cli.up import services
from trunkline.core.faults import AgentFailed
from trunkline.demo.showcase_view import JsonView, PlainView, RichView
from trunkline.exchange.alone import alone
from trunkline.exchange.process import ExchangeProcess

pytestmark = pytest.mark.process

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found through /proc")
UP = (sys.executable, "-m", "trunkline", "up")
TOUR = (*UP, "--tour")


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`trunkline up --tour` in a process of its own, which is ended with the block."""
    with subprocess.Popen([*TOUR, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_of(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    yield from process.stdout


def children_of(process: subprocess.Popen[str]) -> list[Path]:
    """What it has started: the agent, and the watchdog."""
    pids = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [Path("/proc") / pid for pid in pids]


def wait_until_gone(processes: list[Path]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(is_running(process) for process in processes):
        assert time.monotonic() < deadline, processes
        time.sleep(0.01)


def is_running(process: Path) -> bool:
    try:
        return b") Z " not in (process / "stat").read_bytes()
    except OSError:
        return False


def test_without_a_terminal_it_shows_the_conversation_and_what_to_try_next() -> None:
    done = subprocess.run(TOUR, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert '{"type":"tool_approve","call_id":"call-2-1","scope":"once"}' in done.stdout
    assert "== A refusal, with its reason ==" in done.stdout
    assert "\x1b" not in done.stdout
    assert done.stdout.rstrip().endswith("agentproc hub doctor")


def test_the_transcript_can_be_had_as_json_lines() -> None:
    done = subprocess.run([*TOUR, "--json"], capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert {record["from"] for record in records} == {"host", "agent"}
    assert records[-1]["line"] == {
        "type": "stream_end",
        "msg_id": "m5",
        "usage": {"input_tokens": 120, "output_tokens": 60},
    }


@needs_proc
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all_and_leaves_nothing_running(number: int, code: int) -> None:
    with running("--json") as process:
        for line in lines_of(process):
            if "Once upon a time" in line:
                break
        children = children_of(process)
        assert len(children) == 2
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, errors) == (code, "")
    wait_until_gone(children)


@needs_proc
def test_a_reader_that_leaves_ends_all() -> None:
    with running() as process:
        assert process.stdout is not None
        next(lines_of(process))
        children = children_of(process)
        process.stdout.close()
        process.wait(timeout=PATIENCE_SECONDS)
        assert process.returncode == 1
    wait_until_gone(children)


def test_a_failure_is_told_and_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_play(*_: object, **__: object) -> None:
        raise AgentFailed("No agent today.")

    monkeypatch.setattr(up, "play", no_play)
    done = CliRunner().invoke(up.command, ["--tour"])
    assert (done.exit_code, done.stderr) == (1, "Error: No agent today.\n")


def test_a_terminal_gets_colours_and_time_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(up._view(as_json=True)[0], JsonView)
    assert isinstance(up._view(as_json=False)[0], PlainView)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    view, pause = up._view(as_json=False)
    assert isinstance(view, RichView)
    assert pause > 0
    assert isinstance(up._view(as_json=True)[0], JsonView)


# What it advises.


def test_every_command_that_it_advises_exists() -> None:
    for trial in up.TRIALS:
        words = shlex.split(trial.command.rpartition("|")[2])
        assert words[0] == "trunkline"
        assert words[1] in {"agent", *COMMANDS}


def test_the_echo_that_it_advises_works(tmp_path: Path) -> None:
    command = next(trial.command for trial in up.TRIALS if trial.command.startswith("echo ")).replace(
        "trunkline ", f"{shlex.quote(sys.executable)} -m trunkline "
    )
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0
    texts = [json.loads(line).get("text", "") for line in done.stdout.splitlines()]
    assert "".join(texts) == "Anybody?"


# With services.


class SelfEnding:
    """A service that presses Ctrl-C as soon as it can be reached."""

    name, where, trial = "fake", "http://127.0.0.1:1", "curl http://127.0.0.1:1"
    about = "a page of a fake"

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        reachable()
        os.kill(os.getpid(), signal.SIGINT)
        await stop.wait()


def test_services_are_run_listed_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "services", lambda: (SelfEnding(),))
    done = CliRunner().invoke(up.command)
    # That is how it is meant to end.
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "Press Ctrl-C to stop all.",
        "fake: starting",
        "fake: reachable  http://127.0.0.1:1",
        "    try: curl http://127.0.0.1:1",
        "",
        "All is up. Ctrl-C stops it.",
        "  http://127.0.0.1:1  a page of a fake",
        "fake: stopped",
    ]


def test_a_second_one_says_that_the_first_runs_and_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "services", lambda: (SelfEnding(),))
    with alone():
        done = CliRunner().invoke(up.command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: It runs already, as process {os.getpid()}: ")
    assert f"`kill {os.getpid()}` stops it." in done.stderr
    assert len(done.stderr.splitlines()) == 1
    # Whatever became of the first: the next one can run.
    assert CliRunner().invoke(up.command).exit_code == 0


async def test_that_all_is_up_is_said_once_and_only_when_it_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    stop = asyncio.Event()
    said: list[bool] = []

    class Late(SelfEnding):
        name, where = "late", "127.0.0.1:23"

        async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
            said.append("All is up" in capsys.readouterr().out)
            reachable()
            # Such as after a crash.
            reachable()
            stop.set()

    class Early(SelfEnding):
        async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
            reachable()
            await stop.wait()

    assert await up._supervise([Early(), Late()], stop) == 0
    assert said == [False]
    assert capsys.readouterr().out.count("All is up.") == 1


def test_the_trial_of_a_service_names_the_program_that_is_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SelfEnding, "trial", "trunkline tryll chat")
    monkeypatch.setattr(up, "services", lambda: (SelfEnding(),))
    monkeypatch.setattr(up, "own_command_here", lambda: "bin/trunkline")
    assert "    try: bin/trunkline tryll chat\n" in CliRunner().invoke(up.command).output


def test_what_it_advises_for_local_models_works_as_it_stands() -> None:
    with subprocess.Popen(UP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = lines_of(process)
            assert any(line.startswith("tryll: reachable") for line in lines)
            advice = next(lines).strip().removeprefix("try: ")
            command = [*shlex.split(advice), "--engine", "mock", "--quiet", "-p", "Who is the mayor of Millbrook?"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: Who is the mayor of Millbrook?\n", "")
    assert (process.returncode, errors) == (0, "")


def test_the_services_are_a_chain_a_network_an_agent_a_server_of_models_a_page_to_talk_and_an_exchange() -> None:
    assert [service.name for service in services()] == ["chain", "network", "agent", "tryll", "talk", "exchange"]


def test_packages_that_are_missing_are_named_and_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.cli.up._NEEDED", ("no_such_package_of_ours",))
    done = CliRunner().invoke(up.command)
    assert done.exit_code == 1
    assert "no_such_package_of_ours" in done.stderr
    assert "[up]" in done.stderr


def test_json_is_for_the_tour_alone() -> None:
    assert CliRunner().invoke(up.command, ["--json"]).exit_code == 2


# `again` is a second Ctrl-C, after the first was noticed.
DEAF = """
import asyncio, os, signal, sys
from trunkline.cli import table, up
from trunkline.exchange.supervisor import Pace

class Deaf:
    name = where = about = trial = "deaf"

    async def run(self, stop, reachable):
        reachable()
        os.kill(os.getpid(), signal.SIGINT)
        await stop.wait()
        if sys.argv[1] == "again":
            os.kill(os.getpid(), signal.SIGINT)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass

pace = Pace(stopping=float(sys.argv[2]), cancelling=0.1)
print("code", up._run(lambda stop: up._supervise([Deaf()], stop, pace), signal.SIGINT))
"""


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (["once", "0.1"], "deaf: stuck  it did not stop, and was abandoned"),
        (["again", "600"], "  deaf  deaf"),
    ],
)
def test_a_service_that_never_stops_does_not_keep_the_process(arguments: list[str], last: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEAF, *arguments], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 130, done.stderr
    assert done.stdout.splitlines()[-1] == last


async def test_what_begins_after_ctrl_c_is_not_told_any_more(capsys: pytest.CaptureFixture[str]) -> None:
    stop = asyncio.Event()

    class Slow(SelfEnding):
        async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
            stop.set()
            reachable()

    assert await up._supervise((Slow(),), stop) == 0
    assert capsys.readouterr().out.splitlines() == ["Press Ctrl-C to stop all.", "fake: starting", "fake: stopped"]


def test_on_a_narrow_terminal_addresses_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "room", lambda: 30)
    assert up._overview((SelfEnding(),)).endswith("  http://127.0.0.1:1\n    a page of a fake\n")


# An exchange, by its file.

EXCHANGE = "[exchange]\nlisten = '127.0.0.1:0'\nhome = 'home'\n[agents.e]\nagent = 'echo'\n"


@contextmanager
def exchange(path: Path) -> Iterator[subprocess.Popen[str]]:
    """`trunkline up --config` in a process of its own, once it can be reached."""
    command = [*UP, "--config", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert said(process, "exchange: reachable  http://127.0.0.1:")
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], words: str) -> bool:
    """Whether it says that before it ends."""
    assert process.stdout is not None
    return any(words in line for line in iter(process.stdout.readline, ""))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_an_exchange_runs_until_a_signal_comes(tmp_path: Path, number: int, code: int) -> None:
    path = tmp_path / "trunkline.toml"
    path.write_text(EXCHANGE)
    with exchange(path) as process:
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, errors) == (code, "")


def test_an_exchange_takes_its_file_up_on_sighup_or_says_why_not(tmp_path: Path) -> None:
    path = tmp_path / "trunkline.toml"
    path.write_text(EXCHANGE)
    with exchange(path) as process:
        path.write_text(EXCHANGE + "[agents.f]\nagent = 'echo'\n")
        process.send_signal(signal.SIGHUP)
        assert said(process, "was loaded: 2 agents")
        path.write_text(EXCHANGE + "[agents.f]\n")
        process.send_signal(signal.SIGHUP)
        assert said(process, "was not loaded")
        assert said(process, "trunkline.toml:6:2: `agents.f` needs `agent`")


def test_an_exchange_whose_file_is_wrong_is_told_of_with_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden: list[bool] = []
    monkeypatch.setattr(up, "hide_process", lambda: hidden.append(True))
    path = tmp_path / "trunkline.toml"
    path.write_text(EXCHANGE + "[people.ana]\ntoken = 'x'\n")
    done = CliRunner().invoke(up.command, ["--config", str(path)])
    assert (done.exit_code, "trunkline.toml:7:1: `people.ana.token` is a secret" in done.stderr) == (1, True)
    assert hidden


def test_an_exchange_and_the_tour_do_not_go_together() -> None:
    done = CliRunner().invoke(up.command, ["--config", "x.toml", "--tour"])
    assert (done.exit_code, "do not go together" in done.stderr) == (2, True)


async def test_without_a_file_of_ones_own_the_problems_of_the_file_are_told_where_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    (exchange,) = (each for each in up.services() if isinstance(each, ExchangeProcess))
    exchange._watch_seconds = 0.01
    monkeypatch.setattr(exchange, "_write", lambda path: None)
    file = tmp_path / "up" / "trunkline.toml"
    file.parent.mkdir()
    file.write_text('[exchange]\nlisten = "127.0.0.1:0"\n')
    stop, reachable = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(exchange.run(stop, reachable.set))
    told = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        await reachable.wait()
        file.write_text('[exchange]\nlisten = "127.0.0.1:0"\n[agnets.a]\nagent = "echo"\n')
        while "agnets" not in told:
            await asyncio.sleep(0.01)
            told += capsys.readouterr().out
        stop.set()
        await running
    assert "exchange: " in told
    assert "was not loaded, and nothing changes" in told
    assert "Did you mean `agents`?" in told
