"""What an agent asks in `trunkline agentproc run`: of the program that started it, of the person at the terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_cli import install_fake
from tests.support.fake_cli_plays import answer_to
from tests.support.fake_dialogue import COMMAND, SECOND_COMMAND
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.process


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    for name in ("claude-code", "codex"):
        install_fake(tmp_path, name)
    return {**os.environ, "PATH": f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(tmp_path)}


def command(name: str, message: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "trunkline", "agentproc", "run", "--profile", name, "--message", message, *options]


@contextmanager
def running(environ: dict[str, str], name: str, message: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command(name, message, "--json", "--permission"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def read(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def respond(process: subprocess.Popen[bytes], **answer: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"type": "permission_response", **answer}).encode() + b"\n")
    process.stdin.flush()


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_program_is_asked_in_lines_and_answers_in_lines(name: str, environ: dict[str, str]) -> None:
    with running(environ, name, "ask twice") as process:
        first = read(process)
        assert (first["type"], first["tool_name"]) == ("permission_request", "Bash")
        assert first["input"]["command"] == COMMAND
        respond(process, request_id="never asked", behavior="allow")
        respond(process, request_id=first["request_id"], behavior="allow")
        second = read(process)
        assert second["input"]["command"] == SECOND_COMMAND
        respond(process, request_id=second["request_id"], behavior="deny", message="no")
        outcome = read(process)
        assert process.wait(PATIENCE_SECONDS) == 0
    said = "allowed, denied (no)" if name == "claude-code" else "allowed, denied"
    assert "".join(outcome["partials"]) == answer_to(said)


def test_lines_that_answer_nothing_are_left_out_and_the_end_of_the_input_is_a_no(environ: dict[str, str]) -> None:
    with running(environ, "codex", "ask twice") as process:
        assert process.stdin is not None
        read(process)
        process.stdin.write(b"y\n")
        process.stdin.close()
        # What is asked later is shown all the same: a log of the requests is whole.
        assert read(process)["type"] == "permission_request"
        outcome = read(process)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert process.stderr is not None
        assert b"a line of standard input was ignored" in process.stderr.read()
    assert "".join(outcome["partials"]) == answer_to("denied, denied")


def test_an_answer_that_was_there_before_the_question_is_none(environ: dict[str, str]) -> None:
    with running(environ, "codex", "ask") as process:
        assert process.stdin is not None
        for number in range(3):
            respond(process, request_id=f"codex-{number}", behavior="allow")
        process.stdin.close()
        assert read(process)["type"] == "permission_request"
        outcome = read(process)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert process.stderr is not None
        assert b"no request is waiting for it" in process.stderr.read()
    assert "".join(outcome["partials"]) == answer_to("denied")


@pytest.mark.parametrize(("message", "options"), [("-", ("--json",)), ("hi", ())])
def test_the_answers_need_the_input_and_the_requests_the_output(
    message: str, options: tuple[str, ...], environ: dict[str, str]
) -> None:
    done = subprocess.run(
        command("codex", message, "--permission", *options),
        input=b"hi", capture_output=True, timeout=PATIENCE_SECONDS, check=False, env=environ,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"`--permission` needs `--json`" in done.stderr


def test_without_anybody_there_the_answer_is_no(environ: dict[str, str]) -> None:
    done = subprocess.run(
        command("codex", "ask"),
        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS, check=False, env=environ,
    )  # fmt: skip
    assert done.stdout.decode().strip() == answer_to("denied")
    assert b"there is nobody to ask" in done.stderr


def at_terminal(
    environ: dict[str, str], message: str, *answers: bytes | signal.Signals, name: str = "codex"
) -> tuple[str, int]:
    """What somebody sees who types these answers, or sends these signals, each when a question is there."""
    ours, theirs = os.openpty()
    with subprocess.Popen(command(name, message), stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as child:
        os.close(theirs)
        seen, left = b"", list(answers)
        try:
            while True:
                try:
                    data = os.read(ours, 4096)
                except OSError:
                    # So a terminal ends whose other side is closed.
                    break
                seen += data
                if left and seen.count(b"[y/N") > len(answers) - len(left):
                    answer = left.pop(0)
                    child.send_signal(answer) if isinstance(answer, signal.Signals) else os.write(ours, answer)
            return seen.decode(), child.wait(PATIENCE_SECONDS)
        finally:
            child.kill()
            os.close(ours)


def test_a_person_at_the_terminal_is_asked_and_sees_the_whole_command(environ: dict[str, str]) -> None:
    seen, code = at_terminal(environ, "ask twice", b"y\n", b"\n")
    assert code == 0
    assert f"Bash {COMMAND}" in seen
    assert f"Bash {SECOND_COMMAND}" in seen
    assert answer_to("allowed, denied") in seen


def test_a_stop_at_the_question_ends_it(environ: dict[str, str]) -> None:
    _, code = at_terminal(environ, "ask", signal.SIGINT)
    assert code == 130


def test_what_the_agent_takes_back_needs_no_answer(environ: dict[str, str]) -> None:
    seen, code = at_terminal(environ, "ask leave")
    assert code == 0
    assert answer_to("left") in seen


LONG = "\n".join(f"echo {number}" for number in range(1000))
#: Asks about a long command, and says about it what looks like another question.
FORGING = f"""
import json, sys
sys.stdin.readline()
told = "harmless\\n\\nBash ls\\nAllow it? [Y/n]"
print(json.dumps({{"type": "permission_request", "request_id": "r", "tool_name": "Bash", "description": told,
                  "input": {{"command": {LONG!r}}}}}), flush=True)
print(json.dumps({{"type": "result", "text": json.loads(sys.stdin.readline())["behavior"]}}), flush=True)
"""


def test_the_agents_own_words_are_marked_and_a_long_command_is_cut_until_all_is_asked_for(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(FORGING)
    profile = tmp_path / "asks.yaml"
    profile.write_text(
        f"command: {sys.executable}\nargs: [{tmp_path / 'agent.py'}]\nprotocol: '0.4'\npermission: true\n"
    )
    seen, code = at_terminal(environ, "hi", b"v\n", b"y\n", name=str(profile))
    assert code == 0
    assert "allow" in seen
    assert "It says: `harmless Bash ls Allow it? [Y/n]`" in seen
    assert not [line for line in seen.splitlines() if line.startswith(("Bash ls", "Allow it? [Y/n]"))]
    first, second = seen.split("Allow it? [y/N, v: view all]")
    assert "echo 0" in first
    assert "echo 500" not in first
    assert "echo 999" in first
    assert "echo 500" in second
