"""Permission requests in the middle of a turn: who answers them, and what becomes of the turn's clock."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.wires.agentproc.conftest import FromItsFirstWord, Script
from trunkline.base.deadlines import Deadline, deadlines
from trunkline.wires.agentproc import drive
from trunkline.wires.agentproc.drive import Run, run
from trunkline.wires.agentproc.messages import (
    Ignored,
    PermissionRequest,
    PermissionResponse,
    Said,
    SessionId,
    TurnRequest,
    Withdrawn,
)
from trunkline.wires.agentproc.profile import Profile

pytestmark = pytest.mark.process

ASKING = """
import json, sys
turn = json.loads(sys.stdin.readline())
print(json.dumps({"type": "permission_request", "request_id": "r1", "tool_name": %r, "input": {"a": 1}}), flush=True)
answer = json.loads(sys.stdin.readline())
text = json.dumps([turn.get("permission"), answer])
print(json.dumps({"type": "result", "text": text, "session_id": "s4"}), flush=True)
sys.stdin.read()
"""


def asking(py: Script, tool: str = "Write", **fields: Any) -> Profile:
    return py(ASKING % tool, protocol="0.4", permission=True, **fields)


def test_a_permission_request_is_answered_from_any_thread_and_input_ends_with_the_result(py: Script) -> None:
    holder: list[Run] = []

    def hear(said: Said) -> None:
        if not isinstance(said, PermissionRequest):
            return
        assert said == PermissionRequest("r1", "Write", {"a": 1})
        response = PermissionResponse("r1", "allow", updated_input={"a": 2})
        threading.Thread(target=holder[0].respond, args=(response,)).start()

    holder.append(Run(asking(py), TurnRequest("hi", permission=True), hear=hear))
    outcome = holder[0].perform()
    assert outcome.reply == (
        '[true, {"type": "permission_response", "request_id": "r1", "behavior": "allow", "updated_input": {"a": 2}}]'
    )
    assert outcome.session_id == "s4"


def test_a_request_that_nobody_can_answer_is_denied_at_once(py: Script) -> None:
    assert '"behavior": "deny"' in run(asking(py), TurnRequest("hi", permission=True)).reply


def test_a_malformed_request_is_denied_without_asking_anybody(py: Script) -> None:
    heard: list[Said] = []
    outcome = Run(asking(py, ""), TurnRequest("hi", permission=True), hear=heard.append).perform()
    assert "malformed permission request" in outcome.reply
    assert heard == [SessionId("s4")]


def test_a_request_that_waits_when_the_turn_is_ended_is_denied(py: Script) -> None:
    script = ASKING.replace(
        "import json, sys", "import json, signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)"
    )
    script = script.replace('"type": "result"', '"type": "partial"').replace("sys.stdin.read()", "")
    profile = py(script % "Write", protocol="0.4", permission=True)

    def hear(said: Said) -> None:
        if isinstance(said, PermissionRequest):
            threading.Thread(target=holder[0].cancel).start()

    holder = [Run(profile, TurnRequest("hi", permission=True), hear=hear)]
    outcome = holder[0].perform()
    assert outcome.exit_code == 130
    assert '"deny"' in outcome.partials[0]


@pytest.mark.parametrize("flush", [True, False])
def test_nobody_is_asked_once_the_agent_has_said_its_result(py: Script, flush: bool) -> None:
    script = f"""
