"""The scripted agent, spoken to as the session does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agents.helpers import MemoryJournal, agent_of, play, request, text_of
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.player import ScriptedCrash
from trunkline.agents.scripted import ScriptedConversation
from trunkline.core.agent import AddHistory, AddMcpServer, Agent, Approve, Conversation, Decision, Deny, SetOptions
from trunkline.core.events import (
    Event,
    Extension,
    Failed,
    Notice,
    Progress,
    SessionIdentified,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.faults import Unsupported
from trunkline.core.usage import Usage

ENDED = TurnEnded("success")


async def opened(text: str, *, progress_seconds: float = 60.0, **changes: object) -> ScriptedConversation:
    return await agent_of(text, progress_seconds=progress_seconds).open(request(**changes))


def steps(text: str) -> str:
    """A script of one turn."""
    return f"turns: [{{steps: [{text}]}}]"


def approve(_: ToolRequested) -> Decision:
    return Approve()


async def until(stream: AsyncIterator[Event], kind: type[Event], count: int = 1) -> list[Event]:
    """Events up to the given number of a kind."""
    events: list[Event] = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while sum(isinstance(event, kind) for event in events) < count:
            events.append(await anext(stream))
    return events


async def rest(stream: AsyncIterator[Event]) -> list[Event]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [event async for event in stream]


async def test_it_fulfils_the_protocols_of_the_core() -> None:
    agent: Agent = agent_of(steps("{text: a}"))
    conversation: Conversation = await agent.open(request())
    assert agent.name == "scripted"
    assert agent.capabilities.approval
    await conversation.close()


# Text and the other simple events.


async def test_simple_steps_become_their_events_in_order() -> None:
    conversation = await opened(
        "turns: [{steps: [{thinking: Hm.}, {text: [a, b]}, {notice: n}, {progress: p}, "
        "{extension: {kind: k, data: {x: [1]}}}, {identify: own}, {wait: 0}], usage: {input_tokens: 1}}]"
    )
    assert await play(conversation) == [
        ThinkingDelta("Hm."),
        TextDelta("a"),
        TextDelta("b"),
        Notice("n"),
        Progress("p"),
        Extension("k", {"x": [1]}),
        SessionIdentified("own"),
        TurnEnded("success", Usage(input_tokens=1)),
    ]
    assert conversation.session_id == "own"


async def test_placeholders_are_filled_in_once() -> None:
    conversation = await opened(
        """
turns:
  - when: "create (?P<name>\\\\S+)( in (?P<place>\\\\S+))?"
    steps:
      - text: "{{ name }}|{{place}}|{{turn}}|{{input}}|{{files}}|{{history}}|{ {{{x}}}"
      - extension: {kind: k, data: {deep: ["{{name}}"]}}
""".replace("{{{x}}}", "{{1}}")
    )
    await conversation.configure(AddHistory("before"))
    await conversation.configure(AddHistory("and {{input}}"))
    message = UserMessage("Create {{turn}}", files=(__file__, "/"))
    events = await rest(conversation.turn(message))
    assert events[0] == TextDelta(
        f"{{{{turn}}}}||1|Create {{{{turn}}}}|{__file__}, /|before\nand {{{{input}}}}|{{ {{{{1}}}}"
    )
    assert events[1] == Extension("k", {"deep": ["{{turn}}"]})


async def test_a_file_that_is_missing_gets_a_notice(tmp_path: Path) -> None:
    conversation = await opened(steps("{text: a}"), workspace=str(tmp_path))
    events = await rest(conversation.turn(UserMessage("go", files=("{{input}}.txt",))))
    assert isinstance(events[0], Notice)
    assert "`{{input}}.txt`" in events[0].message
    assert events[1:] == [TextDelta("a"), ENDED]


# Which turn answers.

MATCHING = """
turns:
  - {when: "^stop\\\\b", steps: [{text: stopped}]}
  - steps: [{text: first}]
  - {when: "stop", steps: [{text: never first}]}
  - steps: [{text: "last {{turn}}"}]
