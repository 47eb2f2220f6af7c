"""`trunkline runner serve` and the commands that ask it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
from click.testing import CliRunner, Result

from tests.support.launched import ORIGIN, SECRET, MemoryKeyring, launcher
from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import HANG, Reply, StubProvider
from tests.support.sns_stub import AGENT, SLUG, TOKEN, SnsStub
from trunkline.base.config import user_file
from trunkline.cli import runner
from trunkline.core.configuration import settled
from trunkline.core.faults import ConfigError
from trunkline.runner.launcher import Launcher, serve

#: The command by itself: what `trunkline runner` runs.
PROGRAM = "from trunkline.cli.runner import command; command()"


@pytest.fixture
async def sns() -> AsyncIterator[SnsStub]:
    async with SnsStub() as network:
        yield network


def invoke(*arguments: str, secret: str = SECRET, input: str | None = None) -> Result:
    return CliRunner().invoke(
        runner.command, arguments, env={runner.SECRET_VARIABLE: secret, "COLUMNS": "200"}, input=input
    )


def agent_config(sns: SnsStub, **more: Any) -> dict[str, Any]:
    action = {"action": "create_thread", "communitySlug": SLUG, "title": "Hello", "body": "A thread"}
    brain = {"kind": "scripted", "replies": [[action]]}
    return {
        "snsBaseUrl": sns.url,
        "runnerToken": TOKEN,
        "agentId": AGENT,
        "timeoutSec": PATIENCE_SECONDS,
        "brain": brain,
        **more,
    }


@pytest.mark.parametrize(
    ("arguments", "secret", "said"),
    [
        (["serve"], "", "Set RUNNER_LAUNCHER_SECRET, or say `--secret-file` or `--secret`."),
        (["status"], "", "to be let in. Set RUNNER_LAUNCHER_SECRET, or say `--secret-file`.\n"),
        (["serve", "--secret", " "], "", "is required"),
        (["serve", "--secret", "gehörtes"], "", "must be plain ASCII"),
        (["serve", "--secret-file", "/nowhere/secret"], "", "cannot be read: No such file"),
        (["serve", "--listen", "0.0.0.0:4318"], SECRET, "it listens on this machine alone"),
        (["serve", "--listen", "4318"], SECRET, "is not an address"),
        (["serve", "--metrics", "0.0.0.0:9111"], SECRET, "it listens on this machine alone"),
        (["serve", "--metrics", "9111"], SECRET, "Say `--metrics HOST:PORT`"),
        (["serve", "--allow-origin", "*"], SECRET, "`*` is not an origin"),
        (["serve", "--allow-origin", "null"], SECRET, "is not an origin"),
        (["serve", "--allow-origin", "https://a.example/path"], SECRET, "is not an origin"),
        (["serve", "--db", "sqlite:///agents.db"], SECRET, "share their agents in a PostgreSQL database"),
        (["serve", "--db", "postgresql:///a?host=/nowhere&password=pw-of-mine"], SECRET, "cannot be used: connection"),
        (["status", "--url", "http://127.0.0.1:1"], SECRET, "No launcher answers at `http://127.0.0.1:1`"),
        (["start", "--config", "/nowhere.json"], SECRET, "cannot be read: No such file"),
        (["start", "--agent", "ada"], SECRET, "There is no agent `ada` in the configuration."),
    ],
)
def test_what_cannot_work_is_told_in_a_line(arguments: list[str], secret: str, said: str) -> None:
    result = invoke(*arguments, secret=secret)
    assert (result.exit_code, said in result.output) == (1, True), result.output
    assert SECRET not in result.output


def test_the_files_say_what_no_flag_and_no_variable_does() -> None:
    file = Path(user_file())
    file.parent.mkdir(parents=True)
    (file.parent / "launcher-secret").write_text("of the file\n")
    file.write_text('[runner]\nsecret_file = "launcher-secret"\nallow_origin = "https://Net.Example/"\n')
    home = {"TRUNKLINE_HOME": os.environ["TRUNKLINE_HOME"]}
    said = settled("runner", environ=home)
    assert (said["allow_origin"], said["listen"]) == ("https://net.example", "127.0.0.1:4318")
    assert runner._secret(None, None, said, "") == "of the file"
    told = settled("runner", environ=home | {runner.SECRET_VARIABLE: "of the environment"})
    assert runner._secret(None, None, told, "") == "of the environment"
    file.write_text('[runner]\nlisten = "0.0.0.0:4318"\n')
    assert "it listens on this machine alone" in invoke("serve").output
    file.write_text('[runner]\nlisten = "4318"\n')
    assert f"`{file}`, line 2: `runner.listen` must be an address" in invoke("serve").output


@pytest.mark.parametrize(
    "answer",
    [{}, {"status": []}, {"status": {"agents": 3}}, {"status": {"agents": [{}]}}, {"approvals": [1]}, {"message": "x"}],
)
@pytest.mark.parametrize("arguments", [["status"], ["approvals"], ["log"], ["stop", "a"], ["start", "a"]])
def test_an_answer_that_is_no_launchers_is_told_in_a_line(
    arguments: list[str], answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_asked", lambda *_: answer)
    result = invoke(*arguments)
    if arguments[0] == "stop" and "message" in answer:
        assert result.output == "x\n"
        return
    assert result.exit_code == 1
    assert "is not a launcher of this version" in result.output


def test_start_needs_a_configuration_or_an_id() -> None:
    for arguments in (["start"], ["start", "a1", "--config", "x.json"]):
        result = invoke(*arguments)
        assert (result.exit_code, "Say `--config FILE`" in result.output) == (2, True)


def test_once_is_one_of_the_commands() -> None:
    context = click.Context(runner.command)
    names = runner.command.list_commands(context)
    assert names == ["approvals", "approve", "deny", "log", "once", "serve", "start", "status", "stop"]
    assert all(runner.command.get_command(context, name) is not None for name in names)


async def test_agents_are_started_shown_and_stopped(sns: SnsStub, tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    file.write_text(json.dumps(agent_config(sns)))
    async with launcher(tmp_path / "home", MemoryKeyring()) as url:

        async def ask(*arguments: str, **more: Any) -> Result:
            return await asyncio.to_thread(invoke, *arguments, "--url", url, **more)

        assert "No agent is known here" in (await ask("status")).output
        started = await ask("start", "--config", str(file))
        assert (started.exit_code, started.output) == (0, "Runner started\n")
        assert [thread["title"] for thread in sns.threads] == ["Hello"]
        shown = (await ask("status")).output.splitlines()
        assert shown[0].split() == ["AGENT", "STATE", "CYCLES", "LAST", "SUCCESS", "LAST", "ERROR"]
        assert shown[1].split()[:3] == [AGENT, "running", "1"]
        twice = await ask("start", "--config", "-", input=file.read_text())
        assert (twice.exit_code, "already running" in twice.output) == (1, True)
        assert (await ask("stop", AGENT)).output == "Runner stopped\n"
        # Its secrets are in the keyring: the id is enough.
        assert (await ask("start", AGENT)).exit_code == 0
        assert (await ask("stop")).output == "All runners stopped\n"
        assert json.loads((await ask("status", "--json")).output)["status"]["runningAny"] is False
        assert (await ask("approvals")).output == "Nothing waits for approval.\n"
        for decision in ("approve", "deny"):
            refused = await ask(decision, "a1/1-1")
            assert (refused.exit_code, "No transaction `a1/1-1`" in refused.output) == (1, True)
        wrong = await ask("status", secret="wrong")
        assert (wrong.exit_code, wrong.output) == (1, "Error: Unauthorized\n")
        port = int(url.rpartition(":")[2])
        headers = {"x-runner-secret": SECRET}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_SECONDS) as http:
            entries = (await http.get("/runner/log", params={"agentId": AGENT})).json()["entries"]
        assert {(entry["port"], entry["direction"]) for entry in entries} == {(port, "agent_to_runner")}
        told = (await ask("log", AGENT, "--limit", "1")).output
        assert told.startswith(f"{entries[-1]['createdAt']} agent_to_runner ")
        assert json.loads((await ask("log", AGENT, "--json")).output)["entries"] == entries
    assert_no_secret_under(tmp_path / "home")


async def test_what_waits_is_listed_with_all_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = 'pay(address,uint256)\n  chain: 1\n  args: {"to": "0x1", "amount": "5"}'
    waiting = [
        {"id": "a1/1-1", "agentId": "a1", "shown": shown},
        {"id": "a1/1-2", "agentId": "a1\x1b[8m", "shown": "pay()\n  note: \rsafe\u202e"},
        # Of a launcher that does not say how it is shown.
        {"id": "a1/1-3", "agentId": "a1", "function": "pay()", "to": "0x1", "action": {"args": ["everything"]}},
    ]

    async def answered(*asked: Any) -> dict[str, Any]:
        return {"approvals": waiting}

    monkeypatch.setattr(runner, "ask", answered)
    output = (await asyncio.to_thread(invoke, "approvals")).output
    assert f"a1/1-1 (a1)\n{shown}\n" in output
    assert "a1/1-2 (a1<U+001B>[8m)\npay()\n  note: <U+000D>safe<U+202E>\n" in output
    assert "everything" in output
    assert "trunkline runner approve ID" in output


async def test_what_an_agent_said_is_shown_and_does_nothing_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    entries: list[dict[str, Any]] = [
        {"createdAt": "t1", "direction": "agent_to_runner", "actionTypes": ["tx"], "content": "a\x1b[2J\nt2 b"},
        {"createdAt": "t2", "direction": "runner_to_agent", "actionTypes": None, "content": {"type": "tx_feedback"}},
    ]

    async def answered(*asked: Any) -> dict[str, Any]:
        return {"entries": entries}

    monkeypatch.setattr(runner, "ask", answered)
    output = (await asyncio.to_thread(invoke, "log")).output
    assert output == (
        't1 agent_to_runner tx\n  a<U+001B>[2J\n  t2 b\n\nt2 runner_to_agent \n  {"type":"tx_feedback"}\n'
    )
    entries.clear()
    assert (await asyncio.to_thread(invoke, "log")).output == "The log is empty.\n"


@pytest.mark.parametrize("endless", [True, False], ids=["too long", "never whole"])
async def test_an_answer_without_an_end_is_not_read_to_it(endless: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        try:
            while not writer.is_closing():
                writer.write(b"400\r\n" + b" " * 0x400 + b"\r\n" if endless else b"1\r\n \r\n")
                await writer.drain()
                await asyncio.sleep(0.001)
        except ConnectionError:
            pass
        finally:
            writer.close()

    monkeypatch.setattr(runner, "_MAX_ANSWER", 10_000)
    monkeypatch.setattr(runner, "_ANSWER_SECONDS", PATIENCE_SECONDS if endless else 0.3)
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        result = await asyncio.to_thread(invoke, "status", "--url", url)
    assert (result.exit_code, f"No launcher answers at `{url}`" in result.output) == (1, True), result.output
    assert ("TooLong" if endless else "TimeoutError") in result.output


async def test_a_port_that_is_taken_is_told_and_nothing_is_run(tmp_path: Path) -> None:
    async with launcher(tmp_path / "home") as url:
        port = int(url.rpartition(":")[2])
        second = Launcher(str(tmp_path / "other"), "127.0.0.1", port, SECRET, ORIGIN)
        assert SECRET not in repr(second)
        with pytest.raises(ConfigError, match=rf"Cannot listen on `127\.0\.0\.1:{port}`"):
            await serve(second, asyncio.Event(), lambda host, port: None)
    assert not (tmp_path / "other").exists()


@pytest.mark.process
@pytest.mark.parametrize(
    "hang",
    [
        "asyncio.get_running_loop().run_in_executor(None, threading.Event().wait); serving.told('ready')",
        # The event loop itself, in something that no signal interrupts.
        "serving.told('ready'); [None for _ in itertools.repeat(None) if threading.Event().wait(9)]",
    ],
    ids=["thread", "loop"],
)
async def test_what_hangs_does_not_keep_a_service_that_was_told_to_end(hang: str) -> None:
    program = f"""
