"""What an agent asks is asked in the chat that caused it, and only a clear and timely yes is one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.chat_bridge import DONE, BridgeFake, Stage
from tests.support.chat_platform import MemoryPlatform
from trunkline.base.redact import Redactor
from trunkline.chat import approval_prompts, approvals
from trunkline.chat.approvals import ROOM
from trunkline.chat.platform import Limits
from trunkline.core.agent import Approve, Deny
from trunkline.core.events import TextDelta, ToolCancelled, ToolFinished, ToolRequested, ToolStarted

pytestmark = pytest.mark.virtual_time

ASK = ToolRequested("c1", "Bash", "exec", {"command": "make"}, "Builds it")


@pytest.fixture
def typing(tmp_path: Path) -> Stage:
    """Where there are no buttons, and nothing can be changed."""
    return Stage(tmp_path, MemoryPlatform(Limits(text_chars=1000, edits=False)))


def text_of(file: str) -> str:
    return Path(file).read_text()


async def ask(stage: Stage, *requests: ToolRequested) -> None:
    stage.platform.says("build it")
    await stage.asked()
    stage.agent.say(*requests or (ASK,))
    await stage.sees("**Approval")


def number_of(stage: Stage) -> str:
    return stage.platform.last().text.partition("Approval ")[2].partition("**")[0]


def number_of_waiting(stage: Stage) -> str:
    asked = next(text for text in stage.platform.shown() if "**Approval" in text)
    return asked.partition("Approval ")[2].partition("**")[0]


async def test_a_button_approves_and_the_message_says_who_did(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage)
        question = stage.platform.last()
        assert "```sh\nmake\n```" in question.text
        assert "Builds it" in question.text
        assert [button.label for button in question.buttons] == ["Approve", "Always (exec)", "Deny"]
        stage.platform.presses("Approve")
        await stage.passes(lambda: stage.agent.decisions == [("c1", Approve())])
        await stage.sees("Approved by `1`.")
        assert question.buttons == ()
        stage.agent.say(ToolStarted("c1", "Bash"), ToolFinished("c1", "Bash", "success", "ok"))
        await stage.answers("built")


async def test_a_button_denies_and_the_agent_goes_on(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage)
        stage.platform.presses("Deny")
        await stage.sees("Denied by `1`.")
        assert isinstance(stage.agent.decisions[0][1], Deny)
        await stage.answers("then not")


async def test_where_there_are_no_buttons_the_answer_is_typed(typing: Stage) -> None:
    async with typing.bridge():
        await ask(typing)
        number = number_of(typing)
        assert f"`/approve {number}` or `/deny {number}`" in typing.platform.last().text
        await asyncio.sleep(2)
        typing.platform.says("/approve", name="Ann `x`")
        await typing.sees("Approved by Ann 'x' (`1`).")
        assert typing.agent.decisions == [("c1", Approve())]
        typing.platform.says(f"/approve {number}")
        await typing.sees(f"`{number}` is over: approved by Ann 'x' (`1`).")
        typing.agent.say(ToolStarted("c1", "Bash"), ToolFinished("c1", "Bash", "success", "ok"))
        await typing.answers("built")


async def test_a_typed_denial_carries_its_reason_to_the_agent(typing: Stage) -> None:
    async with typing.bridge():
        await ask(typing)
        typing.platform.says(f"/deny {number_of(typing)} not on Friday")
        await typing.passes(lambda: typing.agent.decisions == [("c1", Deny("not on Friday"))])


async def test_what_is_not_a_clear_yes_approves_nothing(typing: Stage) -> None:
    async with typing.bridge():
        await ask(typing)
        typing.platform.says("/approve not")
        await typing.sees("nothing was approved")
        typing.platform.says("/approve 99999")
        await typing.sees("There is no question `99999`")
        assert typing.agent.decisions == []


async def test_always_releases_what_waits_and_what_comes(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage, ASK, ToolRequested("c2", "Bash", "exec", {"command": "make test"}))
        await stage.passes(lambda: len(stage.platform.shown()) == 2)
        stage.platform.presses("Always")
        await stage.passes(lambda: [call for call, _ in stage.agent.decisions] == ["c2", "c1"])
        stage.agent.say(ToolStarted("c1", "Bash"), ToolStarted("c2", "Bash"))
        await stage.sees("and for this session every `exec` tool (`Bash`, ")
        await stage.sees("No answer needed: it is being done.")
        stage.agent.say(ToolRequested("c3", "Bash", "exec", {"command": "ls"}))
        await stage.passes(lambda: ("c3", Approve()) in stage.agent.decisions)
        assert len(stage.platform.shown()) == 2


async def test_what_was_granted_can_be_seen_and_taken_back(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("/grants")
        await stage.sees("No session is open")
        await ask(stage)
        stage.platform.says("/grants")
        await stage.sees("Nothing was granted in this session.")
        stage.platform.presses("Always")
        await stage.passes(lambda: stage.agent.decisions == [("c1", Approve())])
        stage.platform.says("/grants")
        await stage.sees("1. every `exec` tool")
        for wrong, told in (
            ("revoke", "was not understood"),
            ("revoke 2", "There is no grant 2."),
            ("revoke 0", "There is no grant 0."),
            ("revoke x", "was not understood"),
            ("1", "was not understood"),
            ("all", "was not understood"),
        ):
            before = len(stage.platform.shown())
            stage.platform.says(f"/grants {wrong}")
            await stage.shows(before + 1)
            assert told in stage.platform.last().text
        stage.platform.says("/grants revoke 1")
        await stage.sees("Taken back: every `exec` tool (`Bash`, ")
        before = len(stage.platform.shown())
        stage.platform.says("/grants revoke all")
        await stage.shows(before + 1)
        assert stage.platform.last().text == "Nothing was granted in this session."
        stage.agent.say(ToolStarted("c1", "Bash"), ToolRequested("c2", "Bash", "exec", {"command": "ls"}))
        await stage.passes(lambda: len([text for text in stage.platform.shown() if "**Approval" in text]) == 2)
        assert [call for call, _ in stage.agent.decisions] == ["c1"]


LONG = ToolRequested("c1", "Bash", "exec", {"command": "a" * 3000 + "hidden" + "z" * 3000})


async def test_a_button_shows_all_of_what_was_cut_and_decides_nothing(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage, LONG)
        assert not stage.platform.sees("hidden")
        stage.platform.presses("Show all")
        await stage.sees("hidden")
        assert stage.agent.decisions == []
        stage.platform.says("/status")
        await stage.sees("waiting approvals")


async def test_a_command_shows_all_of_what_was_cut(typing: Stage) -> None:
    async with typing.bridge():
        typing.platform.says("/show")
        await typing.sees("Nothing waits for an answer.")
        await ask(typing, LONG)
        typing.platform.says("/show nonsense")
        await typing.sees("That was not understood.")
        typing.platform.says(f"/show {number_of_waiting(typing)}")
        await typing.sees("hidden")
        assert typing.agent.decisions == []


async def test_what_is_too_long_for_messages_is_shown_as_a_file(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage, LONG.replace(args={"file_path": "a", "content": "a" * 50_000 + "hidden" + "z" * 50_000}))
        stage.platform.presses("Show all")
        await stage.sees("[file] approval-")
        sent = stage.platform.last().file
        assert sent is not None
    assert "ahiddenz" in text_of(sent)


async def test_nobody_answers_and_it_is_denied_with_a_visible_note(tmp_path: Path) -> None:
    stage = Stage(tmp_path, approval_seconds=30.0)
    async with stage.bridge():
        await ask(stage)
        assert "denied in 30 seconds" in stage.platform.last().text
        await asyncio.sleep(29)
        assert stage.agent.decisions == []
        await asyncio.sleep(2)
        assert stage.agent.decisions == [("c1", Deny("Nobody answered within 30 seconds"))]
        await stage.sees("Denied: nobody answered within 30 seconds.")
        await stage.answers("so be it")


async def test_two_questions_run_out_each_at_its_own_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path, approval_seconds=30.0)
    async with stage.bridge():
        await ask(stage)
        await asyncio.sleep(20)
        stage.agent.say(ToolRequested("c2", "Bash", "exec", {"command": "ls"}))
        await asyncio.sleep(15)
        assert [call for call, _ in stage.agent.decisions] == ["c1"]
        await asyncio.sleep(20)
        assert [call for call, _ in stage.agent.decisions] == ["c1", "c2"]


async def test_a_press_that_comes_late_or_twice_says_so_and_changes_nothing(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage)
        buttons, message = stage.platform.last().buttons, stage.platform.last().id
        stage.platform.presses_data(buttons[2].data, message, id="p")
        await stage.sees("Denied by `1`.")
        stage.platform.presses_data(buttons[2].data, message, id="p")
        stage.platform.presses_data(buttons[0].data, message)
        await stage.sees("This question is over: denied by `1`.")
        assert len([text for text in stage.platform.shown() if "is over" in text]) == 1
        assert [type(decision) for _, decision in stage.agent.decisions] == [Deny]


async def test_a_press_that_is_delivered_again_is_no_second_press(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage)
        question = stage.platform.last()
        deny = question.buttons[2].data
        for _ in range(2):
            stage.platform.presses_data(deny, question.id, id="p")
        stage.platform.says("/status")
        await stage.sees("state: ")
        await stage.sees("Denied by `1`.")
        assert not stage.platform.sees("is over")


async def test_neither_strangers_nor_those_who_are_not_approvers_may_answer(stage: Stage) -> None:
    stage.allow = ("memory:1", "memory:2")
    stage.approvers = ("memory:2",)
    async with stage.bridge():
        await ask(stage)
        stage.platform.presses("Approve", sender="666")
        stage.platform.presses("Approve", sender="1")
        await stage.sees("may answer this")
        stage.platform.says("/approve", sender="1")
        await stage.passes(lambda: len([text for text in stage.platform.shown() if "may answer this" in text]) == 2)
        assert stage.agent.decisions == []
        stage.platform.presses("Approve", sender="2")
        await stage.sees("Approved by `2`.")


async def test_nor_may_they_give_the_agent_a_command_that_changes_something(stage: Stage) -> None:
    stage.allow = ("memory:1", "memory:2")
    stage.approvers = ("memory:2",)
    async with stage.bridge():
        stage.platform.says("/undo", sender="1")
        await stage.sees("may give this command")
        assert stage.heard == 0
        stage.platform.says("/undo", sender="2")
        await stage.asked()
        await stage.answers("Undone.")


async def test_a_yes_that_was_written_before_the_question_approves_nothing(typing: Stage) -> None:
    async with typing.bridge():
        await ask(typing)
        number = number_of(typing)
        now = asyncio.get_running_loop().time()
        for written in (now - 60, now, None):
            before = len(typing.platform.shown())
            typing.platform.says("/approve", at=written)
            await typing.shows(before + 1)
            assert f"Write `/approve {number}`" in typing.platform.last().text
        assert typing.agent.decisions == []
        typing.platform.says(f"/approve {number}", at=None)
        await typing.sees("Approved by")
        assert typing.agent.decisions == [("c1", Approve())]


async def test_a_denial_needs_neither_a_number_nor_a_time_nor_patience(tmp_path: Path) -> None:
    stage = Stage(tmp_path, rate=1)
    async with stage.bridge():
        await ask(stage)
        stage.platform.says("and this?")
        await stage.sees("Too many messages")
        stage.platform.says("/deny", at=None)
        await stage.sees("Denied by `1`.")
        stage.platform.says("/approve")
        stage.platform.says("/stop")
        await stage.sees("(stopped)")
        assert [type(decision) for _, decision in stage.agent.decisions] == [Deny]


async def test_a_button_and_a_command_name_whoever_decided_in_the_same_way(stage: Stage) -> None:
    name = "Ada [x](https://evil.example) *b* _i_ <a> `c` @all \u202e"
    async with stage.bridge():
        stage.platform.says("build it", name=name)
        await stage.asked()
        stage.agent.say(ASK)
        await stage.sees("**Approval")
        stage.platform.presses("Approve")
        await stage.sees("Approved by Ada x https evil example b i a 'c' all (`1`).")
        stage.agent.say(ToolRequested("c2", "Bash", "exec", {"command": "ls"}))
        await stage.passes(lambda: len(stage.platform.shown()) == 2)
        await asyncio.sleep(5)
        stage.platform.says("/deny", name=name)
        await stage.sees("Denied by Ada x https evil example b i a 'c' all (`1`).")


async def test_presses_in_vain_do_not_fill_the_chat(stage: Stage) -> None:
    stage.allow = ("memory:1", "memory:2")
    stage.approvers = ("memory:2",)
    async with stage.bridge():
        await ask(stage)
        question = stage.platform.last()
        data = question.buttons[0].data
        for _ in range(300):
            stage.platform.presses_data(data, question.id, sender="1")
        stage.platform.presses_data(data, question.id, sender="2")
        await stage.sees("Approved by `2`.")
        for _ in range(300):
            stage.platform.presses_data(data, question.id, sender="2")
        await stage.sees("This question is over: approved by `2`.")
        assert len(stage.platform.shown()) == 3


async def test_more_questions_than_there_are_numbers_are_denied_at_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "HIGHEST_NUMBER", approvals.LOWEST_NUMBER + 1)
    async with stage.bridge():
        await ask(stage, *(ASK.replace(call_id=f"c{number}") for number in range(3)))
        await stage.passes(lambda: stage.agent.decisions == [("c2", Deny("Too many questions wait for an answer"))])
        assert len(stage.platform.shown()) == 2


async def test_of_many_questions_a_few_stand_in_the_chat_and_the_others_come_after_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_prompts, "MOST_ASKED", 2)
    monkeypatch.setattr(approval_prompts, "MOST_LATER", 2)
    async with stage.bridge():
        await ask(stage, *(ASK.replace(call_id=f"c{number}") for number in range(5)))
        # One more than are waited for.
        await stage.passes(lambda: stage.agent.decisions == [("c4", Deny("Too many questions wait for an answer"))])
        assert len(stage.platform.shown()) == 2
        # One that is over before anybody was asked about it never is.
        stage.agent.say(ToolCancelled("c2", "not needed"))
        await asyncio.sleep(0.1)
        stage.platform.presses("Deny")
        await stage.passes(lambda: len(stage.agent.decisions) == 2)
        await stage.passes(lambda: len(stage.platform.shown()) == 3)
        stage.platform.presses("Deny")
        await stage.passes(lambda: "c3" in dict(stage.agent.decisions))
        assert len([text for text in stage.platform.shown() if "Approval" in text]) == 3


async def test_when_nobody_is_left_to_answer_what_would_be_asked_later_is_denied_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_prompts, "MOST_ASKED", 1)
    async with stage.bridge():
        await ask(stage, ASK, ASK.replace(call_id="c2"))
        stage.platform.leaves()
        await stage.passes(lambda: {call for call, _ in stage.agent.decisions} == {"c1", "c2"})


async def test_when_the_bridge_is_stopped_the_question_says_so(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage)
    assert "No answer needed: the bridge was stopped." in stage.platform.shown()[0]
    assert stage.platform.chats["c"][0].buttons == ()
    assert not any("by user" in text for text in stage.platform.shown())


async def test_a_question_is_asked_in_its_chat_and_answered_there_only(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage)
        data, message = stage.platform.last().buttons[0].data, stage.platform.last().id
        stage.platform.presses_data(data, message, chat="other")
        await stage.sees("This question is over.", "other")
        assert stage.agent.decisions == []


async def test_waiting_for_an_approval_is_not_busy(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage)
        stage.platform.says("and then?")
        await stage.sees("1 message is waiting")
        stage.platform.says("/status")
        await stage.sees("state: waiting for an approval")
        assert "waiting approvals: `" in stage.platform.last().text
        typed = len(stage.platform.typed)
        await asyncio.sleep(60)
        assert len(stage.platform.typed) == typed
        stage.platform.presses("Approve")
        await stage.sees("Approved by")


async def test_a_stop_ends_the_question_too(stage: Stage) -> None:
    async with stage.bridge():
        await ask(stage)
        stage.platform.says("/stop")
        await stage.sees("No answer needed: stopped by user.")
        await stage.sees("(stopped)")


async def test_what_the_agent_says_after_a_question_stands_below_it(stage: Stage) -> None:
    async with stage.bridge():
        stage.platform.says("build it")
        await stage.asked()
        stage.agent.say(TextDelta("I will build it."))
        await stage.sees("I will build it.")
        stage.agent.say(ASK)
        await stage.sees("**Approval")
        stage.platform.presses("Approve")
        await stage.sees("Approved by")
        stage.agent.say(ToolStarted("c1", "Bash"), ToolFinished("c1", "Bash", "success", "ok"))
        await stage.answers("It is built.")
        before, question, after = stage.platform.shown()
        assert (before, after.split("\n")[0]) == ("I will build it.", "It is built.")
        assert "Approval" in question


async def test_the_secrets_of_the_settings_are_in_no_question(tmp_path: Path) -> None:
    stage = Stage(tmp_path, platforms={"telegram": {"token": "123:very-secret"}})
    async with stage.bridge():
        await ask(stage, ASK.replace(args={"command": "curl -H 123:very-secret"}))
        stage.agent.say(ToolCancelled("c1", "no"), TextDelta("it is 123:ve"), TextDelta("ry-secret"), DONE)
        await stage.sees("it is [redacted]")
        assert "very-secret" not in "".join(stage.platform.shown())


@pytest.mark.parametrize("length", [5_000, 50_000], ids=["messages", "a file"])
async def test_what_the_bridge_knows_for_a_secret_is_neither_in_what_is_cut_nor_in_all_of_it(
    stage: Stage, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The agent's own redactor does not know it, so it is in the request.
    monkeypatch.setattr(BridgeFake, "redactor", Redactor(), raising=False)
    stage.environ["API_TOKEN"] = "123:very-secret"
    files: list[str] = []

    async with stage.bridge():
        # The question shows the first half of the first one.
        first = "a" * (ROOM.chars - ROOM.chars // 3 - 6)
        command = f"{first} 123:very-secret {'b' * length} 123:very-secret z"
        await ask(stage, ASK.replace(args={"command": command}))
        before = len(stage.platform.shown())
        stage.platform.presses("Show all")
        await stage.passes(lambda: len(stage.platform.shown()) > before)
        stage.platform.says("/status")
        await stage.sees("waiting approvals")
        files.extend(message.file for message in stage.platform.chats["c"] if message.file)
    shown = "".join([*stage.platform.shown(), *map(text_of, files)])
    assert "[redacted] z" in shown
    assert "123:" not in shown


async def test_when_nobody_is_left_to_answer_it_is_denied_at_once(stage: Stage) -> None:
    bridge = await stage.started()
    serving = asyncio.ensure_future(bridge.serve())
    stage.platform.says("build it")
    await stage.asked()
    stage.platform.leaves()
    await asyncio.sleep(0.1)
    stage.agent.say(ASK)
    await stage.passes(lambda: stage.agent.decisions == [("c1", Deny("There is nobody left to answer"))])
    stage.agent.say(TextDelta("alone"), DONE)
    await asyncio.wait_for(serving, 10)
    await stage.end(bridge, serving)
    assert stage.platform.shown()[-1] == "alone"
