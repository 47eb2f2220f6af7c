"""A client in a session, by raw messages: prompts, updates, questions, and others in the same session."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.acp_world import AcpClient, AcpWorld
from trunkline.base.redact import Redactor
from trunkline.core import faults
from trunkline.core.agent import Approve, Capabilities, Deny, UseClient
from trunkline.core.events import (
    Audio,
    Extension,
    Failed,
    Notice,
    Outcome,
    Plan,
    PlanEntry,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
)
from trunkline.core.fault_table import CRASHED
from trunkline.core.usage import NOTHING_USED, Usage

DONE = TurnEnded("success", NOTHING_USED)
LS = ToolRequested("c1", "Bash", "exec", {"command": "ls -l"}, "List files")


def edit(file: str) -> ToolRequested:
    return ToolRequested("c2", "Edit", "edit", {"file_path": file, "old_string": "old", "new_string": "new"})


async def begun(world: AcpWorld, text: str = "hello") -> tuple[str, int]:
    """A session and a prompt that the agent has heard."""
    session = await world.new()
    prompt = world.client.prompt(session, text)
    await world.client.settle()
    return session, prompt


async def result(client: AcpClient, prompt: int) -> dict[str, Any]:
    answer = await client.answer(prompt)
    assert "error" not in answer, answer
    found: dict[str, Any] = answer["result"]
    return found


async def test_a_prompt_is_answered_when_its_turn_has_ended(it: AcpWorld) -> None:
    _, prompt = await begun(it)
    it.fake.say(ThinkingDelta("hm"), TextDelta("good day"), TurnEnded("success", Usage(10, 5, 3)))
    assert await result(it.client, prompt) == {
        "stopReason": "end_turn",
        "usage": {"totalTokens": 15, "inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3},
    }
    told = [line.get("params", {}).get("update", {}).get("sessionUpdate", "answer") for line in it.client.lines]
    assert told == ["session_info_update", "agent_thought_chunk", "agent_message_chunk", "answer"]
    assert it.client.updates()[0]["title"] == "hello"


async def test_a_prompt_brings_text_links_pictures_and_resources(it: AcpWorld) -> None:
    session = await it.new()
    file = it.keeper.folder / "a b.txt"
    file.write_text("x")
    data = base64.b64encode(b"\x89PNG").decode()
    prompt = [
        {"type": "text", "text": "Look at "},
        {"type": "resource_link", "uri": file.as_uri(), "name": "a b.txt"},
        {"type": "resource_link", "uri": "https://example.org/x", "name": "page"},
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///z.py", "text": "print()"}},
        {"type": "resource", "resource": {"uri": "file:///z.bin", "blob": data}},
    ]
    id = it.client.request("session/prompt", sessionId=session, prompt=prompt)
    await it.client.settle()
    (heard,) = it.fake.heard
    assert f"Look at [a b.txt]({file})[page](https://example.org/x)" in heard.text
    assert '<resource uri="file:///z.py">\nprint()\n</resource>' in heard.text
    assert heard.files[0] == str(file)
    assert list(it.keeper.kept.values()) == [b"\x89PNG", b"\x89PNG"]
    assert heard.files[1].endswith(".png")
    it.fake.say(DONE)
    await it.client.answer(id)


@pytest.mark.parametrize(
    "prompt",
    [
        [],
        [{"type": "text", "text": "  "}],
        [{"type": "audio", "data": "", "mimeType": "audio/wav"}],
        [{"type": "resource", "resource": {"uri": "x"}}],
        [{"type": "text", "text": "x"}] * 1001,
        "text",
    ],
)
async def test_a_prompt_that_cannot_be_taken_is_bad_params(it: AcpWorld, prompt: Any) -> None:
    session = await it.new()
    assert (await it.client.refused("session/prompt", sessionId=session, prompt=prompt))["code"] == -32602
    assert it.fake.heard == []


async def test_files_of_this_machine_are_not_for_clients_elsewhere(it: AcpWorld) -> None:
    from trunkline.wires.acp.serve import AcpServer

    far = AcpClient(lambda output: AcpServer(it.keeper, output))
    it.clients.append(far)
    session = (await far.ask("session/new", cwd=str(it.keeper.folder)))["sessionId"]
    link = {"type": "resource_link", "uri": "file:///etc/passwd", "name": "p"}
    id = far.request("session/prompt", sessionId=session, prompt=[link])
    await far.settle()
    assert it.fake.heard[0].files == ()
    it.fake.say(DONE)
    await far.answer(id)


@pytest.mark.parametrize(
    ("events", "finish", "reason"),
    [
        ([DONE], "length", "max_tokens"),
        ([Failed("provider", "No."), TurnEnded("error")], "refusal", "refusal"),
        ([Failed("tool", "Enough."), TurnEnded("error")], "max_turns", "max_turn_requests"),
    ],
)
async def test_why_a_turn_ended_is_told(it: AcpWorld, events: list[Any], finish: str, reason: str) -> None:
    _, prompt = await begun(it)
    it.fake.say(Extension("finish", {"reason": finish}), *events)
    assert (await result(it.client, prompt))["stopReason"] == reason


@pytest.mark.parametrize("outcome", ["error", "unknown"])
async def test_a_failed_turn_is_an_error_with_the_words_of_the_fault(it: AcpWorld, outcome: Outcome) -> None:
    _, prompt = await begun(it)
    it.fake.say(TextDelta("I "), Failed("provider", "Overloaded.", retryable=True), TurnEnded(outcome))
    error = (await it.client.answer(prompt))["error"]
    assert error == {"code": -32603, "message": "Overloaded.", "data": {"kind": "provider", "retryable": True}}
    assert "Overloaded" not in str(it.client.updates())


async def test_what_an_exception_says_stays_here(it: AcpWorld) -> None:
    _, prompt = await begun(it)
    it.fake.crash(ValueError("secret"))
    assert (await it.client.answer(prompt))["error"]["message"] == CRASHED


async def test_a_failure_that_a_turn_survives_is_told_in_it(it: AcpWorld) -> None:
    _, prompt = await begun(it)
    it.fake.say(Failed("tool", "Half of it failed."), DONE)
    assert (await result(it.client, prompt))["stopReason"] == "end_turn"
    assert "Error: Half of it failed." in str(it.client.updates())


async def test_a_message_that_is_not_taken_is_an_error(it: AcpWorld) -> None:
    session = await it.new()
    it.keeper.refusal = faults.BudgetExceeded("Nothing is left for today.")
    answer = await it.client.answer(it.client.prompt(session))
    assert answer["error"]["data"] == {"kind": "budget", "retryable": True}


async def test_a_call_that_needs_no_approval_is_told_when_it_begins(it: AcpWorld) -> None:
    it.keeper.mode = "yolo"
    _, prompt = await begun(it)
    it.client.updates()
    it.fake.say(LS)
    await it.client.settle()
    assert it.client.updates() == []
    it.fake.say(
        ToolStarted("c1", "Bash"), Progress("still", "c1"), ToolFinished("c1", "Bash", "success", "a.txt"), DONE
    )
    await result(it.client, prompt)
    start, progress, end = it.client.updates()
    assert start == {
        "sessionUpdate": "tool_call",
        "toolCallId": "c1",
        "title": "Bash ls -l",
        "kind": "execute",
        "status": "in_progress",
        "content": [{"type": "content", "content": {"type": "text", "text": "List files"}}],
        "rawInput": {"command": "ls -l"},
    }
    assert progress["_meta"] == {"progress": "still"}
    assert end == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c1",
        "status": "completed",
        "content": [{"type": "content", "content": {"type": "text", "text": "a.txt"}}],
        "rawOutput": {"output": "a.txt"},
    }
    assert it.client.questions() == []


async def test_a_program_that_asks_nobody_is_told_of_as_far_as_it_says(it: AcpWorld) -> None:
    _, prompt = await begun(it)
    it.fake.say(ToolStarted("c9", "Magic"), ToolFinished("c9", "Magic", "error", "No."), DONE)
    await result(it.client, prompt)
    calls = [update for update in it.client.updates() if "toolCallId" in update]
    assert [(call["status"], call.get("title")) for call in calls] == [("in_progress", "Magic"), ("failed", None)]


async def test_the_change_is_told_before_its_permission_is_asked(it: AcpWorld) -> None:
    (it.keeper.folder / "x.py").write_text("an old text\n")
    session, prompt = await begun(it)
    it.client.take()
    it.fake.say(edit("x.py"))
    await it.client.settle()
    told, question = it.client.lines
    path = str(it.keeper.folder / "x.py")
    diff = {"type": "diff", "path": path, "newText": "an new text\n", "oldText": "an old text\n"}
    assert told["params"]["update"]["sessionUpdate"] == "tool_call"
    assert told["params"]["update"]["content"] == [diff]
    assert told["params"]["update"]["locations"] == [{"path": path}]
    assert told["params"]["update"]["status"] == "pending"
    assert question["method"] == "session/request_permission"
    assert question["params"]["sessionId"] == session
    assert question["params"]["toolCall"]["content"] == [diff]
    assert question["params"]["toolCall"]["toolCallId"] == "c2"
    options = question["params"]["options"]
    assert [option["kind"] for option in options] == ["allow_once", "allow_always", "reject_once", "reject_always"]
    assert "rest of this session" in options[3]["name"]
    it.client.choose(question, "allow_once")
    await it.client.settle()
    assert it.fake.decisions == [("c2", Approve())]
    it.fake.say(ToolStarted("c2", "Edit"), ToolFinished("c2", "Edit", "success", "Edited."), DONE)
    await result(it.client, prompt)
    end = it.client.updates()[-1]
    assert (end["status"], "content" in end) == ("completed", False)


async def test_a_change_of_the_past_is_not_made_up_from_what_the_file_is_now(it: AcpWorld) -> None:
    file = it.keeper.folder / "x.py"
    file.write_text("an old text\n")
    session, prompt = await begun(it)
    written = ToolRequested("c3", "Write", "edit", {"file_path": "x.py", "content": "another text\n"})
    for request in (edit("x.py"), written):
        it.fake.say(request)
        await it.client.settle()
        it.client.choose(it.client.questions()[-1], "allow_once")
        await it.client.settle()
        it.fake.say(ToolFinished(request.call_id, request.name, "success", "Done."))
    file.write_text("an old text, and more\n")
    it.fake.say(ToolRequested("c4", "Write", "edit", {"file_path": "x.py", "content": "the last\n"}))
    await it.client.settle()
    other = it.connect()
    await other.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
    diffs = [update["content"][0] for update in other.updates() if update["sessionUpdate"] == "tool_call"]
    assert [(diff.get("oldText"), diff["newText"]) for diff in diffs] == [
        ("old", "new"),
        (None, "another text\n"),
        # This one still waits for its answer.
        ("an old text, and more\n", "the last\n"),
    ]
    it.fake.say(DONE)
    await result(it.client, prompt)


async def test_a_new_file_has_no_text_before(it: AcpWorld) -> None:
    _, prompt = await begun(it)
    it.fake.say(ToolRequested("c3", "Write", "edit", {"file_path": "new.py", "content": "hi"}))
    await it.client.settle()
    call = it.client.updates()[-1]
    assert call["content"] == [{"type": "diff", "path": str(it.keeper.folder / "new.py"), "newText": "hi"}]
    it.client.choose(it.client.questions()[0], "reject_once")
    it.fake.say(DONE)
    await result(it.client, prompt)


async def test_what_is_outside_is_not_shown_with_a_change(it: AcpWorld) -> None:
    outside = it.keeper.folder / "secret"
    outside.write_text("old and secret")
    _, prompt = await begun(it)
    it.fake.say(edit(str(outside)).replace(outside=True))
    await it.client.settle()
    call = next(update for update in it.client.updates() if "toolCallId" in update)
    assert call["content"] == [{"type": "diff", "path": str(outside), "newText": "new", "oldText": "old"}]
    it.fake.say(DONE)
    await result(it.client, prompt)


async def test_a_secret_in_a_file_is_not_shown_with_a_change_of_it(it: AcpWorld) -> None:
    it.keeper.secrets = Redactor(["sk-very-secret-key"])
    (it.keeper.folder / ".env").write_text("KEY=sk-very-secret-key\nold\n")
    _, prompt = await begun(it)
    it.fake.say(edit(".env"))
    await it.client.settle()
    assert "old" in str(it.client.lines)
    assert "sk-very" not in str(it.client.lines)
    it.client.choose(it.client.questions()[0], "reject_once")
    await it.client.settle()
    it.fake.say(ToolCancelled("c2", "No."), DONE)
    await result(it.client, prompt)
    assert "sk-very" not in str(it.client.lines)


async def test_always_is_for_calls_like_this_one(it: AcpWorld) -> None:
    session, prompt = await begun(it)
    it.fake.say(LS)
    await it.client.settle()
    (question,) = it.client.questions()
    assert question["params"]["options"][1]["name"] == "Always allow `Bash(ls -l:./**)`"
    it.client.choose(question, "allow_always")
    await it.client.settle()
    (grant,) = it.keeper.held[session][0].grants
    assert grant.command == "ls -l"
    it.fake.say(DONE)
    await result(it.client, prompt)


async def test_a_rejection_for_good_lasts_until_the_mode_is_changed(it: AcpWorld) -> None:
    session, prompt = await begun(it)
    it.fake.say(LS)
    await it.client.settle()
    it.client.choose(it.client.questions()[0], "reject_always")
    await it.client.settle()
    it.fake.say(ToolCancelled("c1", "no"), LS.replace(call_id="c2"))
    await it.client.settle()
    assert len(it.client.questions()) == 1
    assert [(call, type(decision)) for call, decision in it.fake.decisions] == [("c1", Deny), ("c2", Deny)]
    await it.client.ask("session/set_mode", sessionId=session, modeId="default")
    it.fake.say(LS.replace(call_id="c3"))
    await it.client.settle()
    assert len(it.client.questions()) == 2
    it.fake.say(DONE)
    await result(it.client, prompt)


PLAN = ToolRequested("p1", "ExitPlanMode", "info", {"plan": "1. Look."}, "Exit plan mode", asking="ask")


@pytest.mark.parametrize(
    ("wanted", "kinds"),
    [
        (PLAN, ["allow_once", "reject_once"]),
        (LS.replace(asking="confirm"), ["allow_once", "reject_once", "reject_always"]),
        (LS.replace(asking="ask"), ["allow_once", "reject_once", "reject_always"]),
    ],
    ids=["plan", "confirm", "ask"],
)
async def test_no_answer_lasts_longer_than_it_can(it: AcpWorld, wanted: ToolRequested, kinds: list[str]) -> None:
    session, prompt = await begun(it)
    it.fake.say(wanted)
    await it.client.settle()
    (question,) = it.client.questions()
    assert [option["kind"] for option in question["params"]["options"]] == kinds
    # What was not offered is no clear yes.
    it.client.choose(question, "allow_always")
    await it.client.settle()
    assert [(call, type(decision)) for call, decision in it.fake.decisions] == [(wanted.call_id, Deny)]
    assert it.keeper.held[session][0].grants == ()
    it.fake.say(DONE)
    await result(it.client, prompt)


async def test_a_plan_is_shown_although_tools_of_its_kind_are_rejected_for_good(it: AcpWorld) -> None:
    _, prompt = await begun(it)
    it.fake.say(ToolRequested("c1", "Fetch", "info", {}))
    await it.client.settle()
    it.client.choose(it.client.questions()[0], "reject_always")
    await it.client.settle()
    it.fake.say(PLAN)
    await it.client.settle()
    (_, question) = it.client.questions()
    # As a text of its own: a title is one line, and cut.
    shown = {"type": "content", "content": {"type": "text", "text": "1. Look."}}
    assert question["params"]["toolCall"]["content"] == [shown]
    it.fake.say(DONE)
    await result(it.client, prompt)


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"outcome": {"outcome": "selected", "optionId": "reject_once"}}},
        {"result": {"outcome": {"outcome": "selected", "optionId": "what?"}}},
        {"result": {"outcome": {"outcome": "cancelled"}}},
        {"result": {"outcome": "yes"}},
        {"result": None},
        {"error": {"code": -32601, "message": "Cannot ask"}},
    ],
)
async def test_anything_but_a_clear_yes_is_a_no(it: AcpWorld, answer: dict[str, Any]) -> None:
    _, prompt = await begun(it)
    it.fake.say(LS)
    await it.client.settle()
    it.client.send(id=it.client.questions()[0]["id"], **answer)
    await it.client.settle()
    assert [type(decision) for _, decision in it.fake.decisions] == [Deny]
    it.fake.say(TextDelta("well"), DONE)
    await result(it.client, prompt)
    failed = [update for update in it.client.updates() if update.get("status") == "failed"]
    assert len(failed) == 1


async def test_cancelling_ends_the_prompt_and_a_late_answer_changes_nothing(it: AcpWorld) -> None:
    session, prompt = await begun(it)
    it.fake.say(LS)
    await it.client.settle()
    it.client.send(method="session/cancel", params={"sessionId": session})
    assert (await result(it.client, prompt))["stopReason"] == "cancelled"
    it.client.choose(it.client.questions()[0], "allow_once")
    await it.client.settle()
    assert it.fake.decisions == []
    assert [update["status"] for update in it.client.updates() if "toolCallId" in update] == ["pending", "failed"]
    # The client answers it by itself: nothing is taken back.
    assert "$/cancel_request" not in str(it.client.lines)
    prompt = it.client.prompt(session, "again")
    await it.client.settle()
    it.fake.say(DONE)
    assert (await result(it.client, prompt))["stopReason"] == "end_turn"


async def test_a_cancel_right_behind_the_prompt_counts(it: AcpWorld) -> None:
    session = await it.new()
    prompt = it.client.prompt(session)
    it.client.send(method="session/cancel", params={"sessionId": session})
    assert (await result(it.client, prompt))["stopReason"] == "cancelled"
    assert it.fake.heard == []
    assert it.keeper.held[session][0].latest == 0


async def test_cancelling_what_is_not_there_is_nothing(it: AcpWorld) -> None:
    session = await it.new()
    it.client.send(method="session/cancel", params={"sessionId": session})
    it.client.send(method="session/cancel", params={"sessionId": "nope"})
    it.client.send(method="session/cancel")
    await it.client.settle()
    assert it.client.lines == []


async def test_a_turn_that_was_cancelled_is_not_a_failure_whatever_the_agent_says(it: AcpWorld) -> None:
    session, prompt = await begun(it)
    it.fake.obedient = False
    it.client.send(method="session/cancel", params={"sessionId": session})
    it.fake.say(Failed("agent", "Broken off."), TurnEnded("error"))
    assert (await result(it.client, prompt))["stopReason"] == "cancelled"


async def test_a_prompt_that_is_taken_back_stops_its_turn(it: AcpWorld) -> None:
    session, prompt = await begun(it)
    it.client.send(method="$/cancel_request", params={"requestId": prompt})
    assert (await it.client.answer(prompt))["error"]["code"] == -32800
    await it.client.settle()
    assert it.keeper.held[session][0].turn == 0


async def test_prompts_of_one_session_are_answered_one_after_the_other(it: AcpWorld) -> None:
    session, first = await begun(it, "one")
    second = it.client.prompt(session, "two")
    await it.client.settle()
    assert [message.text for message in it.fake.heard] == ["one"]
    it.fake.say(TextDelta("1"), DONE)
    await result(it.client, first)
    await it.client.settle()
    it.fake.say(TextDelta("2"), DONE)
    assert (await result(it.client, second))["stopReason"] == "end_turn"
    # One's own words are known.
    assert "user_message_chunk" not in str(it.client.lines)


async def test_plans_notices_sound_commands_and_the_window_are_told(
    it: AcpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.fake_agent.FakeAgent.context", (10, 100), raising=False)
    _, prompt = await begun(it)
    it.client.updates()
    commands = {"commands": [{"name": "plan", "description": "Plan first"}]}
    it.fake.say(
        TextDelta("one"),
        Notice("Look."),
        Plan((PlanEntry("Do it", "high", "in_progress"),)),
        Audio(b"\0\0", 24000),
        Extension("commands", commands),
        Extension("context", {"used": 5, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}}),
        Extension("other", {}),
        DONE,
    )
    await result(it.client, prompt)
    text, notice, plan, sound, typed, spent, window = it.client.updates()
    assert text["content"]["text"] + notice["content"]["text"] == "one\n\nLook.\n\n"
    assert plan["entries"] == [{"content": "Do it", "priority": "high", "status": "in_progress"}]
    assert sound["content"] == {"type": "audio", "data": "AAA=", "mimeType": "audio/pcm;rate=24000;channels=1"}
    assert typed["availableCommands"] == [{"name": "plan", "description": "Plan first"}]
    assert spent["cost"] == {"amount": 0.5, "currency": "USD"}
    assert window == {"sessionUpdate": "usage_update", "used": 10, "size": 100}


async def test_a_picture_of_a_tool_is_one(it: AcpWorld) -> None:
    it.keeper.mode = "yolo"
    _, prompt = await begun(it)
    call = ToolRequested("p", "Read", "info", {"file_path": "a.png", "offset": 3})
    finished = ToolFinished("p", "Read", "success", "AAA=", "image", {"media_type": "image/jpeg"})
    it.fake.say(call, ToolStarted("p", "Read"), finished, DONE)
    await result(it.client, prompt)
    start, end = (update for update in it.client.updates() if "toolCallId" in update)
    assert start["locations"] == [{"path": str(it.keeper.folder / "a.png"), "line": 3}]
    picture = {"type": "image", "data": "AAA=", "mimeType": "image/jpeg"}
    assert end["content"] == [{"type": "content", "content": picture}]
    assert end["rawOutput"] == {"metadata": {"media_type": "image/jpeg"}}


async def test_the_clients_own_tools_are_offered_with_its_messages(it: AcpWorld) -> None:
    await it.client.ask(
        "initialize", protocolVersion=1, clientCapabilities={"fs": {"readTextFile": True}, "terminal": True}
    )
    _, prompt = await begun(it)
    (change,) = it.fake.changes
    assert isinstance(change, UseClient)
    assert (change.files is not None, change.terminal is not None) == (True, True)
    assert change.message == it.fake.heard[0].id
    it.fake.say(DONE)
    await result(it.client, prompt)


async def test_a_client_that_does_not_read_holds_its_own_agent_up(it: AcpWorld) -> None:
    session, prompt = await begun(it)
    it.client.fill()
    it.fake.say(*[TextDelta("word ")] * 100, DONE)
    await it.client.settle()
    assert it.keeper.held[session][0].turn == 1
    assert len(it.client.updates()) < 50
    it.client.empty()
    await result(it.client, prompt)


# Several in one session.


async def joined(world: AcpWorld, session: str) -> AcpClient:
    other = world.connect()
    await other.ask("session/resume", sessionId=session, cwd="/", mcpServers=[])
    other.take()
    return other


async def test_observers_see_all_and_the_first_answer_wins(shared: AcpWorld) -> None:
    session = await shared.new()
    other = await joined(shared, session)
    prompt = shared.client.prompt(session, "do it")
    await shared.client.settle()
    shared.fake.say(TextDelta("ok "), LS)
    await shared.client.settle()
    seen = other.updates()
    assert seen[0] == {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "do it"}}
    assert "ok " in str(seen)
    (mine,), (theirs,) = shared.client.questions(), other.questions()
    other.choose(theirs, "allow_once")
    await shared.client.settle()
    assert shared.fake.decisions == [("c1", Approve())]
    # The one that was asked in vain learns that nobody waits for it, and how it went on.
    taken_back = [line for line in shared.client.lines if line.get("method") == "$/cancel_request"]
    assert [line["params"]["requestId"] for line in taken_back] == [mine["id"]]
    assert shared.client.updates()[-1]["status"] == "in_progress"
    assert "$/cancel_request" not in str(other.lines)
    shared.client.choose(mine, "reject_once")
    shared.fake.say(ToolStarted("c1", "Bash"), ToolFinished("c1", "Bash", "success", ""), DONE)
    assert (await result(shared.client, prompt))["stopReason"] == "end_turn"
    assert other.updates()[-1]["status"] == "completed"


async def test_who_comes_in_the_middle_is_asked_too(shared: AcpWorld) -> None:
    session = await shared.new()
    prompt = shared.client.prompt(session)
    await shared.client.settle()
    shared.fake.say(LS)
    await shared.client.settle()
    other = shared.client
    for method in ("resume", "load"):
        other = shared.connect()
        await other.ask(f"session/{method}", sessionId=session, cwd="/", mcpServers=[])
        await other.settle()
        assert [update["toolCallId"] for update in other.updates() if "toolCallId" in update] == ["c1"]
        assert len(other.questions()) == 1
    other.choose(other.questions()[0], "reject_once")
    await other.settle()
    shared.fake.say(DONE)
    await result(shared.client, prompt)


async def test_a_question_that_one_dismisses_waits_for_the_others(shared: AcpWorld) -> None:
    session, prompt = await begun(shared)
    shared.fake.say(LS)
    await shared.client.settle()
    shared.client.send(id=shared.client.questions()[0]["id"], result={"outcome": {"outcome": "cancelled"}})
    await shared.client.settle()
    assert shared.fake.decisions == []
    assert len(shared.keeper.held[session][0].waiting) == 1
    shared.fake.say(DONE)
    await result(shared.client, prompt)


async def test_who_may_not_answer_is_not_asked(shared: AcpWorld) -> None:
    session = await shared.new()
    shared.keeper.seats[0].may_answer = False
    prompt = shared.client.prompt(session)
    await shared.client.settle()
    shared.fake.say(LS)
    await shared.client.settle()
    assert shared.client.questions() == []
    assert [update["status"] for update in shared.client.updates() if "toolCallId" in update] == ["pending"]
    shared.fake.say(DONE)
    await result(shared.client, prompt)


async def test_ones_own_cancel_leaves_the_prompts_of_others(shared: AcpWorld) -> None:
    session, first = await begun(shared, "mine")
    other = await joined(shared, session)
    second = other.prompt(session, "theirs")
    await other.settle()
    other.send(method="session/cancel", params={"sessionId": session})
    await other.settle()
    assert shared.keeper.held[session][0].turn == 1
    shared.fake.say(DONE)
    assert (await result(shared.client, first))["stopReason"] == "end_turn"
    assert (await result(other, second))["stopReason"] == "cancelled"
    assert [message.text for message in shared.fake.heard] == ["mine"]


async def test_a_failed_turn_of_another_is_told_in_words(shared: AcpWorld) -> None:
    session = await shared.new()
    other = await joined(shared, session)
    prompt = shared.client.prompt(session)
    await shared.client.settle()
    shared.fake.say(Failed("provider", "Overloaded."), TurnEnded("error"))
    assert "error" in await shared.client.answer(prompt)
    await other.settle()
    assert "Error: Overloaded." in str(other.updates())


async def test_a_slow_observer_holds_nobody_up_and_misses_nothing(shared: AcpWorld) -> None:
    session = await shared.new()
    other = await joined(shared, session)
    other.fill()
    prompt = shared.client.prompt(session)
    await shared.client.settle()
    words = [f"w{number} " for number in range(1000)]
    for word in words:
        shared.fake.say(TextDelta(word))
    shared.fake.say(DONE)
    assert (await result(shared.client, prompt))["stopReason"] == "end_turn"
    assert len([line for line in other.lines if "w999" in str(line)]) == 0
    other.empty()
    await other.told("w999")
    said = [update["content"]["text"] for update in other.updates() if "agent_message" in update["sessionUpdate"]]
    assert said == words


async def test_capabilities_of_a_client_that_says_nothing_are_none(it: AcpWorld) -> None:
    it.keeper.capabilities = Capabilities()
    await it.client.ask("initialize", protocolVersion=1)
    _, prompt = await begun(it)
    assert it.fake.changes == []
    it.fake.say(DONE)
    await result(it.client, prompt)


async def test_what_an_agent_shows_of_a_call_is_shown_in_the_editor(it: AcpWorld) -> None:
    _, prompt = await begun(it)
    change = {"path": "/w/a.txt", "old": "one\n", "new": "two\n"}
    shown = {"title": "a.txt", "kind": "move", "paths": ["/w/a.txt", 7], "changes": [change, {"path": "/w/b"}]}
    diff = {"type": "diff", "path": "/w/a.txt", "newText": "two\n", "oldText": "one\n"}
    it.client.take()
    args = {"filepath": "a.txt", "diff": "-one\n+two"}
    it.fake.say(Extension("call_shown", {"call_id": "c1", **shown}), ToolRequested("c1", "write", "edit", args))
    await it.client.settle()
    told, question = it.client.lines
    for call in told["params"]["update"], question["params"]["toolCall"]:
        assert (call["title"], call["kind"], call["content"]) == ("write a.txt", "move", [diff])
        assert (call["locations"], call["rawInput"]) == ([{"path": "/w/a.txt"}], args)
    it.client.choose(question, "reject_once")
    it.fake.say(
        ToolCancelled("c1", "no"),
        Extension("call_shown", {"call_id": "c2", **shown, "args": {"x": 1}}),
        ToolStarted("c2", "write"),
        ToolFinished("c2", "write", "error", "Full."),
        DONE,
    )
    await result(it.client, prompt)
    started, ended = [each for each in it.client.updates() if each.get("toolCallId") == "c2"]
    assert (started["title"], started["kind"], started["rawInput"]) == ("a.txt", "move", {"x": 1})
    assert (started["content"], started["locations"]) == ([diff], [{"path": "/w/a.txt"}])
    assert ended["content"][0] == diff
