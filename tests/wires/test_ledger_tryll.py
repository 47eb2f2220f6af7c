"""The ledger says what Tryll does, at both of its ends: with an agent as a model, and with a server as an agent."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.agents.helpers import play, request
from tests.support.fake_agent import FakeAgent
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_served import Peer, echo, served
from tests.support.tryll_stub import TryllStub
from tests.wires.test_ledger import SAMPLES
from trunkline.agents.echo import EchoAgent
from trunkline.agents.external.tryll import TryllAgent
from trunkline.agents.graph.agent_models import AgentModels
from trunkline.agents.graph.pool import ModelPool
from trunkline.cli import tryll_serve
from trunkline.core import events as core
from trunkline.core.fault_table import TABLE
from trunkline.wires.ledger import CONCEPTS, WIRES
from trunkline.wires.tryll import messages as m

TRYLL = WIRES["tryll"]
EVENTS = [concept.name for concept in CONCEPTS if concept.group == "events"]

SAID, END = core.TextDelta("well"), core.TurnEnded("success")


@pytest.fixture
def fake() -> FakeAgent:
    return FakeAgent()


@pytest.fixture
async def peer(tmp_path: Path, fake: FakeAgent) -> AsyncIterator[Peer]:
    models = AgentModels(ModelPool(), {"fake": fake, "echo": EchoAgent()})
    async with served(tmp_path, models) as server, server.peer() as made:
        yield made


async def turn(peer: Peer, fake: FakeAgent, agent: int, *events: core.Event) -> list[m.Message]:
    """All frames of a turn in which an agent behind a model does these things."""
    peer.say(m.SendMessageRequest(3, agent, "hello"))
    await until(lambda: fake.busy)
    fake.say(*events)
    frames: list[m.Message] = []
    while not frames or not isinstance(frames[-1], m.TurnComplete):
        heard = await peer.hear()
        assert heard is not None
        frames.append(heard)
    return frames


async def behind_a_model(peer: Peer, fake: FakeAgent, event: core.Event) -> set[str]:
    """The frames in which an event makes a difference to the client."""
    agent = await peer.agent("agent:fake")
    plain = await turn(peer, fake, agent, SAID, END)
    if isinstance(event, core.TurnEnded):
        changed = await turn(peer, fake, agent, SAID, event)
    else:
        end = core.TurnEnded("error") if isinstance(event, core.Failed) else END
        changed = await turn(peer, fake, agent, SAID, event, end)
        if not isinstance(event, core.TextDelta):
            # That each piece counts as a token is told by the end, and no news of the piece.
            assert len(changed) == len(plain)
    different = Counter(map(repr, changed)) - Counter(map(repr, plain))
    counts = "TurnComplete" if isinstance(event, core.TextDelta) else ""
    return {told.partition("(")[0] for told in different} - {counts}


async def behind_a_server() -> dict[str, set[str]]:
    """For each event that a server's frames become: what those are."""
    found: dict[str, set[str]] = {}

    def frames(number: int, agent: int) -> Sequence[m.Message]:
        return [
            m.NodeEvent(agent, "node", "told", (m.NodeEventKeyValue("k", "v"),)),
            m.AnswerText(number, agent, "word", True),
            m.TtsAudioFormatFrame(agent, 22050),
            m.TtsAudioFrame(agent, b"\1\0"),
            m.TurnComplete(number, agent),
        ]

    async with TryllStub() as stub:
        stub.models["far"] = m.ModelInfo("far", model_type="language")
        stub.answers[m.SendMessageRequest] = lambda _, asked: frames(asked.request_id, asked.agent_id)
        conversation = await TryllAgent("127.0.0.1", stub.port).open(request())
        for event in await play(conversation):
            frame = {
                core.Progress: "DownloadProgress",
                core.Extension: "NodeEvent",
                core.Audio: "TtsAudioFrame",
                core.TextDelta: "AnswerText",
                core.TurnEnded: "TurnComplete",
            }[type(event)]
            found.setdefault(type(event).__name__, set()).add(frame)
        failures: tuple[m.Message, ...] = (m.TurnComplete(status=m.TurnStatus.ERROR), m.ErrorResponse(code=3001))
        for failure in failures:
            stub.answers[m.SendMessageRequest] = partial(_failing, failure)
            assert isinstance((await play(conversation))[0], core.Failed)
            found.setdefault("Failed", set()).add(type(failure).__name__)
        await conversation.close()
    return found


def _failing(failure: m.Message, _: object, asked: m.SendMessageRequest) -> list[m.Message]:
    return [failure.replace(request_id=asked.request_id, agent_id=asked.agent_id)]


