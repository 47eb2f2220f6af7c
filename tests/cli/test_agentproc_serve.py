"""`trunkline agentproc serve` as a bridge meets it: a process for every message."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.agent_process import gone
from tests.support.fake_cli import install_fake
from tests.support.patience import PATIENCE_SECONDS
from tests.support.web import served
from trunkline.cli import agent_options, agentproc_serve, opening

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "trunkline", "agentproc", "serve"]


class Ran(NamedTuple):
    """What became of a process."""

    lines: list[str]
    code: int
    log: str

    @property
    def session(self) -> str:
        (line,) = [line for line in self.lines if line.startswith("AGENT_SESSION:")]
        return line.removeprefix("AGENT_SESSION:")

    @property
    def text(self) -> str:
        prefix = "AGENT_PARTIAL:"
        return "".join(json.loads(line.removeprefix(prefix)) for line in self.lines if line.startswith(prefix))


def variables(message: str, session: str = "", **more: str) -> dict[str, str]:
    told = {"AGENT_MESSAGE": message, "AGENT_SESSION_ID": session, "AGENT_PROTOCOL_VERSION": "0.1"}
    return os.environ | told | more


def ran(process: subprocess.CompletedProcess[bytes]) -> Ran:
    return Ran(process.stdout.decode().split("\n")[:-1], process.returncode, process.stderr.decode())


def serve(*arguments: str, message: str = "hello", session: str = "", **more: str) -> Ran:
    """One message, with nothing on standard input."""
    return ran(
        subprocess.run(
            [*COMMAND, *arguments],
            env=variables(message, session, **more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    )


def serve_line(*arguments: str, **turn: Any) -> tuple[list[dict[str, Any]], int]:
    """One message of a 0.4 bridge, which closes its end at once."""
    line = json.dumps({"type": "turn", "message": "hello", "session_id": ""} | turn).encode() + b"\n"
    done = subprocess.run(
        [*COMMAND, *arguments], input=line, capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    return [json.loads(said) for said in done.stdout.splitlines()], done.returncode


@contextmanager
def running(*arguments: str, env: dict[str, str], **pipes: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The process, gone after the block."""
    defaults: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process: subprocess.Popen[bytes] = subprocess.Popen([*COMMAND, *arguments], env=env, **(defaults | pipes))
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[bytes], text: str) -> list[str]:
    """The lines up to the first that holds a text."""
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or text not in lines[-1]:
        line = process.stdout.readline()
        assert line, f"it ended after {lines}"
        lines.append(line.decode().rstrip("\n"))
    return lines


@pytest.fixture
def script(tmp_path: Path) -> str:
    """Says which message of the conversation this is; also long, and with a tool that does not want to end."""
    tool = {"name": "Bash", "category": "exec", "args": {}}
    stubborn = ["sh", "-c", f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 300 & wait; sleep 300"]
    turns = [
        {"when": "long", "steps": [{"text": "one "}, {"text": "two "}, {"wait": 600}]},
        {"when": "deaf", "steps": [{"text": "x"}, {"hang": "deaf"}]},
        {"when": "tool", "steps": [{"text": "running"}, {"tool": {**tool, "run": stubborn}}]},
        {
            "when": "fail",
            "steps": [{"text": "half"}, {"fail": {"kind": "timeout", "message": "Too slow"}}],
            "outcome": "error",
        },
        {
            "when": "env",
            "steps": [{"tool": {**tool, "run": ["sh", "-c", "env"], "approved": [{"text": "{{output}}"}]}}],
        },
        {"steps": [{"text": "message {{turn}}, files {{files}}"}]},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"name": "test", "turns": turns}))
    return str(path)


# 0.1


def test_an_answer_streams_once_under_a_fresh_session() -> None:
    first, second = serve("echo"), serve("echo")
    assert first.lines == [f"AGENT_SESSION:{first.session}", 'AGENT_PARTIAL:"hello"']
    assert (first.code, first.log) == (0, "")
    assert first.session != second.session


def test_without_streaming_the_answer_is_the_body_escaped_where_it_looks_like_protocol() -> None:
    done = serve("echo", message="a\nAGENT_ERROR:b", AGENT_STREAMING="0")
    assert done.lines[1:] == ["a", " AGENT_ERROR:b"]


