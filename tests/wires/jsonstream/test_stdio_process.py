"""The agent as a host meets it: a process. How it starts, fails to start, goes on after a crash, and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.base.processes import until
from tests.conftest import require
from tests.support.agent_process import COMMAND, AgentProcess, gone
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.config import user_file
from trunkline.base.paths import sessions_dir
from trunkline.core.fault_table import CRASHED

pytestmark = pytest.mark.process

#: What the protocol allows between the end of the input, or SIGTERM, and the exit: on a machine that does nothing else.
#: So it is the processor's time that is limited here; that the agent does not just wait is what its host's patience is
#: for, which is shorter than anything that these agents do.
EXIT_SECONDS = 2.0


@pytest.fixture
def script(tmp_path: Path) -> str:
    """A script with a long answer, a request, a long tool and a tool that tries to reach the protocol's pipes."""
    pid_file = tmp_path / "pid"
    reach = "import os,sys; os.write(1, b'on stdout'); os.write(2, b' on stderr'); print(repr(sys.stdin.read()))"
    turns = [
        {"when": "long", "steps": [{"text": "one "}, {"wait": 600}, {"text": "two"}]},
        {"when": "ask", "steps": [{"tool": {"name": "Write", "category": "edit", "args": {}, "id": "t1"}}]},
        {
            "when": "run",
            "steps": [
                {
                    "tool": {
                        "name": "Bash",
                        "category": "exec",
                        "args": {},
                        "id": "t1",
                        "run": ["sh", "-c", f"trap '' TERM; echo $$ > {pid_file}; sleep 600 & wait; sleep 600"],
                    }
                }
            ],
        },
        {
            "when": "reach",
            "steps": [{"tool": {"name": "Bash", "category": "exec", "args": {}, "run": [sys.executable, "-c", reach]}}],
        },
        {"when": "deaf", "steps": [{"text": "x"}, {"hang": "deaf"}]},
        {"when": "history", "steps": [{"text": "{{history}} turn {{turn}}"}]},
        {"when": "edit", "steps": [{"tool": {"name": "Edit", "category": "edit", "args": {}, "output": "ok"}}]},
        {"steps": [{"text": "You said {{input}}"}], "usage": {"input_tokens": 3, "output_tokens": 4}},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"name": "test", "turns": turns}))
    return str(path)


def scripted(script: str, *arguments: str) -> AgentProcess:
    return AgentProcess("--agent", "scripted", "--script", script, *arguments)


def fatal(*arguments: str, retryable: bool = False, **environment: str) -> dict[str, Any]:
    """The one line of a start that fails."""
    result = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, stdin=subprocess.DEVNULL, env=os.environ | environment, check=False
    )
    assert result.returncode not in (0, None)
    assert result.stderr
    (line,) = result.stdout.splitlines()
    error: dict[str, Any] = json.loads(line)
    assert error["type"] == "error"
    assert error["msg_id"] is None
    assert error["error"]["code"] == "config_error"
    assert error["error"]["retryable"] is retryable
    return error


# Starting


#: No account of the person's who runs the tests, and no machine's either.
NO_ACCOUNT = {
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    "AWS_CONFIG_FILE": "/nowhere",
    "AWS_EC2_METADATA_DISABLED": "true",
    "CLOUDSDK_CONFIG": "/nowhere",
}


@pytest.mark.parametrize(
    ("provider", "environment", "advice"),
    [
        ("bedrock", {"AWS_REGION": "eu-west-1"}, "AWS_ACCESS_KEY_ID"),
        ("bedrock", {"AWS_REGION": "eu-west-1", "AWS_PROFILE": "nobody"}, "aws configure"),
        ("vertex", {"VERTEX_PROJECT_ID": "p", "VERTEX_REGION": "r"}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ("vertex", {"VERTEX_PROJECT_ID": "p", "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere"}, "cannot be used"),
    ],
)
def test_a_cloud_without_credentials_is_no_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, environment: dict[str, str], advice: str
) -> None:
    for name, value in (NO_ACCOUNT | environment).items():
        monkeypatch.setenv(name, value)
    extra = "bedrock" if provider == "bedrock" else "vertex"
    package = "botocore" if provider == "bedrock" else "google"
    require(package, find_spec(package) is not None, f"pip install 'trunkline[{extra}]'")
    flags = ("--provider", provider, "--workspace", str(tmp_path), "--session-id", "s1")
    # Twice: it has left nothing behind, and the host may try again when there are credentials.
    for _ in range(2):
        assert advice in fatal(*flags)["error"]["message"]


