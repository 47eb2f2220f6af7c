"""`trunkline chat` without a terminal: one answer on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.config import user_file
from trunkline.base.programs import own_command_here
from trunkline.cli import shelf

pytestmark = pytest.mark.process

CHAT = (sys.executable, "-m", "trunkline", "chat")
#: The program as it is, but for its patience with a server that is found on a busy machine.
PATIENT = f"""
from trunkline.models import discover_servers
discover_servers.PROBE_SECONDS = {PATIENCE_SECONDS}
from trunkline.cli import main
main()
"""

#: The program as it is, but it tells whom it looks up and connects to.
WATCHED = """
import sys
def told(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect", "socket.sendto"):
        print("reached:", *arguments[0:2] if event == "socket.getaddrinfo" else arguments[1], file=sys.stderr)
sys.addaudithook(told)
from trunkline.cli import main
main()
"""

SCRIPT = r"""
turns:
  - when: "^write"
    steps:
      - text: "I'll write it."
      - tool:
          name: Write
          args: {file_path: a.txt, content: hello}
          description: "Write to a.txt"
          output: "Created a.txt (1 lines)"
          approved: [{text: "It is written."}]
          denied: [{text: "Then not."}]
    usage: {input_tokens: 120, output_tokens: 30}
  - when: "^insist"
    steps:
      - tool: {name: Bash, args: {command: "rm -rf build"}}
      - fail: {kind: tool, message: "I cannot go on without it."}
  - when: "^work"
    steps:
      - plan: [{content: Look, status: in_progress}, Write]
      - plan: [{content: Look, status: completed}, {content: Write, status: in_progress}]
      - text: "Half done."
  - when: "^fail"
    steps:
      - text: "Half an ans"
      - fail: {kind: provider, message: "Rate limit exceeded", retryable: true}
  - when: "^hang"
    steps:
      - text: "Once upon a time.\n"
      - hang: true
  - when: "^flood"
    steps:
      - text: [FLOOD]
      - hang: true
  - steps:
      - text: "{{input}}[{{files}}]"
"""


@pytest.fixture
def scripted(tmp_path: Path) -> list[str]:
    flood = ", ".join(['"many words, again and again, more than any pipe holds\\n"'] * 4000)
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT.replace("FLOOD", flood))
    return ["scripted", "--script", str(path)]


def chat(*arguments: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    piped: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(
        [*CHAT, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env={**os.environ, **environment},
        **piped,
    )


def test_the_answer_is_all_there_is_on_standard_output(scripted: list[str]) -> None:
    done = chat(*scripted, "-p", "hello")
    assert (done.returncode, done.stdout) == (0, "hello[]\n")
    assert f"--resume {shelf.sessions()[0].id}" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_what_is_piped_in_is_the_message_or_comes_after_it() -> None:
    assert chat("echo", stdin="from a pipe").stdout == "from a pipe\n"
    assert chat("echo", "-p", "first", stdin="from a pipe\n").stdout == "first\n\nfrom a pipe\n"
    # What is piped in belongs to the first of several.
    assert chat("echo", "-p", "one", "-p", "two", stdin="piped\n").stdout == "one\n\npiped\ntwo\n"


def test_each_line_is_a_message_of_one_conversation_if_that_is_wanted(scripted: list[str]) -> None:
    done = chat(*scripted, "--lines", stdin="one\n\nfail now\ntwo\n")
    # It goes on after one that failed, and its exit code tells of that in the end.
    assert (done.returncode, done.stdout) == (1, "one[]\nHalf an ans\ntwo[]\n")
    assert [info.id for info in shelf.sessions()] == [done.stderr.split()[-1]]
    assert chat(*scripted, "--lines", stdin="one\nfail now\n").returncode == 1
    lines = chat("echo", "--lines", "--json", stdin="one\ntwo\n").stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["one", "two"]


def test_a_line_that_is_no_text_is_said_as_far_as_it_is_and_a_reader_who_leaves_ends_it() -> None:
    command = [*CHAT, "echo", "--lines", "--no-session", "--quiet"]
    done = subprocess.run(command, input=b"a\xffb\r\nc", capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stdout.decode()) == (0, "a\ufffdb\nc\n")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        # It answers before there is another line, and Ctrl-C ends it while it waits for one.
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130


def test_a_file_that_is_mentioned_is_attached(scripted: list[str], tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("x")
    done = chat(*scripted, "--workspace", str(tmp_path), "-p", "read @notes.md, not @nothing")
    assert done.stdout == "read @notes.md, not @nothing[notes.md]\n"


def test_nobody_can_be_asked_so_the_agent_goes_on_without_the_tool(scripted: list[str]) -> None:
    done = chat(*scripted, "-p", "write it")
    assert (done.returncode, done.stdout) == (0, "I'll write it.\nThen not.\n")
    assert "There was nobody to ask about Write" in done.stderr


def test_what_a_mode_or_a_rule_denies_is_not_advised_to_be_allowed(scripted: list[str]) -> None:
    done = chat(*scripted, "--mode", "plan", "--auto-approve", "-p", "write it")
    assert (done.returncode, done.stdout) == (0, "I'll write it.\nThen not.\n")
    assert "nobody to ask" not in done.stderr


def test_a_tool_that_is_allowed_ahead_runs(scripted: list[str]) -> None:
    for way in (["--allow", "Write"], ["--mode", "auto_edit"], ["--auto-approve"]):
        done = chat(*scripted, *way, "-p", "write it")
        assert (done.returncode, done.stdout) == (0, "I'll write it.\nIt is written.\n")
        assert "Write: Write to a.txt" in done.stderr


def test_of_a_plan_only_what_is_new_is_told_again(scripted: list[str]) -> None:
    done = chat(*scripted, "--no-session", "-p", "work")
    assert done.stdout == "Half done.\n"
    assert done.stderr.splitlines() == ["Plan:", "[>] Look", "[ ] Write", "[x] Look", "[>] Write"]


def test_options_can_be_given_as_variables(scripted: list[str]) -> None:
    assert "It is written." in chat(*scripted, "-p", "write it", TRUNKLINE_AUTO_APPROVE="1").stdout


def test_a_failure_has_its_own_exit_code_and_so_has_one_for_want_of_approval(scripted: list[str]) -> None:
    failed = chat(*scripted, "-p", "fail")
    assert (failed.returncode, failed.stdout) == (1, "Half an ans\n")
    assert "Error: Rate limit exceeded" in failed.stderr
    # The next message does not make it good.
    assert chat(*scripted, "-p", "fail", "-p", "hello").returncode == 1
    denied = chat(*scripted, "-p", "insist")
    assert denied.returncode == 3
    assert chat(*scripted, "-p", "insist", "--auto-approve").returncode == 1


def test_quiet_says_nothing_but_what_went_wrong(scripted: list[str]) -> None:
    assert chat(*scripted, "-q", "-p", "write it").stderr == ""
    assert chat(*scripted, "-q", "-p", "fail").stderr == "Error: Rate limit exceeded\n"


@pytest.mark.parametrize("more", [(), ("--quiet",)])
def test_the_answer_of_a_command_is_data_with_lines_of_its_own(tmp_path: Path, more: tuple[str, ...]) -> None:
    agent = ("coder", "--provider", "mock", "--workspace", str(tmp_path), "--no-session")
    done = chat(*agent, "-p", "/context", *more)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 2
    assert "\\n" not in done.stdout + done.stderr
    assert json.loads(chat(*agent, "-p", "/context", "--json", *more).stdout)["text"] + "\n" == done.stdout
    # What is told besides an answer is not a part of it.
    assert chat(*agent, "-p", "Hello", *more).stdout == "Hello\n"


def test_json_is_one_object_about_the_whole_turn(scripted: list[str]) -> None:
    done = chat(*scripted, "--json", "-p", "write it")
    summary = json.loads(done.stdout)
    assert summary == {
        "session": shelf.sessions()[0].id,
        "agent": "scripted",
        "model": None,
        "outcome": "success",
        "text": "I'll write it.\nThen not.",
        "usage": {"input_tokens": 120, "output_tokens": 30},
        "cost_usd": None,
        "tools": [{"name": "Write", "description": "Write to a.txt", "status": "cancelled"}],
        "denied": ["Write"],
        "errors": [],
        "events": [],
    }


def test_jsonl_is_one_object_per_event_as_an_export_has_them(scripted: list[str]) -> None:
    done = chat(*scripted, "--jsonl", "-p", "hello")
    kinds = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert kinds == ["TurnStarted", "TextDelta", "TurnEnded"]


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The program, which is gone after the block."""
    process = subprocess.Popen(
        [*CHAT, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_turn_and_keeps_the_session(scripted: list[str], number: signal.Signals, code: int) -> None:
    with running(*scripted, "-p", "hang") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "Once upon a time.\n"
        process.send_signal(number)
        _, told = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code
    assert "--resume" in told


def test_a_reader_that_leaves_ends_it_quietly(scripted: list[str]) -> None:
    with running(*scripted, "-q", "-p", "flood") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("many words")
        process.stdout.close()
        assert process.wait(PATIENCE_SECONDS) == 141
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_session_goes_on(scripted: list[str]) -> None:
    chat(*scripted, "--session-id", "mine", "-p", "one")
    done = chat(*scripted, "--resume", "mine", "-p", "two")
    assert done.stdout == "two[]\n"
    assert chat(*scripted, "-p", "three", "--resume").stdout == "three[]\n"
    assert [info.id for info in shelf.sessions()] == ["mine"]


@pytest.mark.parametrize("redirection", ["<&-", "</dev/null"])
@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ("echo", 2, "Error: There is nothing to ask. Say it with `-p TEXT`, or pipe it in."),
        ("echo --lines", 0, "Nothing was said: standard input is at its end. Pipe in what to say, a message a line."),
    ],
)
def test_where_there_is_no_input_one_line_says_so(redirection: str, arguments: str, code: int, line: str) -> None:
    command = shlex.join(CHAT)
    shell = ["sh", "-c", f"exec {command} {arguments} --no-session {redirection}"]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (code, "", line)


def test_an_input_that_cannot_be_read_is_not_called_an_output(tmp_path: Path) -> None:
    with open(tmp_path / "written", "w") as only_written:
        done = subprocess.run(
            [*CHAT, "echo"], stdin=only_written, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )
    assert (done.returncode, done.stderr) == (1, "Error: Standard input cannot be read: Bad file descriptor.\n")


def test_nothing_is_kept_if_that_is_asked_for(scripted: list[str]) -> None:
    done = chat(*scripted, "--no-session", "-p", "one")
    assert (done.returncode, shelf.sessions()) == (0, [])
    assert "--resume" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "There is nothing to ask"),
        (["-p", "x", "--json", "--jsonl"], "--json and --jsonl"),
        (["-p", "x", "--resume", "a", "--session-id", "b"], "--resume and --session-id"),
        (["-p", "x", "--no-session", "--resume", "a"], "--no-session"),
        (["-p", "x", "--mode", "wild"], "wild"),
    ],
)
def test_wrong_usage_is_told_apart(arguments: list[str], complaint: str) -> None:
    done = chat("echo", *arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nobody"], "There is no agent `nobody`"),
        (["echo", "--resume", "gone"], "Session 'gone' not found"),
        (["--resume", "echo"], "that is the name of an agent. Put the agent before `--resume`"),
        (["echo", "--workspace", "/nowhere/at/all"], "is not a directory"),
    ],
)
def test_what_keeps_it_from_starting_is_told(arguments: list[str], complaint: str) -> None:
    done = chat(*arguments, "-p", "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert complaint in done.stderr
    assert shelf.sessions() == []


def test_what_was_meant_as_a_question_is_told_how_to_ask_it() -> None:
    done = chat("what is this?")
    assert (done.returncode, done.stdout) == (1, "")
    assert "There is no agent `what is this?`." in done.stderr
    assert f"`{own_command_here()} chat -p 'what is this?'` asks that" in " ".join(done.stderr.split())


def test_what_an_answer_cost_is_told_with_its_tokens() -> None:
    file = Path(user_file())
    file.parent.mkdir(parents=True)
    file.write_text("[prices.mock]\ninput = 1000000.0\noutput = 0.0\n")
    assert "tokens: 2 in, 2 out; cost: $2.00\n" in chat("--provider", "mock", "-p", "hello you").stderr


def test_every_kind_of_agent_can_be_talked_to(tmp_path: Path) -> None:
    agent = "jsonstream:" + " ".join([sys.executable, "-m", "trunkline", "agent", "--json-stream", "--agent", "echo"])
    assert chat(agent, "-p", "through a pipe").stdout == "through a pipe\n"
    assert chat("trunkline.agents.echo:EchoAgent", "-p", "by name").stdout == "by name\n"
    assert chat("--provider", "mock", "-p", "by a model").returncode == 0


def test_a_short_answer_needs_no_heavy_package() -> None:
    statement = (
        "import sys; from trunkline.cli.chat import command; command(['echo', '-q', '-p', 'x'], 't', None, False)"
    )
    report = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {statement}"
    done = subprocess.run(
        [sys.executable, "-c", report],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.stdout == "x\n"
    imported = {name.partition(".")[0] for name in done.stderr.split()}
    assert "trunkline" in imported
    assert not imported & {"rich", "prompt_toolkit", "pygments", "markdown_it", "httpx", "yaml"}


class _Ollama(BaseHTTPRequestHandler):
    """As much of one as answers a question."""

    def do_GET(self) -> None:
        models = {"models": [{"name": "tiny:latest"}], "object": "list", "data": [{"id": "tiny:latest"}]}
        self._send("application/json", json.dumps(models).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        chunks: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Found"}}]},
            {"choices": [{"index": 0, "delta": {"content": " me."}, "finish_reason": "stop"}]},
        ]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self._send("text/event-stream", body.encode())

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nobody reads it."""


@contextmanager
def ollama() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ollama) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def chat_with_ollama(program: str, address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, "chat", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env={**os.environ, "OLLAMA_HOST": address},
    )


def test_without_configuration_a_model_is_found_and_the_choice_explained() -> None:
    with ollama() as address:
        done = chat_with_ollama(PATIENT, address, "-p", "hello")
    assert (done.returncode, done.stdout) == (0, "Found me.\n"), done.stderr
    assert "The model is `tiny:latest`: Ollama answers" in done.stderr


def test_it_reaches_nobody_but_the_model() -> None:
    """Nobody counts who uses it, or looks for a newer version."""
    with ollama() as address:
        done = chat_with_ollama(WATCHED, address, "--provider", "ollama", "--model", "tiny:latest", "-p", "hello")
    assert (done.returncode, done.stdout) == (0, "Found me.\n"), done.stderr
    reached = {line for line in done.stderr.splitlines() if line.startswith("reached:")}
    assert reached == {f"reached: {address.replace(':', ' ')}"}


def test_an_agent_that_cannot_answer_is_told_at_once_as_the_bridge_tells_it() -> None:
    done = chat("agentproc:claude-code", "-p", "hello", PATH="/nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: The agent `agentproc:claude-code` cannot answer. There is no program `claude` on `PATH`. "
        "Install it with:\n"
        "    npm install -g @anthropic-ai/claude-code\n"
    )
    assert "There is no program `nope`" in chat("jsonstream:nope", "-p", "hello", PATH="/nowhere").stderr
