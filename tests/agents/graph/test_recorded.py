"""Graph agents whose conversations are kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph.helpers import graph
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.hosting import LocalGraphHost
from trunkline.agents.graph.pool import ModelPool
from trunkline.agents.graph.recorded import RECORDED_AGENT, ConversationRecords, RecordedAgent
from trunkline.base.redact import Redactor
from trunkline.core import events as core
from trunkline.core.events import Extension, Failed, TextDelta, TurnEnded, TurnStarted, UserMessage
from trunkline.core.graph.description import (
    CannedResponseParams,
    GenerateParams,
    GraphDescription,
    InstructionParams,
    ToolCallParams,
    ToolDefinition,
)
from trunkline.core.graph.speech import TtsMark
from trunkline.core.graph.turns import Ending
from trunkline.store.files import FileStore


class Ears:
    """A listener that remembers."""

    full = False

    def __init__(self) -> None:
        self.heard: list[Any] = []

    async def room(self) -> None:
        pass

    def delta(self, text: str) -> None:
        self.heard.append(text)

    def whole(self, text: str, final: bool) -> None:
        self.heard.append((text, final))

    def audio(self, pcm: bytes, sample_rate: int) -> None:
        self.heard.append(pcm)

    def timing(self, marks: tuple[TtsMark, ...]) -> None:
        self.heard.append(marks)

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        self.heard.append((node, type))


class Stuck(Ears):
    """One that is behind, and stays so."""

    full = True

    def __init__(self) -> None:
        super().__init__()
        self.waits = asyncio.Event()

    async def room(self) -> None:
        self.waits.set()
        await asyncio.Event().wait()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "sessions")


async def agent_of(
    described: GraphDescription, store: FileStore, secrets: Redactor | None = None
) -> tuple[LocalGraphHost, GraphAgent]:
    host = LocalGraphHost(ModelPool(), records=ConversationRecords(store, secrets=secrets))
    return host, await host.open_session().create_agent(described, lambda *_: None, default_model="mock")


async def kept(host: LocalGraphHost, agent: GraphAgent, store: FileStore) -> list[core.Event]:
    """The events of the one session, once it is over."""
    agent.close()
    agent.close()
    await host.close()
    (info,) = store.list()
    log = store.open(info.id)
    found = [item.event for item in log.read() if isinstance(item, core.Envelope)]
    log.close()
    return found


def said(events: list[core.Event]) -> list[core.Event]:
    return [event for event in events if not event.private]


async def test_a_conversation_is_kept_as_a_session_and_the_client_hears_the_same(store: FileStore) -> None:
    described = graph(
        a=GenerateParams(stream=True, default_exit="b"), b=CannedResponseParams(inline_strings=("Well.",))
    )
    host, agent = await agent_of(described, store)
    ears, plain_ears = Ears(), Ears()
    plain = LocalGraphHost(ModelPool())
    other = await plain.open_session().create_agent(described, lambda *_: None, default_model="mock")
    ending, plain_ending = await agent.turn("hi", ears), await other.turn("hi", plain_ears)
    assert isinstance(agent, RecordedAgent)
    assert type(other) is GraphAgent
    assert (ears.heard, ending) == (plain_ears.heard, plain_ending)
    other.close()
    await plain.close()
    events = said(await kept(host, agent, store))
    assert events[0] == TurnStarted(UserMessage("hi"))
    assert [info.agent for info in store.list()] == [RECORDED_AGENT]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "You said: hi\nWell."
    assert isinstance(events[-1], TurnEnded)
    assert (events[-1].outcome, events[-1].usage.output_tokens) == ("success", ending.tokens_generated)  # type: ignore[union-attr]


async def test_what_nodes_tell_what_fails_and_what_is_stopped_is_kept(store: FileStore) -> None:
    tools = ToolCallParams(tools=(ToolDefinition("open"),), notify_client=True, tool_called_exit="round")
    host, agent = await agent_of(graph(a=tools, round=InstructionParams(default_exit="a")), store)
    ending = await agent.turn("open it", Ears())
    assert ending.error is not None
    stuck = Stuck()
    turn = asyncio.ensure_future(agent.turn("open", stuck))
    await stuck.waits.wait()
    turn.cancel()
    await asyncio.wait({turn})
    events = said(await kept(host, agent, store))
    assert [event.data["type"] for event in events if isinstance(event, Extension)][:1] == ["tool_call"]
    assert [event.kind for event in events if isinstance(event, Failed)] == ["too_many_steps"]
    assert [event.outcome for event in events if isinstance(event, TurnEnded)] == ["error", "cancelled"]


async def test_a_history_that_is_given_back_is_known_again_and_nobody_who_said_nothing_is_kept(
    store: FileStore,
) -> None:
    canned = graph(a=CannedResponseParams(inline_strings=("Yes.",)))
    host, agent = await agent_of(canned, store)
    silent = await host.open_session().create_agent(canned, lambda *_: None)
    agent.restore([("old", "older")])
    agent.restore([("more", "most")], append=True)
    assert await agent.turn("now", Ears()) == Ending()
    agent.restore([("late", "later")], append=True)
    silent.close()
    agent.close()
    await host.close()
    (info,) = store.list()
    log = store.open(info.id)
    records = [record["graph_exchange"] for record in log.restore().state.journal]
    log.close()
    assert records == [["old", "older"], ["more", "most"], ["now", "Yes."], ["late", "later"]]


async def test_secrets_are_not_kept(store: FileStore) -> None:
    secret = "sk-0123456789abcdef"
    host, agent = await agent_of(graph(a=GenerateParams(stream=True)), store, Redactor([secret]))
    ears = Ears()
    await agent.turn(f"say {secret}", ears)
    assert secret in "".join(ears.heard)
    assert secret not in repr(await kept(host, agent, store))


async def test_a_disk_that_refuses_leaves_nobody_without_an_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    host, agent = await agent_of(graph(a=CannedResponseParams(inline_strings=("Yes.",))), FileStore(tmp_path / "file"))
    assert (await agent.turn("now", Ears())).error is None
    agent.close()
    await host.close()
    assert "a conversation is not kept" in caplog.text
