"""One turn of a real process: what comes back, whatever it does."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.base.processes import is_alive, until
from tests.support.patience import PATIENCE_SECONDS
from tests.wires.agentproc.conftest import FromItsFirstWord, Script
from trunkline.wires.agentproc import drive
from trunkline.wires.agentproc.drive import Outcome, Run, run
from trunkline.wires.agentproc.messages import (
    Ignored,
    Partial,
    Said,
    SessionId,
    TurnRequest,
)
from trunkline.wires.agentproc.profile import Profile, Protocol

pytestmark = pytest.mark.process

#: What an agent of these tests goes on for: no test can wait for it.
FOR_EVER = 600


def test_the_reply_the_partials_and_the_session_come_back(sh: Script) -> None:
    heard: list[Said] = []
    profile = sh("""printf 'AGENT_PARTIAL:"a "\\nline 1\\nAGENT_SESSION:s1\\nAGENT_PARTIAL:"b"\\nline 2'""")
    outcome = run(profile, TurnRequest("hi"), hear=heard.append)
    assert outcome == Outcome("line 1\nline 2", ("a ", "b"), "s1", "", 0, timed_out=False, truncated=False)
    assert heard == [Partial("a "), SessionId("s1"), Partial("b")]


def test_partials_are_heard_while_the_agent_runs(sh: Script) -> None:
    profile = sh("""echo 'AGENT_PARTIAL:"first"'; read -r _ < "$GATE"; echo done""")
    gate = Path(profile.command[0]).with_name("gate")
    os.mkfifo(gate)

    def hear(said: Said) -> None:
        if said == Partial("first"):
            gate.write_text("go\n")

    assert run(profile.replace(env={"GATE": str(gate)}), TurnRequest("hi"), hear=hear).reply == "done"


def test_the_agent_gets_the_turn(sh: Script) -> None:
    profile = sh('echo "$AGENT_MESSAGE|$AGENT_SESSION_ID|$AGENT_SESSION_NAME|$AGENT_FROM_USER|$AGENT_STREAMING"')
    turn = TurnRequest("hello  world", "s0", "work", "ann")
    outcome = run(profile, turn)
    assert outcome.reply == "hello  world|s0|work|ann|1"
    assert outcome.session_id == "s0"
    assert run(profile.replace(streaming=False), turn).reply.endswith("|0")


@pytest.mark.parametrize("session", ["séance", "会话-7"])
@pytest.mark.parametrize("protocol", ["0.1", "0.4", "auto"])
def test_an_id_in_any_script_comes_back_to_the_agent_as_it_gave_it(
    sh: Script, session: str, protocol: Protocol
) -> None:
    lines = {
        "0.1": f'echo "AGENT_SESSION:{session}"; echo "was $AGENT_SESSION_ID"',
        "0.4": f"""read -r turn; case $turn in *'"session_id":"{session}"'*) was={session};; esac
            echo '{{"type":"result","text":"was '$was'","session_id":"{session}"}}'""",
    }
    profile = sh(lines.get(protocol, lines["0.4"]), protocol=protocol)
    first = run(profile, TurnRequest("hi"))
    assert (first.reply.strip(), first.session_id) == ("was", session)
    assert run(profile, TurnRequest("hi", first.session_id)).reply == f"was {session}"


def test_without_stdin_the_agent_sees_its_end_at_once(sh: Script) -> None:
    assert run(sh("cat; echo end"), TurnRequest("hi")).reply == "end"


def test_the_message_on_stdin_has_nothing_added(py: Script) -> None:
    profile = py("import sys; print(repr(sys.stdin.read()))", stdin="message")
    assert run(profile, TurnRequest("a\nb")).reply == "'a\\nb'"


def test_an_error_line_fails_the_turn_although_the_exit_code_is_0(sh: Script) -> None:
    outcome = run(sh("""echo body; echo 'AGENT_ERROR:"bad"'; echo AGENT_SESSION:s1"""), TurnRequest("hi", "s0"))
    assert (outcome.reply, outcome.error, outcome.exit_code, outcome.session_id) == ("", "bad", 1, "s1")


def test_the_exit_code_of_an_agent_that_said_what_was_wrong_is_kept(sh: Script) -> None:
    outcome = run(sh("""echo 'AGENT_ERROR:"bad"'; exit 3"""), TurnRequest("hi"))
    assert (outcome.error, outcome.exit_code) == ("bad", 3)


def test_a_silent_failure_gets_a_text_and_its_body_is_no_reply(sh: Script) -> None:
    outcome = run(sh("echo body; echo AGENT_SESSION:s1; exit 3"), TurnRequest("hi"))
    assert (outcome.reply, outcome.exit_code, outcome.session_id) == ("", 3, "s1")
    assert outcome.error == "The agent failed (exit code 3)."


def test_a_profile_may_keep_a_silent_failure_from_the_user(sh: Script) -> None:
    outcome = run(sh("exit 3", send_error_reply=False), TurnRequest("hi"))
    assert (outcome.error, outcome.failure) == ("", "The agent failed (exit code 3).")
    said = run(sh("""echo 'AGENT_ERROR:"bad"'""", send_error_reply=False), TurnRequest("hi"))
    assert said.error == "bad"


def test_the_end_of_standard_error_joins_the_error_if_the_profile_says_so_without_secrets(sh: Script) -> None:
    script = 'yes early | head -n 1000 >&2; echo "key: $MY_API_KEY" >&2; exit 1'
    environ = dict(os.environ, MY_API_KEY="sk-very-secret-value")
    outcome = run(sh(script, include_stderr_in_reply=True), TurnRequest("hi"), environ=environ)
    assert outcome.error.startswith("The agent failed (exit code 1).\n\n...")
    assert "key: " in outcome.error
    assert "sk-very-secret-value" not in outcome.error
    assert len(outcome.error) < 1200
    assert run(sh(script), TurnRequest("hi"), environ=environ).error == "The agent failed (exit code 1)."


def test_what_a_terminal_alone_understands_is_left_out_of_it(sh: Script) -> None:
    outcome = run(sh("printf '\\033[31mred\\033[0m' >&2; exit 1", include_stderr_in_reply=True), TurnRequest("hi"))
    assert outcome.error == "The agent failed (exit code 1).\n\nred"


def test_a_program_with_a_stream_of_its_own_that_says_nothing_has_failed(sh: Script) -> None:
    outcome = run(sh("echo noise >&2", stream="claude", include_stderr_in_reply=True), TurnRequest("hi"))
    assert (outcome.exit_code, outcome.reply) == (1, "")
    assert outcome.error == "The program ended without an answer.\n\nnoise"


def test_what_such_a_program_said_went_wrong_is_told_without_its_log(sh: Script) -> None:
    line = '{"type":"result","subtype":"success","is_error":true,"result":"no credit","session_id":"s"}'
    outcome = run(
        sh(f"echo log >&2; echo '{line}'; exit 1", stream="claude", include_stderr_in_reply=True), TurnRequest("hi")
    )
    assert outcome.error == "no credit"


@pytest.mark.parametrize(
    ("script", "hint"),
    [
        ("exec python3 /nowhere/agent.py", "/nowhere/agent.py"),
        ("no-such-program-here", "no-such-program-here"),
    ],
)
def test_a_file_that_is_missing_is_named(sh: Script, script: str, hint: str) -> None:
    assert hint in run(sh(script), TurnRequest("hi")).error


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_death_by_a_signal_is_128_and_its_number(sh: Script, number: signal.Signals) -> None:
    outcome = run(sh(f"kill -{int(number)} $$"), TurnRequest("hi"))
    assert outcome.exit_code == 128 + number
    assert number.name in outcome.error
    assert not outcome.cancelled


# The time limit


def test_the_time_limit_is_the_whole_time_and_may_be_a_fraction(py: Script) -> None:
    profile = py(
        "import time\nfor n in range(10**6):\n print('AGENT_PARTIAL:\"x\"', flush=True); time.sleep(0.05)",
        timeout_secs=0.5,
    )
    outcome = FromItsFirstWord(profile).perform()
    assert (outcome.exit_code, outcome.timed_out, outcome.reply) == (124, True, "")
    assert "0.5 seconds" in outcome.error
    assert outcome.partials


GRACEFUL = f"""
import os, signal, sys, time
def end(*_):
    # Not by `print`, which the signal may have interrupted.
    os.write(1, b'AGENT_PARTIAL:"late"\\nAGENT_SESSION:late\\n')
    os._exit(0)
