"""Sessions as spans, in this process: what is told of a turn, of its tools and of its questions to models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from tests.support.fake_agent import FakeAgent
from tests.support.fake_model import FakeModel, words
from tests.support.loop import until
from tests.support.spans import MadeSpans, attributes, following
from trunkline.base import log_context, trace_context
from trunkline.base.trace_context import TraceContext
from trunkline.core.agent import Approve
from trunkline.core.approvals import Policy
from trunkline.core.events import (
    Event,
    Failed,
    TextDelta,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.faults import ProviderError
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.models.asking import asked
from trunkline.models.messages import Message, Text
from trunkline.models.model import Request

pytestmark = pytest.mark.virtual_time

SAID = "nobody else's business"
REMOTE = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


@pytest.fixture
def made() -> Iterator[MadeSpans]:
    with following() as made:
        yield made


class AskingAgent(FakeAgent):
    """An agent that asks a model, and says what that says."""

    name = "asking"

    def __init__(self, *replies: object) -> None:
        super().__init__()
        self.model = FakeModel(*replies)  # type: ignore[arg-type]
        self.sent: list[dict[str, str]] = []

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        self.sent.append(trace_context.headers())
        async for _ in asked(self.model, Request((Message("user", (Text(message.text),)),))):
            self.sent.append(trace_context.headers())
            yield TextDelta(SAID)
        yield TurnEnded("success", Usage(10, 5))


async def opened(agent: FakeAgent, id: str = "s1") -> Session:
    return await Session.open(agent, MemoryLog(id), Policy())


async def test_a_turn_is_a_span_with_its_agent_its_session_and_what_it_used(made: MadeSpans) -> None:
    session = await opened(AskingAgent(words("yes indeed")))
    with log_context.about(wire="jsonstream"):
        session.submit(UserMessage(SAID))
    await session.at_rest()
    await session.close()
    turn, chat = made["invoke_agent asking"], made["chat fake"]
    assert attributes(turn) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "asking",
        "gen_ai.conversation.id": "s1",
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "trunkline.turn": 1,
        "trunkline.wire": "jsonstream",
        "trunkline.outcome": "success",
    }
    assert (turn.kind, turn.parent, turn.status.status_code) == (SpanKind.INTERNAL, None, StatusCode.UNSET)
    told = attributes(chat)
    assert isinstance(told.pop("gen_ai.response.time_to_first_chunk"), float)
    assert told == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "test",
        "gen_ai.request.model": "fake",
        "gen_ai.response.finish_reasons": ("end",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
    }
    assert chat.kind is SpanKind.CLIENT
    assert chat.parent == turn.context


async def test_nothing_that_anybody_says_is_in_a_span(made: MadeSpans) -> None:
    agent = FakeAgent()
    session = await opened(agent)
    session.submit(UserMessage(f"a message: {SAID}"))
    await until(lambda: agent.busy)
    agent.say(
        TextDelta(SAID),
        ToolRequested("c1", "Bash", "exec", {"command": SAID}, description=SAID),
        Failed("provider", SAID),
    )
    await until(lambda: bool(session.waiting))
    session.answer("c1", Approve())
    agent.say(ToolStarted("c1", "Bash"), ToolFinished("c1", "Bash", "error", SAID), TurnEnded("error"))
    await session.at_rest()
    await session.close()
    assert made.names == ["execute_tool Bash", "invoke_agent fake"]
    assert SAID not in made.everything()


async def test_a_tool_is_a_span_below_its_turn_from_its_start_to_its_end(made: MadeSpans) -> None:
    agent = FakeAgent()
    session = await opened(agent)
    session.submit(UserMessage("go"))
    await until(lambda: agent.busy)
    agent.say(ToolStarted("c1", "Read"), ToolFinished("c1", "Read", "success", "x"))
    agent.say(ToolStarted("c2", "Grep"), ToolFinished("c2", "Grep", "error", "x"), ToolStarted("c3", "Glob"))
    agent.say(TurnEnded("cancelled"))
    await session.at_rest()
    await session.close()
    turn = made["invoke_agent fake"]
    read, grep, glob = made["execute_tool Read"], made["execute_tool Grep"], made["execute_tool Glob"]
    assert attributes(read) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "Read",
        "gen_ai.tool.call.id": "c1",
    }
    assert (attributes(grep)["error.type"], grep.status.status_code) == ("_OTHER", StatusCode.ERROR)
    assert attributes(glob)["error.type"] == "cancelled"
    assert [span.parent for span in (read, grep, glob)] == [turn.context] * 3
    assert turn.status.status_code is StatusCode.UNSET


async def test_a_turn_that_failed_has_the_kind_of_its_fault(made: MadeSpans) -> None:
    session = await opened(AskingAgent([ProviderError(SAID)]))
    session.submit(UserMessage("go"))
    await session.at_rest()
    await session.close()
    for name in ("invoke_agent asking", "chat fake"):
        span = made[name]
        assert attributes(span)["error.type"] == ProviderError.kind
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert SAID not in made.everything()


async def test_a_turn_belongs_where_its_message_came_from_however_long_it_waited(made: MadeSpans) -> None:
    agent = FakeAgent()
    session = await opened(agent)
    session.submit(UserMessage("first"))
    with trace_context.within(REMOTE):
        session.submit(UserMessage("second"))
    await until(lambda: len(agent.heard) == 1)
    agent.say(TurnEnded("success"))
    await until(lambda: len(agent.heard) == 2)
    agent.say(TurnEnded("success"))
    await session.at_rest()
    await session.close()
    spans = [span for span in made.all if span.name == "invoke_agent fake"]
    first, second = sorted(spans, key=lambda span: attributes(span)["trunkline.turn"] == 2)
    assert first.parent is None
    assert second.parent is not None
    assert (f"{second.parent.trace_id:032x}", f"{second.parent.span_id:016x}") == (REMOTE.trace_id, REMOTE.span_id)


async def test_what_is_asked_in_a_turn_is_sent_along_as_part_of_it_and_nothing_is_left_of_it_outside(
    made: MadeSpans,
) -> None:
    agent = AskingAgent(words("one two"))
    session = await opened(agent)
    session.submit(UserMessage("go"))
    await session.at_rest()
    await session.close()
    turn = made["invoke_agent asking"].context
    assert turn is not None
    header = {"traceparent": f"00-{turn.trace_id:032x}-{turn.span_id:016x}-{turn.trace_flags:02x}"}
    # Also between the pieces of an answer: what the agent does with them is not the model's.
    assert agent.sent == [header] * 4
    assert trace_context.current() is None


async def test_a_question_that_is_left_before_its_answer_was_cancelled(made: MadeSpans) -> None:
    stream = asked(FakeModel(words("one two")), Request(()))
    await anext(stream)
    await stream.aclose()
    chat = made["chat fake"]
    assert attributes(chat)["trunkline.outcome"] == "cancelled"
    assert "error.type" not in attributes(chat)


async def test_a_turn_that_is_let_go_of_while_somebody_is_asked_ends_with_its_session(made: MadeSpans) -> None:
    agent = FakeAgent()
    agent.capabilities = agent.capabilities.replace(continues=True)
    session = await opened(agent)
    session.submit(UserMessage("go"))
    await until(lambda: agent.busy)
    agent.say(ToolRequested("c1", "Bash", "exec", {}))
    await until(lambda: bool(session.waiting))
    await session.settled()
    await session.suspend()
    assert attributes(made["invoke_agent fake"])["trunkline.outcome"] == "suspended"


async def test_a_session_that_nobody_follows_has_no_sink_for_it() -> None:
    agent = FakeAgent()
    session = await opened(agent)
    assert session._recorder.sinks == []
    await session.close()