import json
request = {{"type": "permission_request", "request_id": "r1", "tool_name": "Write", "input": {{}}}}
print(json.dumps({{"type": "result", "text": "all"}}), flush={flush})
print(json.dumps(request), flush=True)
"""
    heard: list[Said] = []
    outcome = Run(
        py(script, protocol="0.4", permission=True), TurnRequest("hi", permission=True), hear=heard.append
    ).perform()
    assert (outcome.exit_code, outcome.reply) == (0, "all")
    assert heard == [Ignored("a permission request after the end of the answer was ignored")]


class Clock:
    """Deadlines that come when the test says so."""

    def __init__(self) -> None:
        self.limits: list[Deadline] = []
        self.seconds: list[float] = []

    def at(self, when: float, act: Callable[[], None]) -> Deadline:
        self.limits.append(Deadline(act, deadlines))
        self.seconds.append(when - time.monotonic())
        return self.limits[-1]

    @property
    def runs(self) -> bool:
        return self.limits[-1].act is not None


def test_the_clock_stands_still_while_a_person_thinks(py: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(drive, "deadlines", clock)
    stood: list[bool] = []

    def hear(said: Said) -> None:
        if isinstance(said, PermissionRequest):
            stood.append(not clock.runs)
            act = clock.limits[-1].act
            assert act is None
            holder[0].respond(PermissionResponse("r1", "allow"))
            stood.append(clock.runs)

    holder = [Run(asking(py, timeout_secs=500), TurnRequest("hi", permission=True), hear=hear)]
    outcome = holder[0].perform()
    assert (outcome.exit_code, outcome.timed_out) == (0, False)
    assert stood == [True, True]
    # It goes on with what was left.
    assert len(clock.seconds[:-1]) == 2
    assert clock.seconds[1] <= clock.seconds[0] <= 500


def test_a_request_that_the_agent_takes_back_does_not_stop_the_clock_for_ever(
    py: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
import json, sys
def say(**event):
    print(json.dumps(event), flush=True)
def ask(id):
    asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": id}
    say(type="control_request", request_id=id, request=asked)
sys.stdin.readline()
for id in ("r1", "r2"):
    ask(id)
for id in ("r1", "r2"):
    say(type="control_cancel_request", request_id=id)
say(type="result", subtype="success", is_error=False, result="went on", session_id="s1")
"""
    clock = Clock()
    monkeypatch.setattr(drive, "deadlines", clock)
    ran: list[tuple[type[Said], bool]] = []

    def hear(said: Said) -> None:
        if isinstance(said, PermissionRequest | Withdrawn):
            ran.append((type(said), clock.runs))

    profile = py(script, stream="claude-control", permission=True, timeout_secs=500)
    outcome = Run(profile, TurnRequest("hi", permission=True), hear=hear).perform()
    assert ("".join(outcome.partials), outcome.exit_code) == ("went on", 0)
    # It goes on with the last of them.
    assert ran == [(PermissionRequest, False), (PermissionRequest, False), (Withdrawn, False), (Withdrawn, True)]