@pytest.mark.parametrize("agent", ["echo", "coder"])
@pytest.mark.parametrize("flags", [(), ("--session-id", "s1")])
def test_sessions_that_are_turned_off_in_a_file_are_neither_named_nor_kept(
    tmp_path: Path, agent: str, flags: tuple[str, ...]
) -> None:
    file = Path(user_file())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[session]\nenabled = false\n")
    with AgentProcess("--agent", agent, "--provider", "mock", *flags, cwd=str(tmp_path)) as process:
        assert "session_id" not in process.until("ready")[0]
        process.message("hello")
        process.until("stream_end")
    assert not Path(sessions_dir()).exists()
    fatal("--agent", agent, "--provider", "mock", "--resume", "s1")


def test_ready_comes_once_and_first_and_names_the_session() -> None:
    with AgentProcess("--agent", "echo", "--session-id", "my-conv-123") as agent:
        agent.message("hello world")
        lines = agent.until("stream_end")
        assert agent.end() == 0
        lines += agent.rest()
    assert [line["type"] for line in lines].count("ready") == 1
    assert lines[0]["type"] == "ready"
    assert lines[0]["version"] == "0.1.0"
    assert lines[0]["session_id"] == "my-conv-123"


def test_without_sessions_no_id_is_named_and_nothing_is_kept() -> None:
    with AgentProcess("--agent", "echo", "--no-session") as agent:
        agent.message("hello")
        assert "session_id" not in agent.until("stream_end")[0]
        assert agent.end() == 0
    assert not Path(os.environ["TRUNKLINE_HOME"]).exists()


def test_the_mock_provider_needs_no_key_and_answers_the_same_each_time() -> None:
    texts = []
    for _ in range(2):
        with AgentProcess("--provider", "mock", "--model", "any", "--max-tokens", "10", "--max-turns", "3") as agent:
            agent.message("Is it you?")
            texts.append("".join(line["text"] for line in agent.until("stream_end") if line["type"] == "text_delta"))
            agent.end()
    assert texts == ["Is it you?"] * 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--session-id", "a", "--resume", "b"], "Cannot use --resume and --session-id together"),
        (["--provider", "nosuch"], "nosuch"),
        (["--agent", "nosuch"], "nosuch"),
        (["--resume", "unknown"], "Session 'unknown' not found"),
        (["--resume", "latest"], "No sessions found"),
        (["--session-id", ""], "empty"),
        (["--max-turns", "many"], "--max-turns"),
        (["--workspace", "/no/such/place"], "/no/such/place"),
        (["--nonsense"], "--nonsense"),
        (["--agent", "scripted", "--script", "/no/such/script.json"], "/no/such/script.json"),
        (["--provider", "anthropic"], "ANTHROPIC_API_KEY not set"),
        (["--provider", "openai"], "OPENAI_API_KEY not set"),
        (["--no-session", "--session-id", "x"], "--no-session"),
        (["--max-line", "0"], "--max-line"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--max-turns", "-1"], "--max-turns"),
    ],
)
def test_a_start_that_cannot_work_is_one_config_error_and_no_ready(arguments: list[str], says: str) -> None:
    assert says in fatal(*arguments)["error"]["message"]