async def test_tryll_does_with_each_event_what_the_ledger_says(peer: Peer, fake: FakeAgent) -> None:
    heard = await behind_a_server()
    for concept in EVENTS:
        told = TRYLL[concept]
        seen = await behind_a_model(peer, fake, SAMPLES[concept]) | heard.get(concept, set())
        assert seen == set(told.lines), concept
        assert (not told.lines) == (told.fate == "refused"), concept


def test_every_message_that_the_ledger_names_is_one_of_the_wire() -> None:
    named = {line for found in TRYLL.values() for line in found.lines}
    assert [name for name in named if not issubclass(getattr(m, name, str), m.Message)] == []


async def test_what_fails_a_turn_is_told_where_diagnostics_are_on(peer: Peer, fake: FakeAgent) -> None:
    failure = (core.Failed("provider", "Rate limit exceeded", True), core.TurnEnded("error"))
    told: list[Any] = []
    for diagnostics in (False, True):
        agent = await peer.agent("agent:fake", enable_diagnostics=diagnostics)
        end = (await turn(peer, fake, agent, *failure))[-1]
        assert isinstance(end, m.TurnComplete)
        told.append(json.loads(end.debug_info)["error"] if end.debug_info else None)
    assert told[0] is None
    assert told[1]["code"] == 4001
    assert "Rate limit exceeded" in told[1]["message"]
    assert "diagnostics" in (TRYLL["Failed"].lost or "")
    assert len({form.tryll for form in TABLE.values()}) < len(TABLE)


async def test_an_outcome_that_is_not_known_is_an_error(peer: Peer, fake: FakeAgent) -> None:
    agent = await peer.agent("agent:fake")
    statuses = []
    for outcome in ("success", "error", "unknown"):
        end = (await turn(peer, fake, agent, core.TurnEnded(outcome)))[-1]
        statuses.append(getattr(end, "status", None))
    assert statuses == [m.TurnStatus.SUCCESS, m.TurnStatus.ERROR, m.TurnStatus.ERROR]


async def test_a_message_that_comes_in_a_turn_is_refused_and_the_server_still_answers(
    peer: Peer, fake: FakeAgent
) -> None:
    agent = await peer.agent("agent:fake")
    peer.say(m.SendMessageRequest(3, agent, "one"))
    await until(lambda: fake.busy)
    assert await peer.refused(m.SendMessageRequest(4, agent, "two")) == 3004
    await peer.ask(m.HealthRequest(5), m.HealthResponse)
    peer.say(m.CancelTurnRequest(6, agent))
    assert (await peer.turn())[1].status == m.TurnStatus.CANCELLED
    await peer.get(m.Ack)


async def test_a_system_prompt_that_changes_later_and_all_sampling_are_lost_on_an_agent(
    peer: Peer, fake: FakeAgent
) -> None:
    sampling = m.SamplingOverrides(temperature=0.0, max_tokens=1)
    graph = echo(system_prompt="before", sampling=sampling)
    agent = (await peer.ask(m.CreateAgentRequest(2, graph, "agent:fake"), m.CreateAgentResponse)).agent_id
    frames = await turn(peer, fake, agent, SAID, SAID, END)
    assert [frame.text for frame in frames if isinstance(frame, m.AnswerText)] == ["well", "well", ""]
    opened = fake.request
    later = m.GenerateParams(system_prompt="after", stream=True)
    await peer.ask(m.ChangeAgentParamRequest(4, agent, "say", later), m.Ack)
    await turn(peer, fake, agent, END)
    assert fake.request is opened
    assert opened is not None
    assert opened.instructions == "before"
    assert [message.text for message in fake.heard] == ["hello", "hello"]


async def test_files_are_told_of_and_not_sent() -> None:
    assert TRYLL["attachments"].fate == "refused"
    async with TryllStub() as stub:
        stub.models["near"] = m.ModelInfo("near", m.ModelStatus.LOCAL, model_type="language")
        conversation = await TryllAgent("127.0.0.1", stub.port).open(request())
        async with asyncio.timeout(PATIENCE_SECONDS):
            heard: list[Any] = [event async for event in conversation.turn(core.UserMessage("hi", ("a.png",)))]
        await conversation.close()
        assert isinstance(heard[0], core.Notice)
        assert [asked.text for asked in stub.asked(m.SendMessageRequest)] == ["hi"]


def test_the_flags_that_the_ledger_names_are_those_of_the_server() -> None:
    flags = {flag for option in tryll_serve.command.params for flag in option.opts}
    for concept, flag in (("modes", "--mode"), ("allow-list", "--allow"), ("workspace", "--workspace")):
        assert f"`{flag}`" in TRYLL[concept].how
        assert flag in flags