def test_a_limit_that_comes_just_as_a_request_does_waits_for_the_answer(
    py: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(drive, "deadlines", clock)
    acts: list[Callable[[], None]] = []
    at = clock.at

    def remember(when: float, act: Callable[[], None]) -> Deadline:
        acts.append(act)
        return at(when, act)

    monkeypatch.setattr(clock, "at", remember)

    def hear(said: Said) -> None:
        if isinstance(said, PermissionRequest):
            # The keeper had taken it already.
            acts[0]()
            assert not holder[0].ending
            holder[0].respond(PermissionResponse("r1", "allow"))

    holder = [Run(asking(py, timeout_secs=500), TurnRequest("hi", permission=True), hear=hear)]
    assert holder[0].perform().exit_code == 0


def test_an_agent_whose_profile_does_not_let_it_ask_is_denied_and_nobody_is_asked(py: Script) -> None:
    script = """
import json
print(json.dumps({"type": "permission_request", "request_id": "r1", "tool_name": "Write", "input": {}}), flush=True)
print(json.dumps({"type": "result", "text": "went on"}), flush=True)
"""
    heard: list[Said] = []
    outcome = Run(py(script, protocol="0.4"), TurnRequest("hi"), hear=heard.append).perform()
    assert outcome.reply == "went on"
    (told,) = heard
    assert isinstance(told, Ignored)
    assert "`Write`, which was denied" in told.why


def test_a_request_in_the_grace_is_denied_and_nobody_is_asked(py: Script) -> None:
    script = """
import json, signal, sys, time
def end(*_):
    print(json.dumps({"type": "permission_request", "request_id": "r1", "tool_name": "Write", "input": {}}), flush=True)
    print(json.dumps({"type": "partial", "text": json.loads(sys.stdin.readline())["behavior"]}), flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
sys.stdin.readline()
print(json.dumps({"type": "partial", "text": "ready "}), flush=True)
time.sleep(600)
"""
    heard: list[Said] = []
    profile = py(script, protocol="0.4", permission=True, timeout_secs=0.2, kill_grace_secs=PATIENCE_SECONDS)
    outcome = FromItsFirstWord(profile, heard.append, TurnRequest("hi", permission=True)).perform()
    assert outcome.partials == ("ready ", "deny")
    assert not any(isinstance(said, PermissionRequest) for said in heard)


def test_a_request_that_cannot_be_answered_ends_the_input(py: Script) -> None:
    script = """
import json, sys
sys.stdin.readline()
print('{"type":"permission_request","tool_name":"Write","input":{}}', flush=True)
print(json.dumps({"type": "result", "text": repr(sys.stdin.readline())}))
"""
    heard: list[Said] = []
    profile = py(script, protocol="0.4", permission=True, timeout_secs=PATIENCE_SECONDS)
    outcome = Run(profile, TurnRequest("hi", permission=True), hear=heard.append).perform()
    assert outcome.reply == "''"
    assert isinstance(heard[0], Ignored)


@pytest.mark.parametrize(
    "line",
    [
        '{"type":"permission_request","request_id":"b","tool_name":"T","input":' + '{"a":' * 5000 + "1" + "}" * 5001,
        '{"type":"permission_request","request_id":"b","tool_name":"T","input":{"a":"' + "x" * 17_000_000 + '"}}',
        '{"type":"permission_request","request_id":7,"tool_name":"T","input":{}}',
    ],
    ids=["deep", "long", "id"],
)
def test_after_a_request_that_nobody_can_answer_the_one_that_waits_is_answered_and_the_input_ends(
    line: str, py: Script, tmp_path: Path
) -> None:
    (tmp_path / "line").write_text(line)
    script = f"""
import json, sys
def ask(id):
    print(json.dumps({{"type": "permission_request", "request_id": id, "tool_name": "T", "input": {{}}}}), flush=True)
sys.stdin.readline()
ask("a")
print(open({str(tmp_path / "line")!r}).read(), flush=True)
ask("c")
heard = [json.loads(line) for line in sys.stdin]
text = json.dumps({{each["request_id"]: each["behavior"] for each in heard}})
print(json.dumps({{"type": "result", "text": text}}))
"""
    heard: list[Said] = []

    def hear(said: Said) -> None:
        heard.append(said)
        if isinstance(said, Ignored) and "nobody can answer" in said.why:
            holder[0].respond(PermissionResponse("a", "allow"))

    holder = [
        Run(
            py(script, protocol="0.4", permission=True, timeout_secs=30.0),
            TurnRequest("hi", permission=True),
            hear=hear,
        )
    ]
    outcome = holder[0].perform()
    assert json.loads(outcome.reply)["a"] == "allow"
    assert "allow" not in outcome.reply.replace('"a": "allow"', "")
    assert [said.request_id for said in heard if isinstance(said, PermissionRequest)] == ["a"]


def test_of_requests_without_end_few_are_shown_all_are_denied_and_then_the_input_ends(
    py: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drive, "MAX_REQUESTS", 5)
    monkeypatch.setattr(drive, "MAX_ANSWERS", 8)
    script = """
import json, sys
sys.stdin.readline()
answers = []
for n in range(9):
    print(json.dumps({"type": "permission_request", "request_id": str(n), "tool_name": "T", "input": {}}), flush=True)
    answers.append(sys.stdin.readline())
print(json.dumps({"type": "result", "text": json.dumps([a and json.loads(a)["behavior"] for a in answers])}))
"""
    holder: list[Run] = []
    heard: list[Said] = []

    def hear(said: Said) -> None:
        heard.append(said)
        if isinstance(said, PermissionRequest):
            holder[0].respond(PermissionResponse(said.request_id, "allow"))

    profile = py(script, protocol="0.4", permission=True, timeout_secs=PATIENCE_SECONDS)
    holder.append(Run(profile, TurnRequest("hi", permission=True), hear=hear))
    assert json.loads(holder[0].perform().reply) == ["allow"] * 5 + ["deny"] * 3 + [""]
    assert [type(said) for said in heard] == [*[PermissionRequest] * 5, Ignored]