def test_an_answer_is_whole_however_late_it_is_read() -> None:
    from trunkline.base import stdio

    text = "word " * 20_000
    with subprocess.Popen(
        [sys.executable, "-m", "trunkline", "agentproc", "serve", "echo", "--no-session"],
        stdout=subprocess.PIPE, env=os.environ | {"AGENT_MESSAGE": text, "AGENT_STREAMING": "0"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        first = process.stdout.read(1)
        # Longer than a peer that has left is waited for.
        time.sleep(3 * stdio.LAST_WRITE_SECONDS)
        whole = first + process.stdout.read()
    assert whole.decode().strip() == text.strip()
    assert process.returncode == 0


def test_what_is_said_before_and_after_a_tool_are_paragraphs(script: str) -> None:
    turns = [
        {"steps": [{"text": "before"}, {"tool": {"name": "Read", "category": "info", "args": {}}}, {"text": "after"}]}
    ]
    Path(script).write_text(json.dumps({"name": "test", "turns": turns}))
    done = subprocess.run(
        [sys.executable, "-m", "trunkline", "agentproc", "serve", "--script", script, "--allow", "Read"],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True,
        env=os.environ | {"AGENT_MESSAGE": "x", "AGENT_STREAMING": "0"},
    )  # fmt: skip
    assert "before\n\nafter" in done.stdout


def test_a_resumed_conversation_remembers_and_keeps_its_id(script: str) -> None:
    first = serve("--script", script)
    second = serve("--script", script, session=first.session)
    assert (first.text, second.text) == ("message 1, files ", "message 2, files ")
    assert second.session == first.session


def test_a_conversation_goes_on_after_its_process_was_killed(script: str) -> None:
    with running("--script", script, env=variables("long")) as process:
        (session, said) = read_until(process, "AGENT_PARTIAL")
        assert said.startswith('AGENT_PARTIAL:"one')
        process.kill()
        process.wait(PATIENCE_SECONDS)
    again = serve("--script", script, session=session.removeprefix("AGENT_SESSION:"))
    assert again.text == "message 2, files "


@pytest.mark.parametrize("session", ["nobody-knows", "latest", "../../etc/passwd", "\udcff"])
def test_a_session_that_is_not_known_here_is_an_error_that_says_so(session: str) -> None:
    done = serve("echo", session=session)
    assert done.code == 1
    (line,) = done.lines
    assert line.startswith('AGENT_ERROR:"Session not found: ')


def test_a_conversation_with_another_agent_is_not_gone_on_with(script: str) -> None:
    session = serve("echo").session
    done = serve("--script", script, session=session)
    assert done.code == 1
    assert done.lines == [
        'AGENT_ERROR:"This conversation is with `echo`, and here is `scripted`. Begin a new conversation."'
    ]
    assert serve("echo", session=session).code == 0


def test_an_output_that_is_full_is_said_so_and_so_is_a_bridge_of_another_version() -> None:
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            [*COMMAND, "echo"],
            env=variables("hello") | {"AGENT_PROTOCOL_VERSION": "9"},
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert process.returncode == 1
    assert b"standard output cannot be written: No space left on device" in process.stderr
    assert process.stderr.count(b"protocol '9'") == 1


def test_a_session_that_another_process_has_is_an_error_and_no_answer(script: str) -> None:
    with running("--script", script, env=variables("long")) as process:
        session = read_until(process, "AGENT_PARTIAL")[0].removeprefix("AGENT_SESSION:")
        done = serve("--script", script, session=session)
    assert done.code == 1
    (line,) = done.lines
    assert line.startswith("AGENT_ERROR:")
    assert "is in use by process" in line


def test_a_conversation_that_is_not_kept_has_no_id_and_leaves_nothing() -> None:
    done = serve("echo", "--no-session", session="whatever")
    assert done.lines == ['AGENT_PARTIAL:"hello"']
    assert not Path(os.environ["TRUNKLINE_HOME"]).exists()


def test_a_failed_turn_is_an_error_with_the_exit_code_of_its_fault(script: str) -> None:
    done = serve("--script", script, message="fail", AGENT_STREAMING="0")
    assert done.lines[1:] == ['AGENT_ERROR:"Too slow"']
    assert done.code == 124


@pytest.mark.parametrize(
    ("arguments", "message", "code", "says"),
    [
        (["nosuch"], "x", 1, "There is no agent `nosuch`"),
        (["scripted"], "x", 1, "needs a script"),
        (["echo"], " ", 1, "The message is empty"),
        (["echo", "--workspace", "/no/such/place"], "x", 1, "/no/such/place"),
        (["echo", "--nonsense"], "x", 2, "--nonsense"),
        (["echo", "--mode", "turbo"], "x", 2, "turbo"),
        (["coder"], "x", 1, "No model is configured"),
    ],
)
def test_what_keeps_it_from_answering_is_told_in_the_chat_and_in_the_log(
    arguments: list[str], message: str, code: int, says: str
) -> None:
    done = serve(*arguments, message=message)
    assert done.code == code
    (line,) = done.lines
    assert line.startswith("AGENT_ERROR:")
    assert says in line
    assert says in done.log
    assert list(Path(os.environ["TRUNKLINE_HOME"]).glob("sessions/*.log")) == []


def test_options_may_be_variables_and_a_denied_tool_is_named_in_the_log() -> None:
    denied = serve(message="create a.py", TRUNKLINE_SCRIPT="tour")
    assert "Then I leave it" in denied.text
    assert "`Write` (edit) was not allowed" in denied.log
    allowed = serve(message="create a.py", TRUNKLINE_SCRIPT="tour", TRUNKLINE_MODE="auto_edit")
    assert "says hello now" in allowed.text
    assert allowed.log == ""


def test_what_the_bridge_said_reaches_no_child_of_the_agent(script: str) -> None:
    done = serve("--script", script, "--auto-approve", message="env", AGENT_FROM_USER="ann")
    assert "PATH=" in done.text
    assert "AGENT_" not in done.text


def test_hostile_variables_are_answered_as_well_as_can_be(script: str) -> None:
    done = serve("echo", message=os.fsdecode(b"caf\xe9"), AGENT_ATTACHMENTS='[{"type":', AGENT_STREAMING="yes")
    assert done.lines[1:] == ['AGENT_PARTIAL:"caf\ufffd"']
    attached = json.dumps([{"type": "file", "url": "file:///a%20b", "name": ""}, {"type": "image"}, 7])
    assert serve("--script", script, AGENT_ATTACHMENTS=attached).text == "message 1, files /a b"


def test_a_file_of_the_web_is_fetched_but_not_from_this_machine_unless_that_is_allowed(script: str) -> None:
    with served() as server:
        server.answers["/notes.txt"] = (200, {}, b"data")
        url = server.url("/notes.txt")
        done = serve("--script", script, AGENT_FILE_URL=url)
        assert (done.code, done.text) == (0, "message 1, files ")
        assert "of this machine or of its network" in done.log
        assert server.asked == []
        done = serve("--script", script, "--allow-private-urls", AGENT_FILE_URL=url)
        assert done.text.endswith("/1-notes.txt")
        assert not os.path.exists(done.text.removeprefix("message 1, files "))
        done = serve("--script", script, "--allow-private-urls", "--no-fetch", AGENT_FILE_URL=url)
        assert (done.text, len(server.asked)) == ("message 1, files ", 1)
    echoed = serve("echo", AGENT_FILE_URL="http://127.0.0.1:9/x").text
    assert echoed.startswith("hello\n\n[Attached file: http://127.0.0.1:9/x (not here: ")


def test_it_never_waits_for_standard_input_and_takes_a_long_message_from_there() -> None:
    reading, writing = os.pipe()
    try:
        with running("echo", env=variables("hello"), stdin=reading) as process:
            assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        os.close(reading)
        os.close(writing)
    long = b"word " * 40_000
    environ = variables("") | {"AGENT_STREAMING": "0"}
    del environ["AGENT_MESSAGE"]
    done = subprocess.run([*COMMAND, "echo"], env=environ, input=long, capture_output=True, check=True)
    assert done.stdout.split(b"\n", 1)[1] == long + b"\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_in_the_middle_flushes_what_was_said_and_ends_it(
    script: str, number: signal.Signals, code: int
) -> None:
    with running("--script", script, env=variables("long")) as process:
        lines = read_until(process, "AGENT_PARTIAL")
        process.send_signal(number)
        rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == code
    said = Ran([*lines, *rest.decode().splitlines()], code, "")
    assert said.text == "one two "
    assert "AGENT_ERROR" not in rest.decode()


def test_neither_a_deaf_agent_nor_its_stubborn_tool_outlives_the_signal(script: str, tmp_path: Path) -> None:
    for message in ("deaf", "tool"):
        with running("--script", script, "--auto-approve", env=variables(message)) as process:
            read_until(process, "AGENT_PARTIAL")
            while message == "tool" and not (tmp_path / "pid").exists():
                assert process.poll() is None
                select.select([], [], [], 0.01)
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 143
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_bridge_that_is_gone_ends_it_also_while_there_is_nothing_to_say(script: str) -> None:
    with running("--script", script, env=variables("long"), stderr=subprocess.PIPE) as process:
        read_until(process, "AGENT_PARTIAL")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(PATIENCE_SECONDS) == 141
        assert process.stderr.read() == b""


# 0.4


def test_0_4_is_spoken_to_a_bridge_that_writes_a_turn(script: str) -> None:
    said, code = serve_line("--script", script)
    session = said[0]["session_id"]
    assert said == [
        {"type": "partial", "text": "", "session_id": session},
        {"type": "partial", "text": "message 1, files "},
        {"type": "result", "text": "message 1, files ", "session_id": session},
    ]
    assert code == 0
    said, _ = serve_line("--script", script, session_id=session)
    assert said[-1] == {"type": "result", "text": "message 2, files ", "session_id": session}


def test_0_4_has_errors_for_whatever_goes_wrong() -> None:
    said, code = serve_line("echo", session_id="nobody-knows")
    assert (said[0]["type"], code) == ("error", 1)
    assert "Session not found" in said[0]["message"]
    done = subprocess.run([*COMMAND, "echo"], input=b"hello\n", capture_output=True, check=False)
    assert json.loads(done.stdout)["type"] == "error"
    assert done.returncode == 1


def test_permission_is_asked_in_the_chat_and_the_tool_runs_after_it_was_given() -> None:
    env = dict(os.environ)
    with running("--script", "tour", env=env, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        turn = {"type": "turn", "message": "create a.py", "session_id": "", "permission": True}
        process.stdin.write(json.dumps(turn).encode() + b"\n")
        for tool, behavior in (("Write", "allow"), ("Edit", "deny")):
            process.stdin.flush()
            request = json.loads(read_until(process, "permission_request")[-1])
            assert request["tool_name"] == tool
            answer = {"type": "permission_response", "request_id": request["request_id"], "behavior": behavior}
            process.stdin.write(json.dumps(answer).encode() + b"\n")
        rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0
    result = json.loads(rest.splitlines()[-1])
    assert result["text"].endswith("let me mend that.\n\nThe typo stays, then: User denied.")
    assert result["usage"] == {"input_tokens": 310, "output_tokens": 96}


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_what_a_program_of_the_hub_asks_goes_on_to_the_bridge(name: str, tmp_path: Path) -> None:
    install_fake(tmp_path, name)
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    with running(f"agentproc:{name}", "--no-session", env=env, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        turn = {"type": "turn", "message": "ask twice", "session_id": "", "permission": True}
        process.stdin.write(json.dumps(turn).encode() + b"\n")
        for behavior in ("allow", "deny"):
            process.stdin.flush()
            request = json.loads(read_until(process, "permission_request")[-1])
            assert request["tool_name"] == "Bash"
            answer = {"type": "permission_response", "request_id": request["request_id"], "behavior": behavior}
            process.stdin.write(json.dumps(answer).encode() + b"\n")
        rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == 0
    assert "allowed, denied" in json.loads(rest.splitlines()[-1])["text"]


def test_0_4_is_not_interactive_unless_the_bridge_says_that_it_answers() -> None:
    said, code = serve_line("--script", "tour", message="create a.py")
    assert code == 0
    assert {event["type"] for event in said} == {"partial", "result"}
    assert "there is nobody to ask" in said[-1]["text"]


async def test_the_coding_agent_looks_for_a_model_as_it_does_in_a_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    options = agentproc_serve.make_parser().parse_args(["coder"])
    given = agent_options.model_options(options)
    agent = await agentproc_serve._agent(options, str(tmp_path), given)
    settings = opening.settings_of(agent)
    assert settings is not None
    assert settings.model.base_url == given["base_url"] == "http://127.0.0.1:9/v1"
    said = capfd.readouterr().err
    assert said == f"The model is `{settings.model.model}`: `OPENAI_BASE_URL` is set.\n"


def test_its_help_is_for_people_and_on_standard_output() -> None:
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, check=True, text=True)
    assert done.stdout.startswith("usage: trunkline agentproc serve")
    assert done.stderr == ""
