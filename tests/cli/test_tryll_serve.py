"""`trunkline tryll serve`: its options, and its life as a process."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from tests.support.certificates import own_certificate
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from tests.support.tryll_process import tryll_process
from tests.support.tryll_served import Peer, echo, served
from tests.support.tryll_websocket import websocket
from trunkline import __version__
from trunkline.agents.coder.agent import Coder
from trunkline.agents.graph.pool import ModelPool
from trunkline.base.config import user_file
from trunkline.base.config_addresses import beside
from trunkline.cli import services, tryll, tryll_serve
from trunkline.core.configuration import settled
from trunkline.core.faults import ConfigError
from trunkline.models.discover import ModelChoice
from trunkline.models.providers import ModelSettings
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.drive import Tryll


@pytest.mark.process
@pytest.mark.parametrize("flag", ["--listen", "--ws", "--metrics"])
async def test_an_address_that_is_taken_is_told_with_the_flag_that_named_it(tmp_path: Path, flag: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        addresses = {"--listen": "127.0.0.1:0"} | {flag: f"127.0.0.1:{taken.getsockname()[1]}"}
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trunkline", "tryll", "serve", *(part for pair in addresses.items() for part in pair),
            env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, stderr=subprocess.PIPE,
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE_SECONDS):
            _, said = await done.communicate()
    assert (done.returncode, f"Choose another address with `{flag} HOST:PORT`" in said.decode()) == (1, True), said


def test_wrong_usage_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "models.json").write_text("{")
    wrong = (
        (["--listen", "0.0.0.0:1"], 1, "Other machines can reach"),
        (["--listen", "0.0.0.0:1", "--public"], 1, "needs a token"),
        (["--listen", "nowhere"], 1, "is not an address"),
        (["--metrics", "nowhere"], 1, "Say `--metrics HOST:PORT`"),
        (["--models-dir", str(tmp_path / "none")], 2, "does not exist"),
        (["--storage-root", str(tmp_path / "none")], 2, "does not exist"),
        (["--tls-key", str(tmp_path / "models.json")], 1, "goes with"),
        (["--tls-cert", str(tmp_path / "models.json")], 1, "cannot be used"),
        (["--agent", "nobody"], 1, "There is no agent `nobody`"),
        (["--workspace", str(tmp_path / "none")], 1, "is not a directory"),
        (["--mode", "anything"], 2, "is not one of"),
        (["--ws", "nowhere"], 2, "`nowhere` is not an address"),
        (["--ws", "0.0.0.0:1"], 1, "Other machines can reach `0.0.0.0`"),
        (["--ws", "--ws-origin", "game.example"], 2, "`game.example` is not an origin"),
    )
    for arguments, code, said in wrong:
        environ = {"TRUNKLINE_CACHE": str(tmp_path / "cache"), "TRUNKLINE_TRYLL_TOKEN": ""}
        result = CliRunner().invoke(tryll.command, ["serve", *arguments], env=environ)
        assert (result.exit_code, said in result.output) == (code, True), (arguments, result.output)


def test_the_token_comes_from_the_environment() -> None:
    def token(environ: dict[str, str], **flags: bool) -> str:
        return tryll_serve._token(settled("tryll", flags, environ | {"TRUNKLINE_HOME": "/nowhere"}, workspace=None))

    assert token({"TRUNKLINE_TRYLL_TOKEN": "x"}, public=True) == "x"
    assert token({}) == ""
    with pytest.raises(ConfigError, match=r"TRUNKLINE_TRYLL_TOKEN.*--no-token"):
        token({}, public=True)
    assert token({"TRUNKLINE_TRYLL_TOKEN": "x"}, public=True, no_token=True) == ""


def test_what_no_flag_says_the_files_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(user_file())
    file.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for text, said in (
        ('listen = "0.0.0.0:1"', "Other machines can reach"),
        ('listen = "0.0.0.0:1"\npublic = true', "needs a token"),
        ('listen = "nowhere"', f"`{file}`, line 2: `tryll.listen` must be an address such as 127.0.0.1:8080"),
        ('models_dir = "models"', f"{file}:2:1: `models_dir` names `{file.parent}/models`, which is not a directory"),
        ('tls_cert = "none.pem"', "which is not a file"),
        ('agents = ["nobody"]', "nobody"),
        ('ws = "0.0.0.0:1"', "Other machines can reach"),
        ('ws = "next"', "`tryll.ws` must be `true`, or an address such as 127.0.0.1:9101"),
        ('ws_origins = ["*"]', "`tryll.ws_origins` must be a list of origins"),
        ('mode = "wild"', '`tryll.mode` must be one of "default", "auto_edit", "yolo", "plan"'),
        ("publik = true\nlisten = ':0'", "`tryll.listen` must be an address"),
        ('[models."any"]\nkv_cache_type = "z"', f"`{file}`, line 3: `models.any.kv_cache_type` must be"),
    ):
        file.write_text(f"[tryll]\n{text}\n")
        result = CliRunner().invoke(tryll.command, ["serve"])
        assert (result.exit_code, said in result.output) == (1, True), (text, result.output)


def test_a_workspace_that_nobody_trusts_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trunkline.toml").write_text(
        '[tryll]\nlisten = "0.0.0.0:0"\npublic = true\nno_token = true\nagents = ["coder"]\nmode = "yolo"\n'
        'ws = true\nws_origins = ["https://evil.example"]\n'
    )
    monkeypatch.chdir(tmp_path)
    found = services.settled("tryll", {})
    assert (found["listen"], found["public"], found["no_token"]) == ("127.0.0.1:9100", False, False)
    assert (found["agents"], found["mode"]) == ([], "default")
    assert (found["ws"], found["ws_origins"]) == (None, [])
    told = capfd.readouterr().err
    keys = ("listen", "public", "no_token", "agents", "mode", "ws", "ws_origins")
    assert all(f"`tryll.{key}`" in told for key in keys)


def test_a_file_that_is_named_is_read_alone_and_flags_and_variables_come_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(user_file())
    own.parent.mkdir(parents=True)
    own.write_text("[tryll]\nmax_agents = 1\n")
    (tmp_path / "trunkline.toml").write_text("[tryll]\nmax_clients = 7\n")
    named = tmp_path / "ours/tryll.toml"
    named.parent.mkdir()
    named.write_text('[tryll]\nmodels_dir = "none"\nturns_per_minute = 5\nlisten = "127.0.0.1:1"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_CONFIG", "")
    result = CliRunner().invoke(tryll.command, ["serve", "--config", "ours/tryll.toml"])
    assert (result.exit_code, f"{named}:2:1: `models_dir` names `{named.parent}/none`" in result.output) == (1, True)
    monkeypatch.setenv("TRUNKLINE_TRYLL_LISTEN", "127.0.0.1:2")
    found = settled("tryll", {"turns_per_minute": 6})
    assert (found["turns_per_minute"], found["listen"]) == (6, "127.0.0.1:2")
    assert (found["max_agents"], found["max_clients"]) == (None, None)
    named.unlink()
    with pytest.raises(ConfigError, match="does not exist"):
        settled("tryll")


def test_figures_are_for_others_only_if_the_server_is(tmp_path: Path) -> None:
    result = CliRunner().invoke(tryll.command, ["serve", "--metrics", "0.0.0.0:1"])
    assert (result.exit_code, "`--metrics 127.0.0.1:PORT`" in result.output) == (1, True)


@pytest.mark.process
def test_figures_and_health_are_told_beside_the_server(tmp_path: Path) -> None:
    place = f"127.0.0.1:{free_port()}"
    address = f"http://{place}"
    with tryll_process("--metrics", place, environ={"TRUNKLINE_HOME": str(tmp_path)}) as server:
        asyncio.run(_configured(server.port))
        assert httpx.get(f"{address}/healthz").text == "ready\n"
        figures = httpx.get(f"{address}/metrics")
        assert figures.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "\ntrunkline_tryll_connections_total 1\n" in figures.text


@pytest.mark.process
def test_figures_are_told_by_tls_too_where_the_server_speaks_it(tmp_path: Path, certificate: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "tryll", "serve", "--listen", "127.0.0.1:0"]
    command += ["--metrics", "127.0.0.1:0", "--tls-cert", str(certificate)]
    command += ["--tls-key", str(certificate.with_suffix(".key"))]
    with subprocess.Popen(
        command, env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            assert process.stderr is not None
            assert "is ready" in process.stderr.readline()
            found = re.fullmatch(r"Its figures are at https(://127\.0\.0\.1:\d+)/metrics\n", process.stderr.readline())
            assert found
            trusting = ssl.create_default_context(cafile=certificate)
            assert httpx.get(f"https{found[1]}/healthz", verify=trusting).text == "ready\n"
            with pytest.raises(httpx.TransportError):
                httpx.get(f"http{found[1]}/healthz")
        finally:
            process.kill()


@pytest.mark.process
def test_in_a_trusted_network_everybody_is_served_and_that_is_said_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trunkline", "tryll", "serve", "--listen", "0.0.0.0:0", "--public", "--no-token"]
    environ = os.environ | {"TRUNKLINE_HOME": str(tmp_path), "TRUNKLINE_TRYLL_TOKEN": "not-this-one"}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        try:
            assert process.stderr is not None
            assert "`--no-token` lets everybody in" in process.stderr.readline()
            ready = process.stderr.readline()
            port = int(ready.rpartition(":")[2].split()[0])
            # In a loop of its own: the test waits for the process by blocking.
            asyncio.run(_configured(port))
            process.terminate()
            assert (process.wait(PATIENCE_SECONDS), process.stderr.read()) == (128 + signal.SIGTERM, "")
        finally:
            process.kill()


async def _configured(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    peer = Peer(reader, writer)
    await peer.get(m.SessionReady)
    await peer.configure()
    await peer.agent("mock")
    writer.close()


async def test_what_agents_may_do_is_what_the_command_line_says_and_nothing_else(tmp_path: Path) -> None:
    said = {"agents": ["scripted:tour"], "workspace": str(tmp_path), "mode": "auto_edit", "allow": ["Bash", "Mine"]}
    among = tryll_serve._agents(settled("tryll", said), "a-long-token-0123")
    made = among(ModelPool())
    assert [model.name for model in made.list()][-2:] == ["agent:echo", "agent:scripted:tour"]
    policy = made._policy()
    told = [policy.verdict("Write", "edit"), policy.verdict("Bash", "exec"), policy.verdict("Other", "exec")]
    assert told == ["allow", "allow", "deny"]
    assert tryll_serve._agents(settled("tryll"), "")(ModelPool())._policy().verdict("Read", "info") == "deny"
    assert "a-long-token-0123" not in made._secrets.text("it is a-long-token-0123")
    await made.close()


def test_an_agent_that_nobody_told_of_a_model_gets_the_one_that_chat_would_take(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async def found(_: object, **_where: object) -> ModelChoice:
        return ModelChoice(ModelSettings(provider="mock", model="found-here"), "it is a test")

    monkeypatch.setattr("trunkline.models.discover.discover", found)
    monkeypatch.setattr("os.environ", {"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    agents = tryll_serve._offered(["coder"], str(tmp_path))
    assert isinstance(agents["coder"], Coder)
    assert agents["coder"].settings.model.model == "found-here"
    assert "The agents' model is `found-here`: it is a test." in capfd.readouterr().err


@pytest.mark.process
def test_it_serves_until_a_signal_with_a_turn_in_flight(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/lines.txt").write_text("one\n")
    # Once it is up it looks for garbage seldom.
    garbage = "print(gc.get_threshold(), gc.get_freeze_count() > 0)"
    program = f"import gc\nfrom trunkline.cli.tryll import command\ntry: command()\nfinally: {garbage}"
    command = [sys.executable, "-c", program, "serve"]
    command += ["--listen", "127.0.0.1:0", "--storage-root", str(tmp_path / "root"), "--agent", "scripted:tour"]
    environ = os.environ | {"TRUNKLINE_HOME": str(tmp_path / "home"), "TRUNKLINE_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stdout is not None
            line = process.stderr.readline().decode()
            found = re.fullmatch(r"The Tryll server is ready: 127\.0\.0\.1:(\d+) \(Ctrl-C ends it\.\)\n", line)
            assert found, line
            # As above.
            asyncio.run(_talk(int(found[1]), process))
            assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
            assert (process.stdout.read(), process.stderr.read()) == (b"(10000, 10, 10) True\n", b"")
        finally:
            process.kill()


@pytest.mark.process
@pytest.mark.parametrize("said", ["flag", "variable", "file"])
async def test_it_serves_websockets_too_if_that_is_said(tmp_path: Path, said: str) -> None:
    _configure(tmp_path / "home", 'ws_origins = ["https://game.example"]', *(["ws = true"] if said == "file" else []))
    command = [sys.executable, "-m", "trunkline", "tryll", "serve", "--listen", "127.0.0.1:0"]
    command += ["--ws"] if said == "flag" else []
    environ = (
        os.environ
        | {"TRUNKLINE_HOME": str(tmp_path / "home")}
        | ({"TRUNKLINE_TRYLL_WS": "true"} if said == "variable" else {})
    )
    with subprocess.Popen(  # noqa: ASYNC220  # nothing else is to go on meanwhile
        command, env=environ, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            assert process.stderr is not None
            line = await asyncio.to_thread(process.stderr.readline)
            found = re.fullmatch(
                r"The Tryll server is ready: 127\.0\.0\.1:\d+ and (ws://127\.0\.0\.1:\d+)/ \(Ctrl-C ends it\.\)\n", line
            )
            assert found, line
            async with websocket(found[1], greeted=False, origin="https://game.example") as socket:
                assert isinstance(await socket.hear(), m.SessionReady)
            async with Tryll(found[1]) as client:
                agent = await client.create_agent(echo(), default_model="any")
                assert (await agent.ask("hi")).text == "You said: hi"
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, PATIENCE_SECONDS) == 128 + signal.SIGTERM
        finally:
            process.kill()


def _configure(home: Path, *lines: str) -> None:
    file = Path(user_file({"TRUNKLINE_HOME": str(home)}))
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(["[tryll]", *lines, ""]))


@pytest.mark.parametrize(
    ("ws", "port", "place"),
    [
        (True, 9100, ("h", 9101)),
        (True, 0, ("h", 0)),
        (True, 65535, ("h", 0)),
        ("127.0.0.1:7", 9100, ("127.0.0.1", 7)),
        (False, 9100, None),
        (None, 9100, None),
    ],
)
def test_websockets_have_the_next_port_or_one_of_their_own(
    ws: object, port: int, place: tuple[str, int] | None
) -> None:
    assert beside(ws, "h", port) == place


@pytest.mark.process
async def test_conversations_are_kept_as_sessions_if_that_is_wanted(tmp_path: Path) -> None:
    home = {"TRUNKLINE_HOME": str(tmp_path / "home")}
    with tryll_process("--sessions", environ=home) as server:
        async with server.peer() as peer:
            peer.say(m.SendMessageRequest(2, await peer.agent("any"), "remember this"))
            assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
        assert server.stop()[0] == 128 + signal.SIGTERM
    shown = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "trunkline", "sessions", "show", "latest"],
        env=os.environ | home, cwd=Path.cwd(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "remember this" in shown.stdout
    assert "You said: remember this" in shown.stdout


INPUT_ENDED = "Standard input has ended, and so does this program: it was started with `--exit-with-stdin`."
_WITH_STDIN = ["-m", "trunkline", "tryll", "serve", "--listen", "127.0.0.1:0", "--exit-with-stdin", "--json"]


@pytest.mark.process
def test_a_game_learns_from_one_line_where_its_server_is_and_ends_it_by_closing_a_pipe(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, *_WITH_STDIN], env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            port = ready.pop("port")
            assert ready == {
                "type": "ready", "host": "127.0.0.1", "ws_port": None, "metrics_port": None, "pid": process.pid,
                "version": __version__,
            }  # fmt: skip
            # What is said on that pipe means nothing.
            process.stdin.write(b"hello\n")
            process.stdin.flush()
            asyncio.run(_configured(port))
            said = process.communicate(timeout=PATIENCE_SECONDS)
            assert (process.returncode, said[0]) == (0, b"")
            assert said[1].decode().splitlines() == [INPUT_ENDED]
        finally:
            process.kill()


@pytest.mark.process
def test_the_line_for_programs_has_the_ports_for_websockets_and_figures(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, *_WITH_STDIN, "--ws", "--metrics", "127.0.0.1:0"],
        env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert ready["ws_port"] not in (None, 0, ready["port"])
            assert httpx.get(f"http://127.0.0.1:{ready['metrics_port']}/healthz").text == "ready\n"
        finally:
            process.kill()


@pytest.mark.process
def test_a_game_that_is_killed_leaves_no_server_behind(tmp_path: Path) -> None:
    game = (
        "import subprocess, sys\n"
        f"server = subprocess.Popen([sys.executable, *{_WITH_STDIN!r}], stdin=subprocess.PIPE)\n"
        "server.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", game], env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, cwd=tmp_path,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["type"] == "ready"
        finally:
            process.kill()
        # The server has the other end of this pipe, too, and nobody else has: its end is the server's.
        assert process.stdout.read() == b""


@pytest.mark.process
def test_a_server_without_an_input_to_end_with_ends_at_once(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, *_WITH_STDIN], env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, cwd=tmp_path,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr.decode().splitlines()) == (0, [INPUT_ENDED])


@pytest.mark.process
def test_a_server_whose_input_was_closed_from_the_start_says_why_it_ends(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", sys.executable, *_WITH_STDIN],
        env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, cwd=tmp_path,
        capture_output=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr.decode().splitlines()) == (0, [INPUT_ENDED])


@pytest.mark.process
def test_an_input_that_does_not_wait_has_not_ended_for_that(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs, subprocess.Popen(
        [sys.executable, *_WITH_STDIN], env=os.environ | {"TRUNKLINE_HOME": str(tmp_path)}, cwd=tmp_path,
        stdin=theirs.fileno(), stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            port = json.loads(process.stdout.readline())["port"]
            for _ in range(2):
                ours.sendall(b"hello")
                asyncio.run(_configured(port))
            ours.shutdown(socket.SHUT_WR)
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()


async def _talk(port: int, process: subprocess.Popen[bytes]) -> None:
    peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
    assert (await peer.get(m.SessionReady)).protocol_version == 2
    await peer.configure()
    await peer.ask(m.CreateStringStorageRequest(5, "lines", file_path="lines.txt"), m.CreateStringStorageResponse)
    for name in ("echo", "scripted:tour"):
        peer.say(m.SendMessageRequest(2, await peer.agent(f"agent:{name}"), "hello"))
        answers, complete = await peer.turn()
        assert (bool(answers[0].text), complete.status) == (True, m.TurnStatus.SUCCESS)
    assert await peer.refused(m.CreateAgentRequest(2, echo(), "agent:coder")) == 3003
    agent = await peer.agent("mock-slow")
    peer.say(m.SendMessageRequest(3, agent, " ".join(["word"] * 10_000)))
    await peer.get(m.AnswerText)
    process.send_signal(signal.SIGTERM)
    last = None
    while (heard := await peer.hear()) is not None:
        last = heard if isinstance(heard, m.TurnComplete) else last
    assert last is not None
    assert last.status == m.TurnStatus.CANCELLED
    peer.writer.close()


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return own_certificate(tmp_path)


async def test_a_server_can_speak_tls(tmp_path: Path, certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=certificate)
    async with served(tmp_path) as server:
        host, port = await server.server.listen(
            "127.0.0.1", 0, tryll_serve._tls(str(certificate), str(certificate.with_suffix(".key")))
        )
        # Once the client ends it, and once we do.
        for last in (m.HealthRequest(9), m.ConfigureSessionRequest(9, protocol_version=9)):
            peer = Peer(*await asyncio.open_connection(host, port, ssl=trusting))
            await peer.get(m.SessionReady)
            await peer.configure()
            peer.say(m.SendMessageRequest(3, await peer.agent(), "hush"))
            assert (await peer.turn())[1].status == m.TurnStatus.SUCCESS
            peer.say(last)
            assert isinstance(await peer.hear(), m.HealthResponse | m.ErrorResponse)
            if isinstance(last, m.ConfigureSessionRequest):
                assert await peer.hear() is None
            peer.writer.close()
            await peer.writer.wait_closed()