"""


async def test_a_message_takes_the_turn_that_matches_else_the_next_plain_one_and_the_last_repeats() -> None:
    conversation = await opened(MATCHING)
    answers = [text_of(await play(conversation, text)) for text in ("hi", "STOP it", "a stop", "b", "c", "stop")]
    assert answers == ["first", "stopped", "never first", "last 4", "last 5", "stopped"]


async def test_a_message_without_a_turn_is_told_so() -> None:
    events = await play(await opened("turns: [{when: a, steps: []}]"), "b")
    assert isinstance(events[0], Failed)
    assert "Add one without `when`." in events[0].message
    assert events[1:] == [TurnEnded("error")]


async def test_the_place_in_the_script_and_the_history_survive_a_resume() -> None:
    journal = MemoryJournal()
    before = await opened(MATCHING, journal=journal)
    assert text_of(await play(before, "x")) == "first"
    await before.close()
    after = await opened(MATCHING + '  - steps: [{text: "{{history}}"}]', journal=journal, resumed=True, history=("h",))
    assert text_of(await play(after, "stop")) == "stopped"
    assert text_of(await play(after, "y")) == "last 3"
    assert text_of(await play(after, "z")) == "h"


async def test_the_journal_stays_small_and_ignores_what_others_wrote() -> None:
    journal = MemoryJournal()
    journal.append({"agent": "another"})
    journal.append("noise")
    conversation = await opened(steps('{text: "{{turn}}"}'), journal=journal)
    answers = [text_of(await play(conversation)) for _ in range(100)]
    assert answers[-1] == "100"
    assert len(journal.records) < 40
    again = await opened(steps('{text: "{{turn}}"}'), journal=journal, resumed=True)
    assert text_of(await play(again)) == "101"


# Tools.

WRITE = """
turns:
  - steps:
      - tool:
          name: Write
          args: {file_path: "{{input}}.txt"}
          description: "Write to {{input}}.txt"
          id: t1
          output: "Created {{input}}.txt"
          output_type: diff
          metadata: {file_path: "{{input}}.txt"}
          approved: [{text: "It said: {{output}}. "}]
          denied: [{text: "Fine, I won't: {{reason}}. "}]
      - text: Done.