def test_a_variable_stands_in_for_a_flag_and_a_bad_one_is_named() -> None:
    assert "TRUNKLINE_MODE" in fatal("--agent", "echo", TRUNKLINE_MODE="turbo")["error"]["message"]
    assert "TRUNKLINE_NO_SESSION" in fatal("--agent", "echo", TRUNKLINE_NO_SESSION="maybe")["error"]["message"]
    variables = {"TRUNKLINE_AGENT": "echo", "TRUNKLINE_MODE": "yolo", "TRUNKLINE_NO_SESSION": "yes"}
    with AgentProcess(env=os.environ | variables) as agent:
        assert "session_id" not in agent.until("ready")[0]
        assert agent.line() == {"type": "info", "msg_id": "", "message": "mode: yolo"}
        agent.end()


OPTIONS_AGENT = """
from trunkline.agents.echo import EchoAgent
from trunkline.core.events import TextDelta, TurnEnded

class Conversation:
    session_id = None
    def __init__(self, request):
        self.request = request
    async def turn(self, message):
        said = dict(self.request.options) | {"instructions": self.request.instructions}
        yield TextDelta(repr(sorted((name, value) for name, value in said.items() if value is not None)))
        yield TurnEnded("success")
    async def decide(self, call_id, decision): ...
    async def configure(self, change): ...
    async def cancel(self): ...
    async def close(self): ...

class Options(EchoAgent):
    async def open(self, request):
        return Conversation(request)
"""


@pytest.mark.parametrize(
    ("arguments", "environment", "options"),
    [
        (
            [
                "--provider",
                "anthropic",
                "--model",
                "m",
                "--max-tokens",
                "5",
                "--max-turns",
                "2",
                "--system-prompt",
                "Be.",
            ],
            {"ANTHROPIC_BASE_URL": "http://localhost:1", "OPENAI_BASE_URL": "http://localhost:2"},
            {"base_url": "http://localhost:1", "instructions": "Be.", "max_tokens": 5, "max_turns": 2, "model": "m"},
        ),
        (
            ["--provider", "openai", "--base-url", "http://localhost:3"],
            {"OPENAI_BASE_URL": "http://localhost:2"},
            {"base_url": "http://localhost:3"},
        ),
        (
            ["--provider", "bedrock"],
            {"AWS_REGION": "eu-west-1", "AWS_PROFILE": "work"},
            {"profile": "work", "region": "eu-west-1"},
        ),
        (
            ["--provider", "vertex"],
            {"VERTEX_PROJECT_ID": "p", "VERTEX_REGION": "r", "GOOGLE_APPLICATION_CREDENTIALS": "/c.json"},
            {"credentials": "/c.json", "project": "p", "region": "r"},
        ),
    ],
)
def test_flags_and_the_providers_own_variables_reach_the_agent(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], options: dict[str, Any]
) -> None:
    (tmp_path / "options_agent.py").write_text(OPTIONS_AGENT)
    with AgentProcess(
        "--agent", "options_agent:Options", *arguments, env=os.environ | environment, cwd=str(tmp_path)
    ) as agent:
        agent.message("what do you know?")
        text = "".join(line["text"] for line in agent.until("stream_end") if line["type"] == "text_delta")
        agent.end()
    assert text == repr(sorted((options | {"provider": arguments[1]}).items()))


def test_a_secret_in_the_environment_never_reaches_an_error() -> None:
    error = fatal("--workspace", "/no/sk-ant-0123456789abcdef/x", ANTHROPIC_API_KEY="sk-ant-0123456789abcdef")
    assert "sk-ant-0123456789abcdef" not in json.dumps(error)


def test_a_start_without_standard_input_says_so() -> None:
    command = f"{' '.join(COMMAND)} --agent echo <&-"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "Standard input" in result.stderr
    assert json.loads(result.stdout)["error"]["code"] == "config_error"


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_start_that_fails_tells_the_host_whatever_became_of_standard_error(redirection: str) -> None:
    command = f"{' '.join(COMMAND)} --bogus </dev/null {redirection}"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["code"] == "config_error"


