"""`trunkline agentproc run`: what a bridge that spawns it sees."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.base.processes import is_alive, until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.unmeasured import unmeasured
from trunkline.cli import agentproc_run
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.messages import Attachment
from trunkline.wires.agentproc.profile import Profile

COMMAND = (sys.executable, "-m", "trunkline", "agentproc", "run")

Write = Callable[..., str]


@pytest.fixture
def profile(tmp_path: Path) -> Write:
    """The path of a profile whose agent is a shell script."""

    def write(script: str, **fields: Any) -> str:
        agent = tmp_path / "agent.sh"
        agent.write_text(f"#!/bin/sh\n{script}\n")
        agent.chmod(0o755)
        path = tmp_path / "profile.yaml"
        path.write_text(json.dumps({"command": str(agent), **fields}))
        return str(path)

    return write


def run(profile: str, *arguments: str, message: str = "hi", **options: Any) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "--profile", profile, "--message", message, *arguments]
    options = {"capture_output": True, "text": True, "timeout": PATIENCE_SECONDS, "check": False} | options
    done: subprocess.CompletedProcess[str] = subprocess.run(command, **options)
    return done


def result(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.process
class TestProcess:
    def test_the_answer_goes_to_stdout_and_the_session_to_stderr(self, profile: Write) -> None:
        done = run(
            profile("""echo 'AGENT_PARTIAL:"one "'; echo AGENT_SESSION:s1; echo 'AGENT_PARTIAL:"two"'; echo body""")
        )
        assert done.stdout == "one two\nbody\n"
        assert "session: s1" in done.stderr
        assert done.returncode == 0

    def test_with_json_the_last_line_is_one_object_with_everything(self, profile: Write) -> None:
        done = run(profile("""echo 'AGENT_PARTIAL:"one"'; echo AGENT_SESSION:s1; echo "é"; exit 0"""), "--json")
        assert result(done) == {
            "reply": "é", "partials": ["one"], "session_id": "s1", "error": "", "exit_code": 0,
            "timed_out": False, "truncated": False,
        }  # fmt: skip

    def test_a_failed_turn_has_its_error_and_its_exit_code(self, profile: Write) -> None:
        path = profile("""echo body; echo 'AGENT_ERROR:"bad"'; exit 7""")
        done = run(path, "--json", "--session", "s0")
        assert (done.returncode, result(done)["exit_code"]) == (7, 7)
        assert (result(done)["reply"], result(done)["error"], result(done)["session_id"]) == ("", "bad", "s0")
        plain = run(path)
        assert (plain.stdout, plain.returncode) == ("", 7)
        assert "bad" in plain.stderr

    def test_a_timeout_exits_124(self, profile: Write) -> None:
        done = run(profile("sleep 60", timeout_secs=0.3, kill_grace_secs=0.2), "--json")
        assert done.returncode == 124
        assert result(done)["timed_out"] is True

    def test_a_program_that_is_missing_still_gives_the_object(self, tmp_path: Path) -> None:
        path = tmp_path / "p.yaml"
        path.write_text("command: /no/such/program\n")
        done = run(str(path), "--json")
        assert done.returncode == result(done)["exit_code"] == 127
        assert "/no/such/program" in result(done)["error"]
        assert "Traceback" not in done.stderr

    def test_a_known_program_that_is_missing_is_told_with_what_installs_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        done = run("claude-code")
        assert done.returncode == 127
        assert "Install it with:\n    npm install -g @anthropic-ai/claude-code\n" in done.stderr

    def test_a_profile_that_cannot_be_loaded_is_a_message_and_exit_2(self, tmp_path: Path) -> None:
        path = tmp_path / "p.yaml"
        path.write_text("command: [1\n")
        done = run(str(path), "--json")
        assert (done.returncode, done.stdout) == (2, "")
        assert str(path) in done.stderr
        assert "Traceback" not in done.stderr

    def test_the_message_is_read_from_stdin_without_the_last_line_feed(self, profile: Write) -> None:
        done = run(profile('printf "[%s]" "$AGENT_MESSAGE"'), message="-", input="one\ntwo\n")
        assert done.stdout == "[one\ntwo]\n"

    def test_options_reach_the_agent(self, profile: Write) -> None:
        script = 'echo "$AGENT_SESSION_NAME $AGENT_FROM_USER $AGENT_STREAMING $AGENT_IMAGE_URL $AGENT_FILE_URL"'
        done = run(
            profile(script), "--session-name", "work", "--from", "ann", "--no-stream",
            "--image-url", "http://i/1", "--attach", "file=http://f/2=two",
        )  # fmt: skip
        assert done.stdout == "work ann 0 http://i/1 http://f/2\n"

    def test_without_streaming_partials_are_left_out(self, profile: Write) -> None:
        done = run(profile("""echo 'AGENT_PARTIAL:"x"'; echo body"""), "--no-stream", "--json")
        assert (result(done)["partials"], result(done)["reply"]) == ([], "body")

    def test_pieces_appear_as_they_come(self, profile: Write, tmp_path: Path) -> None:
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        path = profile(f"""echo 'AGENT_PARTIAL:"first"'; read -r _ < {gate}; echo done""")
        with subprocess.Popen([*COMMAND, "--profile", path, "--message", "x"], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.read(5) == b"first"
            gate.write_text("go\n")
            assert process.stdout.read() == b"\ndone\n"
        assert process.returncode == 0

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
    def test_a_signal_takes_the_agents_tree_along(
        self, profile: Write, tmp_path: Path, number: signal.Signals, code: int
    ) -> None:
        path = profile(
            f"sleep 60 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/pid; echo 'AGENT_PARTIAL:\"x\"'; wait"
        )
        command = [*COMMAND, "--profile", path, "--message", "x", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
            process.send_signal(number)
            out, _ = process.communicate(timeout=PATIENCE_SECONDS)
        assert process.returncode == json.loads(out)["exit_code"] == code
        for name in ("pid", "child"):
            assert not is_alive(int((tmp_path / name).read_text()))

    def test_a_second_signal_does_not_wait_for_the_grace(self, profile: Write, tmp_path: Path) -> None:
        script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 60; done"
        path = profile(script, kill_grace_secs=600)
        with subprocess.Popen([*COMMAND, "--profile", path, "--message", "x"]) as process:
            until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_SECONDS) in (143, 130)
        assert not is_alive(int((tmp_path / "pid").read_text()))

    def test_kill_9_leaves_nothing_running(self, profile: Write, tmp_path: Path) -> None:
        path = profile(f"sleep 60 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/pid; wait")
        with subprocess.Popen([*COMMAND, "--profile", path, "--message", "x"]) as process:
            until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
            process.kill()
        pids = [int((tmp_path / name).read_text()) for name in ("pid", "child")]
        until(lambda: not any(map(is_alive, pids)))

    def test_an_output_that_nobody_reads_ends_the_agent(self, profile: Write, tmp_path: Path) -> None:
        path = profile(
            f"""echo $$ > {tmp_path}/pid; while echo 'AGENT_PARTIAL:"x"'; do :; done""", max_reply_chars=10**9
        )
        process = subprocess.Popen(
            [*COMMAND, "--profile", path, "--message", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(PATIENCE_SECONDS) == 141
        assert b"Traceback" not in process.stderr.read()
        process.stderr.close()
        assert not is_alive(int((tmp_path / "pid").read_text()))

    def test_what_a_failed_agent_wrote_to_its_stderr_is_shown_without_secrets(self, profile: Write) -> None:
        path = profile('echo "key $MY_API_KEY" >&2; exit 3')
        done = run(path, env=os.environ | {"MY_API_KEY": "sk-very-secret-value"})
        assert "Its standard error:\nkey " in done.stderr
        assert "sk-very-secret-value" not in done.stderr
        assert "Its standard error" not in run(profile("echo log >&2; echo fine")).stderr

    def test_with_verbose_it_is_shown_as_it_comes(self, profile: Write) -> None:
        done = run(profile("echo log >&2; echo fine"), "--verbose")
        assert (done.stdout, done.stderr) == ("fine\n", "log\n")

    def test_an_agent_that_said_nothing_is_mentioned(self, profile: Write) -> None:
        done = run(profile("exit 0"))
        assert (done.stdout, done.returncode) == ("", 0)
        assert "said nothing\n" in done.stderr
        unwanted = run(profile("""echo 'AGENT_PARTIAL:"x"'"""), "--no-stream")
        assert (unwanted.stdout, unwanted.returncode) == ("", 0)
        assert "said nothing but partials" in unwanted.stderr

    def test_a_session_that_no_agent_can_have_given_is_refused(self, profile: Write) -> None:
        for session in ("a/b", "a b"):
            done = run(profile("echo ran"), "--session", session)
            assert (done.stdout, done.returncode) == ("", 2)
            assert f"`--session`: `{session}` cannot be the id of a session" in done.stderr

    def test_on_a_terminal_the_message_is_asked_for_and_nothing_of_the_answer_is_a_command(
        self, profile: Write
    ) -> None:
        path = profile("""printf 'AGENT_PARTIAL:"a\\\\u001b]0;evil\\\\u0007b"\\nbody \\033[2J\\n'""")
        master, slave = os.openpty()
        command = [*COMMAND, "--profile", path, "--message", "-"]
        with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.PIPE) as process:
            os.close(slave)
            os.write(master, b"hi\n\x04")
            shown = b""
            with contextlib.suppress(OSError):
                while piece := os.read(master, 4096):
                    shown += piece
            assert process.stderr is not None
            assert b"Ctrl-D" in process.stderr.read()
        os.close(master)
        assert b"body" in shown
        assert not set(shown) & {0x1B, 0x07}

    def test_in_any_locale_the_message_is_utf_8(self, profile: Write) -> None:
        path = profile(
            'printf "%s|%s|" "$AGENT_MESSAGE" "$1"; cat', protocol="auto", args=["ö {{MESSAGE}}"], allow_unsafe=True
        )
        plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
        done = run(path, message="-", input="é", encoding="utf-8", env=os.environ | plain)
        message, argument, line = done.stdout.split("|")
        assert (message, argument, json.loads(line)["message"]) == ("é", "ö é", "é")

    def test_a_signal_that_is_ignored_from_the_start_stays_so(self, profile: Write, tmp_path: Path) -> None:
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        path = profile(f"""echo 'AGENT_PARTIAL:"ready"'; read -r _ < {gate}; echo done""")
        command = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *COMMAND, "--profile", path, "--message", "x"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.read(5) == b"ready"
            process.send_signal(signal.SIGHUP)
            gate.write_text("go\n")
            assert process.stdout.read() == b"\ndone\n"
        assert process.returncode == 0

    def test_an_output_that_does_not_wait_gets_everything(self, profile: Write) -> None:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        path = profile("seq 1 50000", max_reply_chars=10**7)
        with subprocess.Popen([*COMMAND, "--profile", path, "--message", "x"], stdout=writing) as process:
            os.close(writing)
            with open(reading) as pipe:
                lines = pipe.read().splitlines()
        assert (len(lines), process.returncode) == (50_000, 0)

    def test_an_output_that_is_full_is_said_so(self, profile: Write) -> None:
        with open("/dev/full", "w") as full:
            done = run(profile("echo hi"), capture_output=False, stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 1
        assert "cannot be written" in done.stderr
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGINT])
    def test_a_reader_that_does_not_read_keeps_neither_the_time_limit_nor_a_signal(
        self, profile: Write, tmp_path: Path, number: signal.Signals | None
    ) -> None:
        script = f"""echo $$ > {tmp_path}/pid; while echo 'AGENT_PARTIAL:"xxxxxxxxxxxxxxxx"'; do :; done"""
        limit = 1 if number is None else 60
        path = profile(script, max_reply_chars=10**9, timeout_secs=limit, kill_grace_secs=0.2)
        command = [*COMMAND, "--profile", path, "--message", "x"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if number is not None:
            until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
            process.send_signal(number)
        assert process.wait(PATIENCE_SECONDS) == (124 if number is None else 128 + number)
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stderr.read()
        if number is None:
            assert b"did not answer within 1 second" in said
            assert b"the rest of it is lost" in said
        process.stdout.close()
        process.stderr.close()
        assert not is_alive(int((tmp_path / "pid").read_text()))

    def test_warnings_have_an_end_and_nobody_waits_for_their_reader(self, profile: Write) -> None:
        path = profile("for n in $(seq 1 3000); do echo 'AGENT_SESSION:no good'; done; echo answer")
        reading, writing = os.pipe()
        done = run(path, capture_output=False, stdout=subprocess.PIPE, stderr=writing)
        os.close(writing)
        with open(reading) as pipe:
            lines = pipe.read().splitlines()
        assert done.stdout == "answer\n"
        assert len(lines) == 21
        assert "not shown" in lines[-1]

    def test_without_a_standard_output_it_does_not_even_begin(self, profile: Write, tmp_path: Path) -> None:
        path = profile(f"touch {tmp_path}/ran")
        command = " ".join([*COMMAND, "--profile", path, "--message", "x", "--json", ">&-"])
        done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, timeout=PATIENCE_SECONDS, check=False)
        assert done.returncode == 2
        assert b"closed" in done.stderr
        assert not (tmp_path / "ran").exists()

    def test_a_profile_that_is_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        assert run(str(tmp_path / "fifo")).returncode == 2

    def test_a_permission_request_is_denied_at_once(self, tmp_path: Path) -> None:
        agent = tmp_path / "agent.py"
        agent.write_text(
            "import json, sys\nsys.stdin.readline()\n"
            'ask = {"type": "permission_request", "request_id": "r", "tool_name": "Write", "input": {}}\n'
            "print(json.dumps(ask), flush=True)\n"
            'print(json.dumps({"type": "result", "text": json.loads(sys.stdin.readline())["behavior"]}))\n'
        )
        path = tmp_path / "p.yaml"
        path.write_text(f'command: {sys.executable}\nargs: ["{agent}"]\nprotocol: "0.4"\npermission: true\n')
        done = run(str(path), "--json")
        assert result(done)["reply"] == "deny"
        assert "Write" in done.stderr

    def test_the_directory_and_variables_of_the_command_line_come_before_the_profiles(
        self, profile: Write, tmp_path: Path
    ) -> None:
        path = profile(
            'pwd; echo "$A|$B|$C"',
            cwd="/nowhere",
            env={"A": "profile", "B": "${HOME}"},
            env_allowlist=["HOME"],
        )
        given = ["--env", "A=${HOME} {{MESSAGE}}", "--env", "C=x=y"]
        done = run(path, "--cwd", str(tmp_path), *given)
        assert done.stdout == f"{tmp_path}\n${{HOME}} {{{{MESSAGE}}}}|{os.environ['HOME']}|x=y\n"

    def test_the_time_limit_of_the_command_line_counts(self, profile: Write) -> None:
        path = profile("sleep 60", kill_grace_secs=0, timeout_secs=50)
        assert run(path, "--timeout", "0.2").returncode == 124

    def test_raw_is_what_the_agent_prints_byte_by_byte_and_the_turn_ends_as_ever(self, profile: Write) -> None:
        path = profile("""printf 'AGENT_PARTIAL:"a"\\r\\nAGENT_SESSION:s1\\n\\377\\033[1mbody'; exit 3""")
        with open(path + ".out", "w+b") as file:
            done = run(path, "--raw", capture_output=False, stdout=file, stderr=subprocess.PIPE)
            file.seek(0)
            assert file.read() == b'AGENT_PARTIAL:"a"\r\nAGENT_SESSION:s1\n\xff\x1b[1mbody'
        assert done.returncode == 3
        assert "session: s1" in done.stderr

    def test_an_agent_of_protocol_0_4_needs_no_word_about_it_in_its_profile(self, tmp_path: Path) -> None:
        agent = tmp_path / "my agents" / "bridge"
        agent.parent.mkdir()
        agent.write_text(
            f"#!{sys.executable}\nimport json, sys\nturn = json.loads(sys.stdin.readline())\n"
            'print(json.dumps({"type": "result", "text": "You said: " + turn["message"], "session_id": "s:1"}))\n'
            'print(json.dumps({"type": "result", "text": "", "session_id": "s1"}))\n'
        )
        agent.chmod(0o755)
        path = tmp_path / "profile.yaml"
        path.write_text('name: echo\nagentproc:\n  executor: echo\n  command: "{{PROFILE_DIR}}/my agents/bridge"\n')
        done = run(str(path), "--json", message="hello")
        assert (result(done)["reply"], result(done)["session_id"]) == ("You said: hello", "s1")
        assert "'s:1' was ignored" in done.stderr

    def test_it_starts_without_an_event_loop_and_without_what_it_does_not_need(self, profile: Write) -> None:
        command = [sys.executable, "-X", "importtime", "-m", "trunkline", "agentproc", "run"]
        done = subprocess.run(
            [*command, "--profile", profile("echo hi"), "--message", "x"],
            capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True, env=unmeasured(),
        )  # fmt: skip
        imported = {
            line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")
        }
        assert done.stdout == "hi\n"
        assert imported.isdisjoint(
            {"asyncio", "argparse", "click", "rich", "httpx", "logging", "dataclasses", "inspect"}
        )


def test_options_are_read_alike_on_the_short_way_and_by_argparse() -> None:
    arguments = ["--profile", "p", "--message", "-m", "--session", "", "--from", "--json", "--json", "--no-stream"]
    arguments += ["--env", "A=b", "--cwd", "x", "--env", "-C=d", "--timeout", "1.5", "--raw", "-v"]
    quick = agentproc_run._parse(arguments)
    whole = agentproc_run._parse_all(arguments)
    assert vars(quick) == vars(whole)
    assert (quick.message, quick.from_user, quick.json) == ("-m", "--json", True)


@pytest.mark.parametrize(
    "arguments", [[], ["--profile", "p"], ["--profile"], ["--profile", "p", "--message", "m", "--x"]]
)
def test_a_wrong_command_line_says_what_is_wrong(arguments: list[str]) -> None:
    with pytest.raises(ConfigError, match="--help"):
        agentproc_run._parse(arguments)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--cwd", "/nowhere"], "`--cwd`: `/nowhere` is not a directory"),
        (["--env", "NAME"], "`--env`: `NAME` must be NAME=VALUE"),
        (["--env", "=x"], "`--env`: '' cannot be the name of a variable"),
        (["--env", "A B=1"], "`--env`: 'A B' cannot be the name of a variable"),
        (["--cwd", ""], "`--cwd` is empty"),
        (["--env", "AGENT_MESSAGE=x"], "`AGENT_MESSAGE` belongs to the protocol"),
        (["--timeout", "soon"], "`--timeout`: `soon` must be a number of seconds"),
        (["--timeout", "-1"], "must be a number of seconds"),
        (["--timeout", "nan"], "must be a number of seconds"),
        (["--raw", "--json"], "do not go together"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(arguments: list[str], complaint: str) -> None:
    options = agentproc_run._parse(["--profile", "p", "--message", "m", *arguments])
    with pytest.raises(ConfigError, match=re.escape(complaint)):
        agentproc_run._adjusted(Profile(("x",)), options)


def test_no_time_limit_is_0() -> None:
    options = agentproc_run._parse(["--profile", "p", "--message", "m", "--timeout", "0"])
    assert agentproc_run._adjusted(Profile(("x",)), options).timeout_secs is None


@pytest.mark.parametrize(
    ("text", "attachment"),
    [
        ("image=http://x/y", Attachment("image", "http://x/y")),
        ("image=http://x/y=cat.jpg", Attachment("image", "http://x/y", "cat.jpg")),
        ("file=http://x/y?a=b", Attachment("file", "http://x/y?a=b")),
        ("file=http://x/y?a=b&c=d", Attachment("file", "http://x/y?a=b&c=d")),
        ("file=http://x/y?a=b&c=d=name", Attachment("file", "http://x/y?a=b&c=d", "name")),
        ("audio=data:audio/wav;base64,AAA=", Attachment("audio", "data:audio/wav;base64,AAA=")),
    ],
)
def test_an_attachment_is_a_type_a_url_and_maybe_a_name(text: str, attachment: Attachment) -> None:
    options = agentproc_run._parse(["--profile", "p", "--message", "m", "--attach", text])
    assert options.attachments == [attachment]


@pytest.mark.parametrize("text", ["image", "image=", "picture=http://x", "=x"])
def test_an_attachment_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="TYPE=URL"):
        agentproc_run._parse(["--profile", "p", "--message", "m", "--attach", text])
