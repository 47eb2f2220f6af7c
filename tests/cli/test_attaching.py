"""`--attach`: programs of hosts that relay to the exchange."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent_process import AgentProcess
from tests.support.attached import asking, echo, exchange
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import attach, local_socket
from trunkline.core.events import Envelope, StopAsked, TurnEnded
from trunkline.exchange.settings import AgentSettings

pytestmark = pytest.mark.process


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path


def serve(*arguments: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """A bridge's process."""
    return subprocess.run(
        [sys.executable, "-m", "trunkline", "agentproc", "serve", *arguments],
        env=os.environ | environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


async def aside(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What waits for a process, beside the exchange that serves it."""
    return await asyncio.to_thread(work, *arguments, **named)


async def test_a_hosts_program_speaks_the_protocol_for_an_agent_of_the_exchange(home: Path) -> None:
    async with exchange(home, helper=asking(home)) as running:
        with AgentProcess("--agent", "helper", "--attach", "--session-id", "mine") as host:
            (ready,) = await aside(host.until, "ready")
            assert ready["session_id"] == "mine"
            host.message("Go")
            request = (await aside(host.until, "tool_request"))[-1]
            host.send(type="tool_approve", call_id=request["call_id"])
            assert (await aside(host.until, "stream_end"))[-1]["msg_id"] == "m1"
            assert await aside(host.end) == 0
            assert host.stderr() == ""
        live = await running.switchboard.find("mine")
        assert live.session.state.turns == 1
        with AgentProcess("--attach", "--resume", "mine") as host:
            assert (await aside(host.until, "ready"))[-1]["session_id"] == "mine"
            assert await aside(host.kill, signal.SIGTERM) == 128 + signal.SIGTERM


async def test_options_that_are_the_exchanges_to_set_are_told_and_not_heeded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_AGENT", "coder")
    async with exchange(home, helper=echo(home)) as running:
        with AgentProcess("--attach", "--model", "m", "--auto-approve") as host:
            ready = (await aside(host.until, "ready"))[-1]
            assert ready["capabilities"]["current_mode"] == "default"
            assert await aside(host.end) == 0
            errors = host.stderr()
        assert "--model" in errors
        assert "--auto-approve" in errors
        assert len(await running.switchboard.rows()) == 1


def test_without_an_exchange_it_is_a_config_error_at_once_and_exit_1() -> None:
    with AgentProcess("--agent", "helper", "--attach") as host:
        began = time.monotonic()
        (line,) = host.rest()
        assert host.wait() == 1
        # Only to say that it does not wait for anything: the machine may be busy.
        assert time.monotonic() - began < PATIENCE_SECONDS
    assert (line["type"], line["error"]["code"]) == ("error", "config_error")
    assert "No exchange is running here" in line["error"]["message"]
    done = serve("helper", "--attach", AGENT_MESSAGE="hello")
    assert done.returncode == 1
    assert done.stdout.startswith(b"AGENT_ERROR:")
    assert b"No exchange is running here" in done.stdout


async def test_an_exchange_that_goes_away_is_a_clear_error_and_exit_1(home: Path) -> None:
    async with exchange(home, helper=echo(home)):
        with_exchange = AgentProcess("--attach")
        await aside(with_exchange.until, "ready")
    with with_exchange as host:
        (line,) = await aside(host.rest)
        assert line["error"]["code"] == "config_error"
        assert "The exchange closed the connection" in line["error"]["message"]
        assert await aside(host.wait) == 1


async def test_a_refusal_is_told_in_the_exchanges_words(home: Path) -> None:
    async with exchange(home, helper=echo(home)):
        with AgentProcess("--attach", "--agent", "helpr") as host:
            (line,) = await aside(host.rest)
            assert "There is no agent `helpr` here." in line["error"]["message"]
            assert await aside(host.wait) == 1


async def test_a_bridges_process_answers_one_message_in_a_session_of_the_exchange(home: Path) -> None:
    async with exchange(home, helper=echo(home)) as running:
        done = await aside(serve, "helper", "--attach", AGENT_MESSAGE="Hello")
        assert done.returncode == 0, done.stderr
        named, said = done.stdout.decode().splitlines()
        assert said == 'AGENT_PARTIAL:"Hello"'
        session = named.removeprefix("AGENT_SESSION:")
        done = await aside(serve, "helper", "--attach", AGENT_MESSAGE="Again", AGENT_SESSION_ID=session)
        assert done.returncode == 0, done.stderr
        live = await running.switchboard.find(session)
        assert live.session.state.turns == 2
        done = await aside(serve, "helper", "--attach", AGENT_MESSAGE="Again", AGENT_SESSION_ID="another")
        assert done.returncode == 1
        assert b"There is no session `another`" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_bridge_that_tells_its_process_to_end_stops_the_turn(home: Path, number: signal.Signals) -> None:
    (home / "script.yaml").write_text("turns: [{steps: [{text: waiting}, {hang: true}]}]")
    hanging = AgentSettings("", f"scripted:{home / 'script.yaml'}", str(home))
    async with exchange(home, helper=hanging) as running:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trunkline", "agentproc", "serve", "helper", "--attach"),
            env=os.environ | {"AGENT_MESSAGE": "Go"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            while b"waiting" not in await process.stdout.readline():
                pass
            process.send_signal(number)
            ended = await process.wait()
            (row,) = await running.switchboard.rows()
            live = await running.switchboard.find(row.id)
            await live.session.at_rest()
        assert ended == 128 + number
        events = [item.event for item in running.switchboard.peek(row.id).records if isinstance(item, Envelope)]
        assert events[-1] == TurnEnded("cancelled")
        assert StopAsked("local") in events


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"", "The exchange closed the connection"),
        (b"HTTP/1.1 400\r\n", "cannot be understood"),
        (b'{"session":"s"}\n\xff\xff\xff\xff', "bytes at once"),
        (b'{"session":"s"}\n\x00\x00\x00\x00nonsense', "The exchange closed the connection"),
        (b'{"session":"s"}\n\x00\x00\x00\x00{"exit":7,"error":"so"}\n', "so"),
    ],
)
def test_nonsense_from_whoever_is_behind_the_socket_is_an_error(home: Path, said: bytes, why: str) -> None:
    place = home / "exchange"
    place.mkdir()
    with local_socket.listening(str(place), attach.ATTACH_SOCKET) as server, AgentProcess("--attach") as host:
        server.settimeout(PATIENCE_SECONDS)
        connection, _ = server.accept()
        with connection:
            header = connection.makefile("rb").readline()
            assert json.loads(header)["wire"] == "jsonstream"
            connection.sendall(said)
        (line,) = host.rest()
        assert why in line["error"]["message"]
        assert host.wait() == 1


#: Stands for an exchange that is stopped: at once, or when it has let somebody in.
STOPPED = """
import os, signal, sys
from trunkline.base import attach, local_socket
server = local_socket.listening(sys.argv[1], attach.ATTACH_SOCKET)
server.setblocking(True)
print(flush=True)
if sys.argv[2] == "later":
    connection, _ = server.accept()
    connection.makefile("rb").readline()
    connection.sendall(b'{"session":"s"}\\n')
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells that the other end is stopped")
@pytest.mark.parametrize("when", ["before", "later"])
def test_an_exchange_that_is_stopped_is_told_to_whoever_waits_for_it(home: Path, when: str) -> None:
    place = home / "exchange"
    place.mkdir()
    peer = subprocess.Popen([sys.executable, "-c", STOPPED, str(place), when], stdout=subprocess.PIPE)
    try:
        assert peer.stdout is not None
        peer.stdout.readline()
        with AgentProcess("--attach") as host:
            if when == "later":
                _, status = os.waitpid(peer.pid, os.WUNTRACED)
                assert os.WIFSTOPPED(status)
                host.message("Go")
            (line,) = host.rest()
            assert line["error"]["code"] == "config_error"
            assert f"The exchange is stopped, as process {peer.pid}." in line["error"]["message"]
            assert host.wait() == 1
    finally:
        peer.kill()
        peer.communicate()


def hosted(*messages: dict[str, Any], arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    """An MCP host that sends everything at once, and closes its end."""
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages)
    return subprocess.run(
        [sys.executable, "-m", "trunkline", "mcp", "serve", "--attach", *arguments],
        input=lines,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


async def test_an_mcp_host_finds_the_agents_of_the_exchange_and_no_others(home: Path) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = (
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
    async with exchange(home, helper=echo(home), other=echo(home)):
        done = await aside(hosted, *asked, arguments=("--agent", "helper", "--model", "m"))
        answers = {line.get("id"): line for line in map(json.loads, done.stdout.splitlines())}
        names = [tool["name"] for tool in answers[2]["result"]["tools"]]
        assert [name for name in names if name.startswith("ask_")] == ["ask_helper"]
        assert (done.returncode, b"`--model` is ignored with `--attach`" in done.stderr) == (0, True)
        unknown = await aside(hosted, arguments=("--agent", "nobody"))
        assert (unknown.returncode, unknown.stdout) == (1, b"")
        assert b"There is no agent `nobody` here" in unknown.stderr
    alone = await aside(hosted)
    assert (alone.returncode, b"No exchange is running here" in alone.stderr) == (1, True)


async def test_an_editors_program_has_sessions_of_the_exchange_and_ends_as_its_host_ends_it(home: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "acp", "helper", "--attach"]
    asked = (
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(home), "mcpServers": []}},
    )
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in asked)
    async with exchange(home, helper=echo(home), other=echo(home)) as running:
        for ending, code in ((None, 0), (signal.SIGTERM, 128 + signal.SIGTERM)):
            with await aside(subprocess.Popen, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as editor:
                editor.stdin.write(lines)
                editor.stdin.flush()
                answers = [json.loads(await aside(editor.stdout.readline)) for _ in asked]
                if ending is None:
                    editor.stdin.close()
                else:
                    editor.send_signal(ending)
                assert await aside(editor.wait, PATIENCE_SECONDS) == code
            row = await running.switchboard.row(answers[1]["result"]["sessionId"])
            assert row is not None
            assert (row.agent, row.workspace) == ("helper", str(home))