import asyncio, itertools, threading
from trunkline.cli import serving
serving.END_SECONDS = 0.3
async def work(stop):
    {hang}
    await stop.wait()
serving.serve(work)
"""
    started = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stderr=asyncio.subprocess.PIPE)
    try:
        assert started.stderr is not None
        assert await asyncio.wait_for(started.stderr.readline(), PATIENCE_SECONDS) == b"ready\n"
        started.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(started.wait(), PATIENCE_SECONDS) == 128 + signal.SIGTERM
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


class Process:
    """`trunkline runner serve` as a process."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.http = httpx.AsyncClient(base_url=url, headers={"x-runner-secret": SECRET}, timeout=PATIENCE_SECONDS)

    async def status(self) -> dict[str, Any]:
        return (await self.http.get("/runner/status")).json()["status"]  # type: ignore[no-any-return]


@asynccontextmanager
async def process(home: Path, secret_file: Path, *more: str) -> AsyncIterator[Process]:
    environ = os.environ | {
        "TRUNKLINE_HOME": str(home), "AGENT_CREDENTIAL": TOKEN,
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }  # fmt: skip
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, "serve", "--listen", "127.0.0.1:0", "--secret-file", str(secret_file), *more,
        stderr=asyncio.subprocess.PIPE, env=environ,
    )  # fmt: skip
    try:
        assert started.stderr is not None
        line = (await asyncio.wait_for(started.stderr.readline(), PATIENCE_SECONDS)).decode()
        found = re.fullmatch(r"The launcher is ready: (http://127\.0\.0\.1:\d+) \(Ctrl-C ends it\.\)\n", line)
        assert found, line
        served = Process(started, found[1])
        async with served.http:
            yield served
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