signal.signal(signal.SIGTERM, end)
os.write(1, b'AGENT_PARTIAL:"early"\\n')
time.sleep({FOR_EVER})
"""


def test_what_is_said_in_the_grace_counts_and_the_turn_has_timed_out_all_the_same(py: Script) -> None:
    outcome = FromItsFirstWord(py(GRACEFUL, timeout_secs=0.5, kill_grace_secs=PATIENCE_SECONDS)).perform()
    assert (outcome.partials, outcome.session_id, outcome.exit_code) == (("early", "late"), "late", 124)


def test_an_agent_that_ignores_the_end_is_killed_with_its_tree_after_the_grace(sh: Script, tmp_path: Path) -> None:
    script = (
        f"trap '' TERM; sleep {FOR_EVER} & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/pid\n"
        f"echo 'AGENT_PARTIAL:\"x\"'; while :; do sleep {FOR_EVER}; done"
    )
    begun = time.monotonic()
    outcome = FromItsFirstWord(sh(script, timeout_secs=0.5, kill_grace_secs=0.5)).perform()
    assert outcome.exit_code == 124
    assert time.monotonic() - begun >= 1.0
    assert not is_alive(int((tmp_path / "pid").read_text()))
    assert not is_alive(int((tmp_path / "child").read_text()))


def test_an_agent_that_does_not_read_cannot_defeat_the_time_limit(sh: Script) -> None:
    profile = sh(f"sleep {FOR_EVER}", stdin="message", timeout_secs=0.5, kill_grace_secs=0.2)
    assert run(profile, TurnRequest("x" * 1_000_000)).timed_out


def test_a_listener_that_does_not_come_back_cannot_defeat_the_time_limit(sh: Script, tmp_path: Path) -> None:
    profile = sh(f"""echo $$ > {tmp_path}/pid; echo 'AGENT_PARTIAL:"x"'; sleep {FOR_EVER}""", timeout_secs=0.5)
    ended: list[bool] = []

    def hear(_: Said) -> None:
        pid = int((tmp_path / "pid").read_text())
        until(lambda: not is_alive(pid), PATIENCE_SECONDS)
        ended.append(True)

    assert FromItsFirstWord(profile, hear).perform().timed_out
    assert ended


def test_an_agent_that_has_ended_was_in_time_however_long_we_listen(sh: Script) -> None:
    profile = sh("""echo 'AGENT_PARTIAL:"x"'; echo body""", timeout_secs=FOR_EVER)

    def hear(_: Said) -> None:
        child = turn._child
        assert child is not None
        until(lambda: child.poll() is not None, PATIENCE_SECONDS)
        turn._expire()

    turn = Run(profile, TurnRequest("hi"), hear=hear)
    outcome = turn.perform()
    assert (outcome.reply, outcome.exit_code, outcome.timed_out) == ("body", 0, False)


def test_an_error_said_before_the_limit_is_the_users_text(sh: Script) -> None:
    profile = sh(f"""echo 'AGENT_ERROR:"bad"'; sleep {FOR_EVER}""", timeout_secs=0.4, kill_grace_secs=0.2)
    outcome = FromItsFirstWord(profile).perform()
    assert (outcome.error, outcome.exit_code) == ("bad", 124)


def test_without_a_limit_a_slow_agent_is_waited_for(sh: Script) -> None:
    assert run(sh("sleep 0.3; echo done", timeout_secs=None), TurnRequest("hi")).reply == "done"


def test_the_end_of_the_output_is_not_the_end_of_the_turn(sh: Script) -> None:
    assert run(sh("echo said; exec >&- 2>&-; sleep 0.4; exit 5"), TurnRequest("hi")).exit_code == 5


def test_a_grandchild_that_holds_the_pipes_delays_nothing_and_is_ended(sh: Script, tmp_path: Path) -> None:
    profile = sh(f"sleep {FOR_EVER} & echo $! > {tmp_path}/pid; printf tail")
    assert run(profile, TurnRequest("hi")).reply == "tail"
    assert not is_alive(int((tmp_path / "pid").read_text()))


# Odd output


def test_a_flood_of_standard_error_blocks_nothing(py: Script) -> None:
    profile = py("import sys; sys.stderr.write('e' * 3_000_000); print('out')")
    outcome = run(profile, TurnRequest("hi"))
    assert outcome.reply == "out"
    assert len(outcome.stderr) < 10_000


def test_bytes_that_are_no_text_cost_only_themselves(py: Script) -> None:
    profile = py(r"import os; os.write(1, b'a\xff\n\xe4\xbd'); os.write(1, b'\xa0\nAGENT_SESSION:s\n')")
    outcome = run(profile, TurnRequest("hi"))
    assert (outcome.reply, outcome.session_id) == ("a\ufffd\n\u4f60", "s")


def test_a_line_without_an_end_does_not_fill_the_memory(py: Script) -> None:
    profile = py("import os\nfor _ in range(40): os.write(1, b'x' * 1_000_000)\nos.write(1, b'\\nafter\\n')")
    heard: list[Said] = []
    outcome = run(profile, TurnRequest("hi"), hear=heard.append)
    assert outcome.reply == "after"
    assert isinstance(heard[0], Ignored)


# What cannot be started


@pytest.mark.parametrize("kind", ["missing", "not executable", "no shebang", "directory", "interpreter", "cwd"])
def test_a_program_that_cannot_be_started_is_a_clear_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "agent"
    path.write_text("#!/no/such/interpreter\n" if kind == "interpreter" else "echo hi\n")
    path.chmod(0o644 if kind == "not executable" else 0o755)
    command = {"missing": str(tmp_path / "nothing"), "directory": str(tmp_path)}.get(kind, str(path))
    cwd = str(tmp_path / "nowhere") if kind == "cwd" else None
    outcome = run(Profile((command,), cwd=cwd), TurnRequest("hi", "s0"))
    assert outcome.reply == ""
    assert outcome.exit_code in (126, 127)
    assert outcome.error.startswith("The agent could not be started: ")
    assert ":" in outcome.error.removeprefix("The agent could not be started: ")
    assert outcome.session_id == "s0"


@pytest.mark.parametrize("message", ["nul \0 inside", "x" * 200_000, ""])
def test_a_message_that_cannot_be_passed_is_a_clear_error(sh: Script, message: str) -> None:
    outcome = run(sh("echo hi"), TurnRequest(message))
    assert outcome.exit_code == 1
    assert outcome.error
    assert "Traceback" not in outcome.error


def test_a_long_message_goes_through_stdin(py: Script) -> None:
    profile = py("import sys; print(len(sys.stdin.read()))", stdin="message")
    assert run(profile, TurnRequest("x" * 1_000_000)).reply == "1000000"


# From other threads


def test_a_cancelled_turn_still_says_what_it_says_in_its_grace(py: Script) -> None:
    holder: list[Run] = []

    def hear(said: Said) -> None:
        if said == Partial("early"):
            threading.Thread(target=holder[0].cancel).start()

    holder.append(Run(py(GRACEFUL, kill_grace_secs=PATIENCE_SECONDS), TurnRequest("hi"), hear=hear))
    outcome = holder[0].perform()
    assert (outcome.exit_code, outcome.cancelled, outcome.timed_out) == (130, True, False)
    assert outcome.partials == ("early", "late")


def test_a_turn_that_was_cancelled_before_it_began_ends_at_once(sh: Script) -> None:
    turn = Run(sh(f"sleep {FOR_EVER}"), TurnRequest("hi"))
    turn.cancel(143)
    assert turn.perform().exit_code == 143


def test_hurry_is_remembered_until_there_is_something_to_end(sh: Script) -> None:
    turn = Run(sh("trap '' TERM; while :; do sleep 60; done", kill_grace_secs=FOR_EVER), TurnRequest("hi"))
    turn.cancel()
    turn.cancel(grace=0.0)
    assert turn.perform().exit_code == 130


def test_a_second_cancel_hurries(sh: Script) -> None:
    profile = sh("trap '' TERM; echo 'AGENT_PARTIAL:\"x\"'; while :; do sleep 60; done", kill_grace_secs=FOR_EVER)
    holder: list[Run] = []

    def hear(_: Said) -> None:
        holder[0].cancel()
        holder[0].cancel(grace=0.0)

    holder.append(Run(profile, TurnRequest("hi"), hear=hear))
    assert holder[0].perform().exit_code == 130


def test_what_the_listener_raises_is_raised_and_nothing_is_left_running(sh: Script, tmp_path: Path) -> None:
    def hear(_: Said) -> None:
        raise LookupError("the listener broke")

    profile = sh(f"""echo $$ > {tmp_path}/pid; echo 'AGENT_PARTIAL:"x"'; sleep 60""")
    with pytest.raises(LookupError):
        run(profile, TurnRequest("hi"), hear=hear)
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_turn_is_freed_at_its_end_without_the_garbage_collector(sh: Script) -> None:
    profile = sh("echo hello")
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(each, Run) for each in gc.get_objects())
        assert run(profile, TurnRequest("hi")).reply == "hello"
        assert sum(isinstance(each, Run) for each in gc.get_objects()) == before
    finally:
        gc.enable()


def test_turns_leave_no_descriptor_and_no_thread_behind(sh: Script) -> None:
    profile = sh("echo $AGENT_MESSAGE", stdin="message")
    run(profile, TurnRequest("warm"))
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(50):
        assert run(profile, TurnRequest("hi")).reply == "hi"
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


LINGERING = """
import json, sys, time
print(json.dumps({"type": %r, "text": "all", "message": "bad"}), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("kind", "code", "reply"), [("result", 0, "all"), ("error", 1, "")])
def test_an_agent_that_has_said_all_and_goes_on_is_ended_and_its_turn_counts(
    kind: str, code: int, reply: str, py: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "LINGER_SECONDS", 0.05)
    outcome = run(py(LINGERING % kind, protocol="0.4", timeout_secs=FOR_EVER), TurnRequest("hi"))
    assert (outcome.exit_code, outcome.reply, outcome.timed_out) == (code, reply, False)
    assert outcome.error == ("" if code == 0 else "bad")


def test_an_agent_that_has_said_all_may_still_end_with_its_own_code(py: Script) -> None:
    script = """
import json, sys
print(json.dumps({"type": "result", "text": "all"}), flush=True)
sys.exit(3)
"""
    assert run(py(script, protocol="0.4"), TurnRequest("hi")).exit_code == 3


def test_an_agent_of_the_other_dialect_is_not_silently_empty(sh: Script) -> None:
    outcome = run(sh("echo plain", protocol="0.4"), TurnRequest("hi"))
    assert outcome.exit_code == 1
    assert "0.1" in outcome.error
    assert run(sh("echo plain", protocol="auto"), TurnRequest("hi")).reply == "plain"
    event = """echo '{"type":"result","text":"x","session_id":"s","usage":{"input_tokens":1}}'"""
    found = run(sh(event, protocol="auto"), TurnRequest("hi"))
    assert (found.reply, found.session_id, found.usage) == ("x", "s", {"input_tokens": 1})