def test_a_host_that_does_not_read_standard_error_keeps_nothing_up(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"name": "noisy", "turns": [{"steps": [{"raise": "boom " * 200}]}]}))
    with AgentProcess("--agent", "scripted", "--script", str(path)) as agent:
        for number in range(150):
            agent.message("go", f"m{number}")
            agent.until("stream_end")
        assert ended_in_time(agent, "SIGTERM") == 143


def test_a_host_that_leaves_without_having_read_is_noticed() -> None:
    with AgentProcess("--agent", "echo", "--max-line", str(32 * 1024 * 1024)) as agent:
        agent.until("ready")
        agent.message("a" * 6_000_000)
        # The answer fills the pipe and more; only a command that comes after that makes it stop reading.
        time.sleep(0.5)
        agent.send(type="ping")
        time.sleep(0.2)
        assert ended_in_time(agent, "eof") == 0


def test_a_host_that_is_gone_before_it_could_be_told_leaves_no_session(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with AgentProcess("--agent", "echo", "--session-id", "nobody", stdout=writing) as agent:
        os.close(writing)
        assert agent.process.wait(PATIENCE_SECONDS) == 128 + signal.SIGPIPE
    with AgentProcess("--agent", "echo", "--session-id", "nobody") as agent:
        agent.until("ready")


def test_a_signal_that_comes_while_it_exits_does_not_change_the_exit_code() -> None:
    for delay in range(0, 40, 4):
        with AgentProcess("--agent", "echo") as agent:
            agent.until("ready")
            assert agent.process.stdin is not None
            agent.process.stdin.close()
            time.sleep(delay / 1000)
            agent.process.send_signal(signal.SIGTERM)
            assert agent.wait() in (0, 143)


# Sessions


def test_an_id_that_exists_is_refused_and_one_in_use_too() -> None:
    with AgentProcess("--agent", "echo", "--session-id", "taken") as agent:
        agent.until("ready")
        for flag in ("--session-id", "--resume"):
            assert "taken" in fatal("--agent", "echo", flag, "taken", retryable=True)["error"]["message"]
        agent.end()
    message = fatal("--agent", "echo", "--session-id", "taken")["error"]["message"]
    assert message == "Session ID 'taken' already exists"


def test_a_failed_resume_leaves_nothing_so_that_a_new_session_may_have_the_id() -> None:
    fatal("--agent", "echo", "--resume", "conv")
    with AgentProcess("--agent", "echo", "--session-id", "conv") as agent:
        assert agent.until("ready")[0]["session_id"] == "conv"
        agent.end()


def test_a_failed_start_of_the_agent_leaves_the_id_free(tmp_path: Path) -> None:
    fatal("--agent", "scripted", "--script", str(tmp_path / "none.json"), "--session-id", "conv")
    with AgentProcess("--agent", "echo", "--session-id", "conv") as agent:
        assert agent.until("ready")
        agent.end()


def test_a_damaged_session_fails_to_resume_and_can_be_begun_again() -> None:
    with AgentProcess("--agent", "echo", "--session-id", "conv") as agent:
        agent.until("ready")
        agent.end()
    (log,) = (Path(os.environ["TRUNKLINE_HOME"]) / "sessions").iterdir()
    log.write_bytes(b"\x00garbage")
    fatal("--agent", "echo", "--resume", "conv")
    with AgentProcess("--agent", "echo", "--session-id", "conv") as agent:
        assert agent.until("ready")
        agent.end()


@pytest.mark.parametrize(
    "session", ["../../escape", "a/b", "..", "ü😀", "x" * 3000, "-dash", "--resume", "A", "%41", " "]
)
def test_any_characters_make_an_id_and_none_makes_a_path(session: str) -> None:
    with AgentProcess("--agent", "echo", "--session-id", session) as agent:
        assert agent.until("ready")[0]["session_id"] == session
        agent.message("hi")
        agent.until("stream_end")
        agent.end()
    with AgentProcess("--agent", "echo", "--resume", session) as agent:
        assert agent.until("ready")[0]["session_id"] == session
        agent.end()
    home = Path(os.environ["TRUNKLINE_HOME"])
    assert {path.parent for path in home.rglob("*.log")} == {home / "sessions"}


def test_latest_is_the_session_used_last_in_the_same_workspace(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    for begin, session, workspace in (
        ("--session-id", "one", here),
        ("--session-id", "two", here),
        ("--session-id", "three", there),
        ("--resume", "one", here),
    ):
        with AgentProcess("--agent", "echo", begin, session, "--workspace", str(workspace)) as agent:
            agent.message("hi")
            agent.until("stream_end")
            agent.end()
    with AgentProcess("--agent", "echo", "--resume", "latest", "--workspace", str(here)) as agent:
        assert agent.until("ready")[0]["session_id"] == "one"
        agent.end()


def test_resuming_restores_history_turns_mode_and_grants(script: str) -> None:
    with scripted(script, "--session-id", "conv") as agent:
        agent.send(type="init_history", text="RULES")
        agent.send(type="set_mode", mode="auto_edit")
        agent.message("hello")
        agent.until("stream_end")
        agent.end()
    with scripted(script, "--resume", "conv") as agent:
        agent.message("history")
        text = "".join(line["text"] for line in agent.until("stream_end") if line["type"] == "text_delta")
        assert text == "RULES turn 2"
        agent.message("edit")
        assert "tool_request" not in [line["type"] for line in agent.until("stream_end")]
        agent.end()


def test_a_grant_for_always_is_still_there_after_a_kill(script: str) -> None:
    with scripted(script, "--session-id", "conv") as agent:
        agent.message("edit")
        request = agent.until("tool_request")[-1]
        agent.send(type="tool_approve", call_id=request["call_id"], scope="always")
        agent.until("stream_end")
        agent.kill(signal.SIGKILL)
    with scripted(script, "--resume", "conv") as agent:
        agent.message("edit")
        assert "tool_request" not in [line["type"] for line in agent.until("stream_end")]
        agent.end()


def test_a_session_killed_in_the_middle_of_a_tool_goes_on_and_knows_what_it_does_not_know(script: str) -> None:
    with scripted(script, "--session-id", "conv", "--auto-approve") as agent:
        agent.message("run")
        agent.until("tool_running")
        agent.kill(signal.SIGKILL)
    with scripted(script, "--resume", "conv") as agent:
        agent.message("hello")
        assert agent.until("stream_end")[-1]["usage"] == {"input_tokens": 3, "output_tokens": 4}
        agent.end()
    (log,) = (Path(os.environ["TRUNKLINE_HOME"]) / "sessions").iterdir()
    events = [json.loads(line.split(b" ", 1)[1]) for line in log.read_bytes().splitlines()[1:]]
    ends = [event["data"]["outcome"] for event in events if event["event"] == "TurnEnded"]
    assert ends == ["unknown", "success"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


# Ending


def ended_in_time(agent: AgentProcess, how: str) -> int:
    started = agent.worked()
    code = agent.end() if how == "eof" else agent.kill(signal.Signals[how])
    assert agent.worked() - started < EXIT_SECONDS
    return code


@pytest.mark.parametrize(("how", "code"), [("eof", 0), ("SIGTERM", 143), ("SIGINT", 130), ("SIGHUP", 129)])
@pytest.mark.parametrize("moment", ["idle", "long", "ask", "run", "deaf"])
def test_it_ends_at_any_moment_in_time_with_the_right_code(script: str, how: str, code: int, moment: str) -> None:
    wait_for = {"long": "text_delta", "ask": "tool_request", "run": "tool_running", "deaf": "text_delta"}
    with scripted(script, *["--auto-approve"] * (moment == "run")) as agent:
        agent.until("ready")
        if moment != "idle":
            agent.message(moment)
            agent.until(wait_for[moment])
        assert ended_in_time(agent, how) == code
        rest = agent.rest()
    if moment != "idle":
        assert rest[-1]["type"] == "stream_end"
    if moment in ("ask", "run"):
        assert rest[-2]["type"] == "tool_cancelled"


@pytest.mark.parametrize("how", ["stop", "eof", "SIGTERM", "SIGKILL"])
def test_no_child_outlives_it(script: str, how: str, tmp_path: Path) -> None:
    with scripted(script, "--auto-approve") as agent:
        agent.message("run")
        agent.until("tool_running")
        pid_file = tmp_path / "pid"
        until(lambda: pid_file.exists() and pid_file.read_text().strip(), PATIENCE_SECONDS)
        pid = int(pid_file.read_text())
        if how == "stop":
            agent.send(type="stop")
            lines = agent.until("stream_end")
            assert [line["type"] for line in lines] == ["tool_cancelled", "stream_end"]
        elif how == "eof":
            agent.end()
        else:
            agent.kill(signal.Signals[how])
        assert gone(pid)


def test_what_was_piped_in_is_answered_although_the_input_has_ended() -> None:
    lines = b"".join(
        json.dumps({"type": "message", "msg_id": f"m{n}", "input": "a b"}).encode() + b"\n" for n in (1, 2)
    )
    result = subprocess.run([*COMMAND, "--agent", "echo"], input=lines.rstrip(), capture_output=True, check=True)
    types = [json.loads(line)["type"] for line in result.stdout.splitlines()]
    assert types == ["ready", *["stream_start", "text_delta", "text_delta", "stream_end"] * 2]
    assert result.stderr == b""


def test_input_and_output_may_be_files(tmp_path: Path) -> None:
    commands, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    commands.write_text('{"type":"message","msg_id":"m1","input":"hello"}\n')
    with commands.open("rb") as stdin, out.open("wb") as stdout:
        result = subprocess.run([*COMMAND, "--agent", "echo"], stdin=stdin, stdout=stdout, check=False)
    assert result.returncode == 0
    assert [json.loads(line)["type"] for line in out.read_text().splitlines()][-1] == "stream_end"


def test_input_and_output_may_be_sockets_as_some_runtimes_make_them() -> None:
    ours, theirs = socket.socketpair()
    with ours, AgentProcess("--agent", "echo", stdin=theirs, stdout=theirs) as agent:
        theirs.close()
        ours.settimeout(PATIENCE_SECONDS)
        stream = ours.makefile("rwb")
        assert json.loads(stream.readline())["type"] == "ready"
        big = "word " * 60_000
        stream.write(json.dumps({"type": "message", "msg_id": "m1", "input": big}).encode() + b"\n")
        stream.flush()
        words = []
        while (line := json.loads(stream.readline()))["type"] != "stream_end":
            words.append(line.get("text", ""))
        assert "".join(words) == big
        ours.shutdown(socket.SHUT_WR)
        assert agent.wait() == 0
        stream.close()


def test_a_host_that_reads_nothing_does_not_fill_its_memory_and_gets_everything_in_the_end(script: str) -> None:
    with AgentProcess("--agent", "echo") as agent:
        agent.until("ready")
        text = "w " * 300_000
        agent.message(text)
        status = Path(f"/proc/{agent.process.pid}/status")
        deadline = time.monotonic() + 1.0
        while time.monotonic() < deadline:
            resident = int(status.read_text().split("VmRSS:")[1].split()[0])
            # Sixteen megabytes of lines, of which it may hold one.
            assert resident < 60_000
        words = [line["text"] for line in agent.until("stream_end") if line["type"] == "text_delta"]
        assert "".join(words) == text
        assert agent.end() == 0


def test_a_host_that_floods_and_never_reads_is_not_read_without_end() -> None:
    with AgentProcess("--agent", "echo", bufsize=0) as agent:
        agent.until("ready")
        assert agent.process.stdin is not None
        os.set_blocking(agent.process.stdin.fileno(), False)
        line, sent, deadline = b'{"type":"x"}\n' * 4000, 0, time.monotonic() + PATIENCE_SECONDS
        stuck_since = time.monotonic()
        while time.monotonic() < deadline and sent < 400_000_000:
            try:
                sent += os.write(agent.process.stdin.fileno(), line)
                stuck_since = time.monotonic()
            except BlockingIOError:
                if time.monotonic() - stuck_since > 0.5:
                    break
        else:
            raise AssertionError("it read on without end")
        resident = int(Path(f"/proc/{agent.process.pid}/status").read_text().split("VmRSS:")[1].split()[0])
        assert resident < 200_000


def test_a_host_that_goes_away_without_a_word_ends_it(script: str) -> None:
    with scripted(script) as agent:
        agent.until("ready")
        assert agent.process.stdout is not None
        agent.process.stdout.close()
        agent.message("hello")
        assert agent.wait() == 141


# Nothing but protocol lines


def test_children_reach_neither_input_nor_output_of_the_protocol(script: str) -> None:
    with scripted(script, "--auto-approve") as agent:
        agent.message("reach")
        result = next(line for line in agent.until("stream_end") if line["type"] == "tool_result")
        assert "on stdout" in result["output"]
        assert "''" in result["output"]
        agent.send(type="ping")
        assert agent.line() == {"type": "pong"}
        agent.end()


def test_what_an_agent_prints_goes_to_standard_error() -> None:
    program = (
        "import sys, os\n"
        "from trunkline.agents import echo\n"
        "turn = echo.EchoConversation.turn\n"
        "def noisy(self, message):\n"
        "    print('printed'); os.write(1, b'written\\n'); os.system('echo spawned')\n"
        "    return turn(self, message)\n"
        "echo.EchoConversation.turn = noisy\n"
        "sys.argv[1:] = ['agent', '--json-stream', '--agent', 'echo']\n"
        "from trunkline.cli import main\n"
        "main()\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        input=b'{"type":"message","msg_id":"m1","input":"hi"}\n',
        capture_output=True,
        check=True,
    )
    assert all(json.loads(line)["type"] for line in result.stdout.splitlines())
    assert {b"printed", b"written", b"spawned"} <= set(result.stderr.split())


def test_every_line_comes_at_once_and_a_ping_is_answered_in_the_middle_of_a_turn(script: str) -> None:
    with scripted(script) as agent:
        agent.message("long")
        assert agent.until("text_delta")[-1]["text"] == "one "
        agent.send(type="ping")
        assert agent.line() == {"type": "pong"}
        # Left alone, the turn would take a minute: longer than the host has patience.
        agent.send(type="stop")
        agent.until("stream_end")
        agent.message("hello", "m2")
        assert agent.until("stream_end")[1]["text"] == "You said hello"
        agent.end()


def test_a_line_at_the_limit_is_read_and_one_over_it_is_not() -> None:
    with AgentProcess("--agent", "echo", "--max-line", "1000") as agent:
        agent.until("ready")
        for size in (999, 1000):
            filler = "x" * (size - len('{"type":"ping","x":""}'))
            agent.write(f'{{"type":"ping","x":"{filler}"}}\n'.encode())
            assert agent.line() == {"type": "pong"}
        agent.write(b'{"type":"ping","x":"' + b"x" * (1001 - len('{"type":"ping","x":""}')) + b'"}\n')
        error = agent.line()
        assert error is not None
        assert error["error"]["message"] == "Line of 1001 bytes exceeds the limit of 1000 bytes"
        agent.send(type="ping")
        assert agent.line() == {"type": "pong"}
        agent.end()


def test_a_secret_in_a_crash_reaches_neither_the_host_nor_the_log_on_standard_error(tmp_path: Path) -> None:
    secret = "tok-0123456789abcdef"
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"name": "leaky", "turns": [{"steps": [{"raise": f"cannot use {secret}"}]}]}))
    environment = os.environ | {"SOME_TOKEN": secret}
    with AgentProcess("--agent", "scripted", "--script", str(path), env=environment) as agent:
        agent.message("go")
        lines = agent.until("stream_end")
        agent.end()
        logged = agent.stderr()
    assert CRASHED in json.dumps(lines)
    assert "cannot use [redacted]" in logged
    assert secret not in json.dumps(lines) + logged