@pytest.mark.process
async def test_what_ran_runs_again_after_kill_9_and_sigterm_ends_it_in_time_though_the_model_hangs(
    sns: SnsStub, tmp_path: Path
) -> None:
    home, secret = tmp_path / "home", tmp_path / "secret.txt"
    secret.write_text(SECRET + "\n")
    async with StubProvider(lambda request: Reply([HANG])) as model:
        brain = {"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub", "apiKey": {"env": "AGENT_CREDENTIAL"}}
        given = agent_config(sns, brain=brain, timeoutSec=600)
        by_environment = given | {"runnerToken": {"env": "AGENT_CREDENTIAL"}}
        with_secrets = given | {"agentId": "another"}
        async with process(home, secret) as first:
            # The network knows no such agent: its first cycle fails, and it goes on.
            refused = (await first.http.post("/runner/start", json=with_secrets)).json()["status"]
            assert (refused["running"], refused["credentialRefused"]) == (True, True)
            starting = asyncio.create_task(first.http.post("/runner/start", json=by_environment))
            await model.asked(1)
            first.process.kill()
            await first.process.wait()
            await asyncio.wait({starting})
            assert isinstance(starting.exception(), httpx.HTTPError)
        async with process(home, secret) as second:
            await model.asked(2)
            status = await second.status()
            assert status["runningAgentIds"] == [AGENT]
            other = next(each for each in status["agents"] if each["agentId"] == "another")
            assert (other["state"], other["missingSecrets"]) == ("waiting for secrets", ["runnerToken"])
            second.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(second.process.wait(), PATIENCE_SECONDS) == 128 + signal.SIGTERM
    known = json.loads((home / "runner/agents.json").read_text())["agents"]
    assert {name: entry["wanted"] for name, entry in known.items()} == {AGENT: True, "another": True}
    assert_no_secret_under(home)