"""
REQUESTED = ToolRequested("t1", "Write", "edit", {"file_path": "a.txt"}, "Write to a.txt")


async def test_an_approved_tool_starts_and_ends() -> None:
    events = await play(await opened(WRITE), "a", decide=approve)
    assert events == [
        REQUESTED,
        ToolStarted("t1", "Write"),
        ToolFinished("t1", "Write", "success", "Created a.txt", "diff", {"file_path": "a.txt"}),
        TextDelta("It said: Created a.txt. "),
        TextDelta("Done."),
        ENDED,
    ]


@pytest.mark.parametrize(
    ("decision", "reason"), [(Deny("not today"), "not today"), (Deny(), "User denied"), (Decision(), "User denied")]
)
async def test_a_denied_tool_never_starts_and_the_reason_is_fed_back(decision: Decision, reason: str) -> None:
    events = await play(await opened(WRITE), "a", decide=lambda _: decision)
    assert events == [
        REQUESTED,
        ToolCancelled("t1", reason),
        TextDelta(f"Fine, I won't: {reason}. "),
        TextDelta("Done."),
        ENDED,
    ]


async def test_nothing_happens_to_a_tool_before_the_decision() -> None:
    conversation = await opened(WRITE)
    stream = conversation.turn(UserMessage("a"))
    assert await anext(stream) == REQUESTED
    coming = asyncio.ensure_future(anext(stream))
    await conversation.decide("another", Approve())
    # Long enough for a turn that does not wait to say its next word many times over.
    await asyncio.wait({coming}, timeout=0.05)
    assert not coming.done()
    await conversation.decide("t1", Approve())
    assert await coming == ToolStarted("t1", "Write")
    await rest(stream)


async def test_a_call_id_is_never_used_twice() -> None:
    conversation = await opened(steps("{tools: [{name: Read, id: t1}, {name: Read, id: t1}, {name: Read}]}"))
    first = [event.call_id for event in await play(conversation, decide=approve) if isinstance(event, ToolRequested)]
    second = [event.call_id for event in await play(conversation, decide=approve) if isinstance(event, ToolRequested)]
    assert first == ["t1", "t1-2", "call-1-1"]
    assert second == ["t1-3", "t1-4", "call-2-1"]


PARALLEL = steps(
    "{tools: [{name: Read, id: t1, output: one, denied: [{text: '1: {{reason}} '}]}, "
    "{name: Read, id: t2, output: two, denied: [{text: '2: {{reason}} '}], approved: [{text: '2 ok '}]}, "
    "{name: Read, id: t3, output: three}]}, {text: end}"
)


async def test_parallel_tools_are_all_requested_first_and_answered_in_any_order() -> None:
    conversation = await opened(PARALLEL)
    stream = conversation.turn(UserMessage("go"))
    requested = await until(stream, ToolRequested, 3)
    assert [type(event) for event in requested] == [ToolRequested] * 3
    await conversation.decide("t3", Deny("no"))
    assert await anext(stream) == ToolCancelled("t3", "no")
    await conversation.decide("t2", Approve())
    assert await until(stream, ToolFinished) == [
        ToolStarted("t2", "Read"),
        ToolFinished("t2", "Read", "success", "two"),
    ]
    await conversation.decide("t1", Deny("nor this"))
    assert await rest(stream) == [
        ToolCancelled("t1", "nor this"),
        TextDelta("1: nor this "),
        TextDelta("2 ok "),
        TextDelta("end"),
        ENDED,
    ]


async def test_parallel_tools_run_side_by_side() -> None:
    conversation = await opened(steps("{tools: [{name: A, category: mcp, takes: 0.2}, {name: B, category: mcp}]}"))
    events = await play(conversation, decide=approve)
    names = [(type(event).__name__, event.name) for event in events if isinstance(event, ToolStarted | ToolFinished)]
    assert names == [("ToolStarted", "A"), ("ToolStarted", "B"), ("ToolFinished", "B"), ("ToolFinished", "A")]


async def test_a_denied_tool_may_lead_to_another() -> None:
    conversation = await opened(steps("{tool: {name: Bash, id: a, denied: [{tool: {name: Read, id: b}}]}}"))
    events = await play(conversation, decide=lambda call: Deny("no") if call.name == "Bash" else Approve())
    assert events[-2] == ToolFinished("b", "Read", "success", "")


async def test_a_tool_that_takes_long_shows_that_it_lives() -> None:
    conversation = await opened(steps("{tool: {name: Bash, takes: 0.2}}"), progress_seconds=0.02)
    events = await play(conversation, decide=approve)
    progress = [event for event in events if isinstance(event, Progress)]
    assert progress[:2] == [
        Progress("`Bash` is still running after 0.02 s", "call-1-1"),
        Progress("`Bash` is still running after 0.04 s", "call-1-1"),
    ]
    assert [type(event) for event in events[-2:]] == [ToolFinished, TurnEnded]


# Failures.


async def test_a_failure_does_not_end_the_turn() -> None:
    conversation = await opened(steps("{fail: {kind: provider, message: Busy, retryable: true}}, {text: again}"))
    assert await play(conversation) == [Failed("provider", "Busy", retryable=True), TextDelta("again"), ENDED]


async def test_a_crash_leaves_the_iterator_and_the_next_turn_works() -> None:
    conversation = await opened("turns: [{steps: [{text: a}, {raise: 'boom {{input}}'}]}, {steps: [{text: b}]}]")
    with pytest.raises(ScriptedCrash, match="boom go"):
        await play(conversation)
    assert text_of(await play(conversation)) == "b"


async def test_a_vanishing_turn_has_no_end() -> None:
    assert await play(await opened(steps("{text: a}, {vanish: true}, {text: b}"))) == [TextDelta("a")]


# Cancelling.


async def cancelled(conversation: ScriptedConversation, kind: type[Event], count: int = 1) -> list[Event]:
    """What comes after a cancel that follows the given events."""
    stream = conversation.turn(UserMessage("go"))
    await until(stream, kind, count)
    await conversation.cancel()
    return await rest(stream)


@pytest.mark.parametrize("slow", ["{hang: true}", "{wait: 60}", "{text: [b, c, d, e, f, g, h, i]}"])
async def test_cancel_ends_the_turn_wherever_it_is(slow: str) -> None:
    conversation = await opened(
        f"turns: [{{steps: [{{text: a}}, {slow}], usage: {{output_tokens: 2}}}}, {{steps: [{{text: next}}]}}]"
    )
    assert await cancelled(conversation, TextDelta) == [TurnEnded("cancelled", Usage(output_tokens=2))]
    assert text_of(await play(conversation)) == "next"


async def test_cancel_drops_pending_requests_and_a_late_answer_changes_nothing() -> None:
    conversation = await opened(PARALLEL)
    assert await cancelled(conversation, ToolRequested, 3) == [
        *(ToolCancelled(call_id, "Stopped by user") for call_id in ("t1", "t2", "t3")),
        TurnEnded("cancelled"),
    ]
    await conversation.decide("t1", Approve())
    assert (await play(conversation, decide=approve))[-1] == ENDED


async def test_cancel_stops_a_running_tool() -> None:
    conversation = await opened(steps("{tool: {name: Bash, id: t1, takes: 60}}"))
    stream = conversation.turn(UserMessage("go"))
    await until(stream, ToolRequested)
    await conversation.decide("t1", Approve())
    await until(stream, ToolStarted)
    await conversation.cancel()
    assert await rest(stream) == [ToolCancelled("t1", "Stopped by user"), TurnEnded("cancelled")]


async def test_a_cancel_before_the_first_event_counts() -> None:
    conversation = await opened(steps("{text: a}"))
    stream = conversation.turn(UserMessage("go"))
    await conversation.cancel()
    await conversation.cancel()
    assert await rest(stream) == [TurnEnded("cancelled")]


async def test_cancel_without_a_turn_does_nothing() -> None:
    conversation = await opened(steps("{text: a}"))
    await conversation.cancel()
    assert text_of(await play(conversation)) == "a"
    await conversation.cancel()
    assert text_of(await play(conversation)) == "a"


async def test_a_deaf_turn_ignores_cancel_but_not_the_end_of_its_task() -> None:
    conversation = await opened(steps("{text: a}, {hang: deaf}"))
    stream = conversation.turn(UserMessage("go"))
    await until(stream, TextDelta)
    coming = asyncio.ensure_future(anext(stream))
    # Long enough for a turn that listens.
    for _ in range(2):
        await asyncio.wait({coming}, timeout=0.05)
        await conversation.cancel()
    assert not coming.done()
    coming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await coming
    await conversation.close()


async def test_leaving_the_iterator_ends_the_turn_and_its_tools() -> None:
    conversation = await opened(PARALLEL)
    stream = conversation.turn(UserMessage("go"))
    await until(stream, ToolRequested, 3)
    before = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    assert before
    await stream.aclose()  # type: ignore[attr-defined]  # every turn of ours is a generator
    assert all(task.done() for task in before)


async def test_close_ends_a_turn_that_nobody_reads_any_more() -> None:
    conversation = await opened(steps("{text: a}, {hang: deaf}"))
    stream = conversation.turn(UserMessage("go"))
    await until(stream, TextDelta)
    await conversation.close()
    assert await rest(stream) == []


async def test_it_takes_options_and_refuses_a_tool_server() -> None:
    conversation = await opened(steps("{text: a}"))
    await conversation.configure(SetOptions({"model": "any"}))
    with pytest.raises(Unsupported, match="scripted"):
        await conversation.configure(AddMcpServer("files", "stdio"))
