"""The work on one message: what the model is asked, what is told, and what stays in the history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.support.fake_model import USED, FakeModel, Recorded, Reply, Step, call, calls, thoughts, words
from tests.support.loop import until
from trunkline.agents.coder import turn_runner
from trunkline.agents.coder.calls import Calls
from trunkline.agents.coder.compaction import SUMMARY_TOKENS, Compaction
from trunkline.agents.coder.history import History, NoJournal
from trunkline.agents.coder.model_client import RESERVE_TOKENS, ModelClient
from trunkline.agents.coder.turn_runner import TurnRunner
from trunkline.agents.coder.words import GO_ON, NO_ANSWER, NO_MORE_TOOLS, PICTURE_REFUSED, STOPPED
from trunkline.agents.turn_stream import TurnStream
from trunkline.base.redact import MASK, Redactor
from trunkline.core.agent import Approve, Decision, Deny
from trunkline.core.approvals import Decisions
from trunkline.core.events import (
    FINISH,
    Event,
    Extension,
    Failed,
    Notice,
    TextDelta,
    ThinkingDelta,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
)
from trunkline.core.faults import ProviderError
from trunkline.core.usage import Usage
from trunkline.models.messages import Image, Message, Text, ThinkingBlock, ToolResultBlock, ToolUse
from trunkline.models.model import Answer, Retrying, TextChunk
from trunkline.models.refused import PartRefused
from trunkline.tools.tool import Interrupted, Report, ToolOutput
from trunkline.tools.toolbox import Toolbox

pytestmark = pytest.mark.virtual_time


class Bench:
    """One piece of work, its model and its tools."""

    def __init__(
        self, *replies: Reply, tools: Sequence[Recorded] = (), secrets: Sequence[str] = (), **client: Any
    ) -> None:
        self.model = FakeModel(*replies)
        self.decisions = Decisions()
        self.history = History(NoJournal())
        self.history.user((Text("go"),))
        calls = Calls(Toolbox(tools, Redactor(secrets)), self.decisions)
        thinking = ModelClient(self.model, lambda: "Be good.", **client)
        self.work = TurnRunner(thinking, self.history, calls, Compaction(thinking, self.history, calls.specs))
        self.tell = TurnStream(self.work.run)
        self.events: list[Event] = []

    async def run(self, decide: Callable[[str], Decision | None] = lambda call_id: Approve()) -> list[Event]:
        """Take all events, and decide on every request as told; None leaves it open."""
        async for event in self.tell:
            self.events.append(event)
            if isinstance(event, ToolRequested):
                decision = decide(event.call_id)
                if decision is not None:
                    self.decisions.resolve(event.call_id, decision)
        return self.events

    @property
    def last(self) -> Message:
        return self.history.messages[-1]


async def test_words_are_told_as_they_come_and_kept() -> None:
    bench = Bench(words("Hello there"))
    assert await bench.run() == [TextDelta("Hello"), TextDelta("there"), TurnEnded("success", USED)]
    assert bench.last == Message("assistant", (Text("Hello there"),))
    assert bench.model.requests[0].system == "Be good."
    assert bench.model.open_streams == 0


async def test_a_tool_is_requested_run_and_its_result_goes_back_to_the_model() -> None:
    look = Recorded(output=ToolOutput("42 lines", shown="-41\n+42", output_type="diff", metadata={"file_path": "a"}))
    bench = Bench(calls(call("Look", where="a"), text="I look."), words("Done."), tools=[look])
    assert await bench.run() == [
        TextDelta("I look."),
        ToolRequested("t1", "Look", "info", {"where": "a"}, "Look it"),
        ToolStarted("t1", "Look"),
        ToolFinished("t1", "Look", "success", "-41\n+42", "diff", {"file_path": "a"}),
        TextDelta("Done."),
        TurnEnded("success", USED + USED),
    ]
    assert look.calls == [{"where": "a"}]
    assert bench.model.asked[1:] == (
        Message("assistant", (Text("I look."), ToolUse("t1", "Look", {"where": "a"}))),
        Message("user", (ToolResultBlock("t1", "42 lines"),)),
    )


async def test_all_calls_are_announced_before_any_runs_and_results_go_back_in_call_order() -> None:
    first, second = asyncio.Event(), Recorded("Peek")
    slow = Recorded("Look", gate=first)
    bench = Bench(calls(call("Look", "t1"), call("Peek", "t2")), words("ok"), tools=[slow, second])

    async def release() -> None:
        await until(lambda: second.calls)
        first.set()

    releasing = asyncio.ensure_future(release())
    events = await bench.run()
    await releasing
    kinds = [type(event).__name__ for event in events]
    assert kinds[:2] == ["ToolRequested", "ToolRequested"]
    assert [event.call_id for event in events if isinstance(event, ToolFinished)] == ["t2", "t1"]
    assert [block.id for block in bench.model.asked[-1].content if isinstance(block, ToolResultBlock)] == ["t1", "t2"]


async def test_tools_that_change_nothing_run_side_by_side_and_the_others_do_not() -> None:
    for concurrent, most in ((True, 3), (False, 1)):
        tool = Recorded("Do", concurrent=concurrent)
        uses = [call("Do", f"t{number}") for number in range(3)]
        bench = Bench(calls(*uses), words("ok"), tools=[tool])
        await bench.run()
        assert (tool.most_running, len(tool.calls)) == (most, 3)


async def test_a_denial_goes_back_to_the_model_with_its_reason_and_nothing_runs() -> None:
    tool = Recorded("Do", category="exec")
    bench = Bench(calls(call("Do", "t1"), call("Do", "t2")), words("I see."), tools=[tool])
    events = await bench.run(lambda call_id: Deny("too risky") if call_id == "t1" else Approve())
    assert ToolCancelled("t1", "too risky") in events
    assert len(tool.calls) == 1
    assert bench.model.asked[-1].content[:2] == (
        ToolResultBlock("t1", "Tool denied: too risky", is_error=True),
        ToolResultBlock("t2", "seen"),
    )
    assert events[-1] == TurnEnded("success", USED + USED)


async def test_a_call_outside_the_workspace_says_so() -> None:
    bench = Bench(calls(call("Look")), words("ok"), tools=[Recorded(outside=True)])
    events = await bench.run()
    assert events[0] == ToolRequested("t1", "Look", "info", {}, "Look it (outside the workspace)", outside=True)


@pytest.mark.parametrize(
    ("use", "says"),
    [(ToolUse("t1", "Nothing", {}), "Unknown tool: Nothing"), (ToolUse("t1", "Look", None, raw="{oops"), "JSON")],
)
async def test_a_call_that_cannot_work_is_answered_without_asking_anybody(use: ToolUse, says: str) -> None:
    bench = Bench(calls(use), words("sorry"), tools=[Recorded()])
    events = await bench.run()
    assert not any(isinstance(event, ToolRequested) for event in events)
    finished = next(event for event in events if isinstance(event, ToolFinished))
    assert finished.status == "error"
    assert says in finished.output
    assert events[-1] == TurnEnded("success", USED + USED)


async def test_secrets_reach_neither_the_model_nor_the_host() -> None:
    tool = Recorded(output=ToolOutput("key=hunter22hunter22", shown="+hunter22hunter22", output_type="diff"))
    bench = Bench(calls(call("Look")), words("ok"), tools=[tool], secrets=["hunter22hunter22"])
    events = await bench.run()
    finished = next(event for event in events if isinstance(event, ToolFinished))
    assert finished.output == f"+{MASK}"
    assert bench.model.asked[-1].content == (ToolResultBlock("t1", f"key={MASK}"),)


# Stopping


async def test_a_stop_in_the_middle_of_the_words_keeps_them_and_closes_the_stream() -> None:
    bench = Bench([TextChunk("Half an "), TextChunk("ans"), asyncio.Event()])
    running = asyncio.ensure_future(bench.run())
    await until(lambda: len(bench.events) == 2)
    bench.tell.cancel()
    assert (await running)[-1] == TurnEnded("cancelled", Usage())
    assert bench.history.messages[1:] == [
        Message("assistant", (Text("Half an ans"),)),
        Message("user", (Text(STOPPED),)),
    ]
    assert bench.model.open_streams == 0


async def test_a_stop_while_tools_run_and_wait_gives_every_call_an_end() -> None:
    running_tool = Recorded("Run", gate=asyncio.Event())
    done = Recorded("Quick")
    uses = [call("Quick", "t1"), call("Run", "t2"), call("Quick", "t3")]
    bench = Bench(calls(*uses), tools=[running_tool, done])
    running = asyncio.ensure_future(bench.run(lambda call_id: None if call_id == "t3" else Approve()))
    await until(lambda: running_tool.running and any(isinstance(event, ToolFinished) for event in bench.events))
    bench.tell.cancel()
    await running
    assert running_tool.cancelled == 1
    assert bench.last == Message(
        "user",
        (
            ToolResultBlock("t1", "seen"),
            ToolResultBlock("t2", "Stopped by user", True),
            ToolResultBlock("t3", "Stopped by user", True),
            Text(STOPPED),
        ),
    )


async def test_how_far_a_tool_came_that_was_stopped_is_told_to_the_model_without_secrets() -> None:
    class Printing(Recorded):
        async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
            try:
                output: ToolOutput = await super().run(args, report)
                return output
            except asyncio.CancelledError:
                raise Interrupted(ToolOutput("Stopped by user. It printed sk-secret-1234.", "error")) from None

    tool = Printing("Run", gate=asyncio.Event())
    bench = Bench(calls(call("Run", "t1")), tools=[tool], secrets=["sk-secret-1234"])
    running = asyncio.ensure_future(bench.run())
    await until(lambda: tool.running)
    bench.tell.cancel()
    await running
    told = ToolResultBlock("t1", f"Stopped by user. It printed {MASK}.", True)
    assert bench.last == Message("user", (told, Text(STOPPED)))
    assert bench.events[-1] == TurnEnded("cancelled", USED)


# What a turn is known to have cost


async def test_a_stop_reports_what_the_request_and_those_before_it_have_used() -> None:
    begun: list[Step] = [Usage(100, 1), TextChunk("Hm"), asyncio.Event()]
    bench = Bench(calls(call("Look")), begun, tools=[Recorded("Look")])
    running = asyncio.ensure_future(bench.run())
    await until(lambda: TextDelta("Hm") in bench.events)
    bench.tell.cancel()
    await running
    assert bench.events[-1] == TurnEnded("cancelled", USED + Usage(100, 1))


async def test_a_failure_reports_what_the_request_and_those_before_it_have_used() -> None:
    broken: list[Step] = [Usage(100, 1), TextChunk("Hm"), ProviderError("broken off", retryable=True)]
    bench = Bench(calls(call("Look")), broken, tools=[Recorded("Look")])
    events = await bench.run()
    assert events[-1] == TurnEnded("error", USED + Usage(100, 1))


async def test_a_crash_reports_what_was_used_too_and_leaves_no_call_without_a_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(calls(call("Look")), tools=[Recorded("Look")])

    def crash(*_: object) -> None:
        raise ZeroDivisionError("what nobody foresaw")

    monkeypatch.setattr(bench.decisions, "ask", crash)
    events = await bench.run()
    assert isinstance(events[-2], Failed)
    assert events[-1] == TurnEnded("error", USED)
    assert isinstance(bench.last.content[0], ToolResultBlock)


async def test_where_nothing_is_known_nothing_is_reported() -> None:
    bench = Bench([ProviderError("nobody there", retryable=True)])
    events = await bench.run()
    assert events[-1] == TurnEnded("error", Usage())
    assert not Usage().known


# When the provider fails


async def test_a_provider_s_failure_ends_the_turn_and_keeps_what_was_said_and_used() -> None:
    fault = ProviderError("Overloaded", retryable=True)
    bench = Bench(calls(call("Look")), [TextChunk("I th"), fault], tools=[Recorded()])
    events = await bench.run()
    assert events[-2:] == [Failed("provider", "Overloaded", True), TurnEnded("error", USED)]
    assert bench.last == Message("assistant", (Text("I th"),))


async def test_each_retry_is_told() -> None:
    bench = Bench([Retrying("API error 529: Overloaded", 1.25), *words("ok")])
    assert (await bench.run())[0] == Notice("API error 529: Overloaded. Trying again in 1.2 s.")


async def test_a_picture_that_the_provider_does_not_take_is_left_out_and_the_rest_goes_on() -> None:
    fault = PartRefused("API error 400: Could not process image", "pictures")
    bench = Bench([fault], words("ok"))
    picture = Image("image/png", "AAAA")
    bench.history.results([ToolResultBlock("t0", "Image loaded", images=(picture,))])
    bench.history.user((picture, Text("What is it?")))
    events = await bench.run()
    assert events[0] == Notice("API error 400: Could not process image. The pictures were left out.")
    assert events[-1] == TurnEnded("success", USED)
    assert bench.model.requests[1].messages[1:] == (
        Message("user", (ToolResultBlock("t0", f"Image loaded\n{PICTURE_REFUSED}"),)),
        Message("user", (Text(PICTURE_REFUSED), Text("What is it?"))),
    )


async def test_each_part_is_left_out_once_and_where_there_is_none_it_fails() -> None:
    thoughtful = PartRefused("Bad reasoning.", "reasoning")
    bench = Bench([thoughtful], [PartRefused("Bad picture.", "pictures")], [thoughtful])
    bench.history.assistant((ThinkingBlock("hm", "sig"), Text("So.")))
    bench.history.user((Image("image/png", "AAAA"),))
    events = await bench.run()
    assert events[:2] == [
        Notice("Bad reasoning. Its earlier reasoning was left out."),
        Notice("Bad picture. The pictures were left out."),
    ]
    assert events[2] == Failed("provider", "Bad reasoning.", False)
    assert (await Bench([thoughtful]).run())[0] == Failed("provider", "Bad reasoning.", False)


# Answers that are none


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    bench = Bench(thoughts("hm"), words("Here."))
    events = await bench.run()
    assert events == [ThinkingDelta("hm"), TextDelta("Here."), TurnEnded("success", USED + USED)]
    assert bench.model.asked[-1] == Message("user", (Text(NO_ANSWER),))


async def test_reasoning_is_the_answer_when_there_is_no_other() -> None:
    bench = Bench(thoughts("hm"), thoughts("It is 42."))
    events = await bench.run()
    assert events[-2:] == [TextDelta("It is 42."), TurnEnded("success", USED + USED)]


async def test_a_model_that_says_nothing_at_all_fails_the_turn() -> None:
    nothing = [Answer((), "end", USED)]
    events = await Bench(nothing, nothing).run()
    assert isinstance(events[0], Failed)
    assert events[-1].outcome == "error"  # type: ignore[attr-defined]


async def test_a_refusal_is_a_failure() -> None:
    events = await Bench([Answer((), "refusal", USED)]).run()
    assert events == [
        Extension(FINISH, {"reason": "refusal"}),
        Failed("provider", "The model refused to answer."),
        TurnEnded("error", USED),
    ]


async def test_an_answer_that_was_cut_off_goes_on_once() -> None:
    bench = Bench(words("one", "max_tokens"), words("two", "max_tokens"))
    events = await bench.run()
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["one", "two"]
    assert bench.model.asked[-1] == Message("user", (Text(GO_ON),))
    assert events[-3:] == [
        Extension(FINISH, {"reason": "length"}),
        Notice("The answer was cut off at its length limit."),
        TurnEnded("success", USED + USED),
    ]


# Limits


async def test_after_the_last_round_the_model_is_asked_to_answer_without_tools() -> None:
    bench = Bench(calls(call("Look")), words("That is it."), tools=[Recorded()], max_rounds=1)
    events = await bench.run()
    assert bench.model.asked[-1] == Message("user", (Text(NO_MORE_TOOLS),))
    assert events[-1] == TurnEnded("success", USED + USED)


async def test_one_that_goes_on_calling_tools_is_ended() -> None:
    tool = Recorded()
    bench = Bench(calls(call("Look")), calls(call("Look")), tools=[tool], max_rounds=1)
    events = await bench.run()
    failed = next(event for event in events if isinstance(event, Failed))
    assert "max_turns=1" in failed.message
    assert events[-1].outcome == "error"  # type: ignore[attr-defined]
    assert len(tool.calls) == 1
    assert isinstance(bench.last.content[0], ToolResultBlock)


async def test_circles_end_the_turn_with_a_reason() -> None:
    failing = Recorded(output=ToolOutput("no such file", "error"))
    bench = Bench(*(calls(call("Look", path="x")) for _ in range(3)), tools=[failing])
    events = await bench.run()
    failed = next(event for event in events if isinstance(event, Failed))
    assert failed.kind == "tool"
    assert "same failing call of `Look` 3 times" in failed.message


# What a crash leaves


async def test_words_are_kept_while_the_model_still_speaks() -> None:
    pause = asyncio.Event()
    bench = Bench([TextChunk("one "), pause, TextChunk("two "), asyncio.Event()])
    kept: list[str] = []
    bench.history.early = lambda block: kept.append(block.text)  # type: ignore[method-assign, attr-defined]
    running = asyncio.ensure_future(bench.run())
    await until(lambda: len(bench.events) == 1)
    assert kept == []
    await asyncio.sleep(2)
    pause.set()
    await until(lambda: len(bench.events) == 2)
    assert kept == ["one two "]
    bench.tell.cancel()
    await running


async def test_an_endless_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_runner, "MAX_ANSWER_CHARS", 10)
    monkeypatch.setattr(turn_runner, "KEEP_SECONDS", 0)

    bench = Bench([*(TextChunk("x" * 4) for _ in range(100)), *words("end")])
    events = await bench.run()
    assert "longer than 10 characters" in next(event.message for event in events if isinstance(event, Failed))


# What is spent


async def test_summaries_count_as_used() -> None:
    bench = Bench(words("A summary."), words("ok"), context_window=100)
    bench.history.user((Text("x" * 360),))
    events = await bench.run()
    assert events[-1] == TurnEnded("success", USED + USED)


async def test_the_provider_s_count_is_what_counts() -> None:
    bench = Bench(words("ok", usage=Usage(5000, 7)))
    await bench.run()
    assert bench.history.tokens == 5007


@pytest.mark.parametrize("said", [1, 16, 1023, 64_000, 500_000])
async def test_the_longest_answer_is_what_the_user_says_it_is(said: int) -> None:
    bench = Bench(words("ok"), max_tokens=said, context_window=100_000)
    bench.history.counted(40_000)
    await bench.run()
    assert bench.model.requests[0].max_tokens == said


async def test_a_conversation_that_leaves_no_room_for_the_answer_that_the_user_wants_is_summarised_first() -> None:
    bench = Bench(words("a summary"), words("ok"), max_tokens=30_000, context_window=100_000)
    bench.history.assistant((Text("before"),))
    bench.history.user((Text("and now?"),))
    bench.history.counted(70_000)
    await bench.run()
    assert [request.max_tokens for request in bench.model.requests] == [SUMMARY_TOKENS, 30_000]


async def test_an_answer_is_asked_for_no_longer_than_the_window_has_room() -> None:
    bench = Bench(words("ok"), context_window=100_000)
    bench.model.longest_answer = 64_000
    bench.history.counted(60_000)
    await bench.run()
    assert bench.model.requests[0].max_tokens == 100_000 - 60_000 - RESERVE_TOKENS - len("Be good.") // 4