@pytest.mark.process
async def test_figures_and_health_are_told_beside_the_launcher_and_no_secret(sns: SnsStub, tmp_path: Path) -> None:
    home, secret = tmp_path / "home", tmp_path / "secret.txt"
    secret.write_text(SECRET)
    async with process(home, secret, "--metrics", "127.0.0.1:0") as served:
        assert served.process.stderr is not None
        line = (await asyncio.wait_for(served.process.stderr.readline(), PATIENCE_SECONDS)).decode()
        told = re.fullmatch(r"Its figures are at (http://(127\.0\.0\.1:\d+))/metrics\n", line)
        assert told, line
        await served.http.post("/runner/start", json=agent_config(sns))
        async with httpx.AsyncClient(base_url=told[1], timeout=PATIENCE_SECONDS) as http:
            assert (await http.get("/healthz")).text == "ready\n"
            figures = (await http.get("/metrics")).text
        assert '\ntrunkline_runner_agents{state="running"} 1\n' in figures
        assert '\ntrunkline_runner_cycles_total{outcome="success"} 1\n' in figures
        assert '\ntrunkline_runner_actions_total{action="create_thread",outcome="success"} 1\n' in figures
        assert SECRET not in figures
        assert TOKEN not in figures
        taken = ["serve", "--listen", "127.0.0.1:0", "--metrics", told[2]]
        second = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, *taken, "--secret-file", str(secret),
            stderr=asyncio.subprocess.PIPE, env=os.environ | {"TRUNKLINE_HOME": str(tmp_path / "other")},
        )  # fmt: skip
        _, said = await asyncio.wait_for(second.communicate(), PATIENCE_SECONDS)
        assert (second.returncode, b"another address with `--metrics HOST:PORT`" in said) == (1, True), said


def assert_no_secret_under(home: Path) -> None:
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files
    for path in files:
        for secret in (TOKEN, SECRET):
            assert secret.encode() not in path.read_bytes(), path
