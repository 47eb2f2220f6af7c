"""The voice inputs of a server over a host that does as it is told: what it is asked for, when, and what it costs."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.loop import until
from tests.support.tryll_served import Peer, Served
from tests.support.tryll_voice import FINAL, Microphone, microphone, silence
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.hosting import SessionHost
from trunkline.core.graph.turns import TranscriptListener
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.messages import TranscriptUpdateKind as Kind
from trunkline.wires.tryll.serve.session import ClientSession

SLOW = "mock-slow"
LONG = " ".join(["word"] * 500)


class Heard:
    """An utterance."""

    def __init__(self, listener: TranscriptListener) -> None:
        self.listener = listener
        self.over = False
        self.fed = self.cancelled = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.fails: Exception | None = None

    async def feed(self, pcm: bytes | bytearray) -> None:
        self.fed += len(pcm)
        await self.go_on.wait()
        if self.fails is not None:
            raise self.fails

    async def finish(self) -> None:
        if self.fails is not None:
            raise self.fails
        self.end("")

    def end(self, text: str) -> None:
        self.over = True
        self.listener.update(FINAL, text, 900)

    def cancel(self) -> None:
        self.cancelled += 1
        self.over = True

    def hurry(self) -> None:
        self.go_on.set()


class FakeAgent:
    """A voice input, and the host of it."""

    def __init__(self) -> None:
        self.utterances: list[Heard] = []
        self.closed = 0

    @property
    def last(self) -> Heard:
        return self.utterances[-1]

    def begin(self, listener: TranscriptListener, **_: object) -> Heard:
        self.utterances.append(Heard(listener))
        return self.last

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAgent:
    made = FakeAgent()

    async def create_voice(*_: object) -> FakeAgent:
        return made

    monkeypatch.setattr(SessionHost, "create_voice", create_voice)
    return made


def session_of(server: Served) -> ClientSession:
    (connection,) = server.server.connections
    assert connection.session is not None
    return connection.session


async def history(peer: Peer, agent: int) -> list[str]:
    found = await peer.ask(m.SaveHistoryRequest(9, agent), m.SaveHistoryResponse)
    return [entry.text for entry in found.entries]


async def listening(mic: Microphone, agent: int = 0, *, barge_in: bool = False) -> None:
    mic.peer.say(mic.begin(agent, barge_in=barge_in))
    while not isinstance(await mic.peer.hear(), m.Ack):
        pass


@pytest.mark.parametrize("how", ["cancel", "destroy"])
async def test_what_nobody_wants_to_know_is_not_waited_for(peer: Peer, fake: FakeAgent, how: str) -> None:
    mic = await microphone(peer)
    await listening(mic)
    fake.last.go_on.clear()
    peer.say(*mic.sound(silence(100)))
    await until(lambda: fake.last.fed)
    # It would take for ever, and another one's end is none.
    peer.say(mic.end())
    await peer.ask(m.HealthRequest(1), m.HealthResponse)
    assert not fake.last.go_on.is_set()
    fake.last.hurry()
    assert (await mic.updates())[-1].text == ""
    await peer.get(m.Ack)
    await listening(mic)
    fake.last.go_on.clear()
    peer.say(*mic.sound(silence(100)))
    await peer.ask(mic.cancel() if how == "cancel" else mic.destroy(), m.Ack)
    assert fake.last.cancelled


async def test_an_input_that_is_destroyed_costs_nothing_and_its_host_knows(
    server: Served, peer: Peer, fake: FakeAgent
) -> None:
    session = session_of(server)
    before = session.kept.taken
    mic = await microphone(peer)
    assert session.kept.taken > before
    await listening(mic)
    await peer.ask(mic.destroy(), m.Ack)
    assert session.kept.taken == before
    assert (fake.closed, fake.last.cancelled) == (1, 1)


async def test_the_end_of_a_session_is_that_of_its_inputs(server: Served, fake: FakeAgent) -> None:
    async with server.peer() as peer:
        mic = await microphone(peer)
        await listening(mic)
    await until(lambda: fake.closed)
    assert fake.last.cancelled == 1


async def test_a_client_that_is_behind_is_not_told_what_only_seems_to_be_said(
    server: Served, peer: Peer, fake: FakeAgent
) -> None:
    mic = await microphone(peer)
    await listening(mic)
    connection, listener = session_of(server).connection, fake.last.listener
    listener.update(Kind.SPEECH_START, "", 100)
    listener.update(Kind.PARTIAL, "one", 100)
    connection.behind = True
    listener.update(Kind.PARTIAL, "one two", 200)
    listener.update(Kind.SEGMENT_FINAL, "one two three", 300)
    connection.behind = False
    fake.last.end("one two three")
    assert [each.text for each in await mic.updates()] == ["", "one", "one two three", "one two three"]


async def test_an_utterance_that_fails_ends_with_what_was_understood(peer: Peer, fake: FakeAgent) -> None:
    mic, agent = await microphone(peer), await peer.agent()
    await listening(mic, agent)
    fake.last.listener.update(Kind.SEGMENT_FINAL, "open the", 300)
    fake.last.listener.update(Kind.SEGMENT_FINAL, "gate", 600)
    fake.last.fails = ZeroDivisionError()
    peer.say(*mic.sound(silence(100)))
    assert [(await peer.get(m.WireTranscriptUpdate)).text for _ in range(2)] == ["open the", "gate"]
    error = await peer.get(m.ErrorResponse)
    assert (error.request_id, error.code, error.voice_input_id) == (0, 4100, mic.id)
    final = await peer.get(m.WireTranscriptUpdate)
    assert (final.kind, final.text, final.audio_ms_consumed) == (FINAL, "open the gate", 600)
    answers, _ = await peer.turn()
    assert "".join(answer.text for answer in answers) == "You said: open the gate"
    # As at its end, of which the client hears as well what became of it.
    await listening(mic)
    fake.last.fails = ZeroDivisionError()
    peer.say(mic.end())
    assert (await peer.get(m.WireTranscriptUpdate)).kind == FINAL
    error = await peer.get(m.ErrorResponse)
    assert (error.request_id, error.code) == (21, 4100)
    assert fake.last.cancelled == 1
    await listening(mic)


async def test_words_for_an_agent_in_a_turn_interrupt_it_and_wait_for_its_end(
    server: Served, peer: Peer, fake: FakeAgent
) -> None:
    session = session_of(server)
    mic, agent = await microphone(peer), await peer.agent(SLOW)
    peer.say(m.SendMessageRequest(3, agent, LONG))
    await listening(mic, agent, barge_in=True)
    # Nobody was heard to begin.
    fake.last.end("stop")
    assert session._requests == 1
    heard: list[m.Message | None] = []
    while not isinstance(complete := await peer.hear(), m.TurnComplete):
        heard.append(complete)
    assert (complete.request_id, complete.status) == (3, m.TurnStatus.CANCELLED)
    answers, complete = await peer.turn()
    assert ("".join(answer.text for answer in answers), complete.request_id) == ("You said: stop", 0)
    assert (session._requests, session._bytes) == (0, 0)


async def test_when_a_session_ends_the_words_that_wait_are_said_to_nobody(
    server: Served, fake: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with server.peer() as peer:
        session = session_of(server)
        destroyed, mic, agent = await microphone(peer), await microphone(peer), await peer.agent(SLOW)
        peer.say(m.SendMessageRequest(3, agent, LONG))
        for each in (destroyed, mic):
            await listening(each, agent, barge_in=True)
        said: list[object] = []
        monkeypatch.setattr(ClientSession, "handle", lambda *what: said.append(what))
        for utterance in fake.utterances:
            utterance.end("stop")
        assert session.voices is not None
        found = session.voices.find(destroyed.id)
        assert found is not None
        found.close()
        session.end()
        await until(lambda: session.idle)
    assert (said, session._requests) == ([], 0)


@pytest.mark.parametrize("case", ["barge in", "busy", "idle", "destroyed", "without input"])
async def test_words_for_an_agent_that_changes_are_for_what_it_will_be(
    server: Served, peer: Peer, fake: FakeAgent, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, change = asyncio.Event(), GraphAgent.change

    async def slowly(self: GraphAgent, node_name: str, params: m.NodeParams) -> None:
        await gate.wait()
        await change(self, node_name, params)

    monkeypatch.setattr(GraphAgent, "change", slowly)
    mic, agent = await microphone(peer), await peer.agent(SLOW)
    peer.say(m.ChangeAgentParamRequest(5, agent, "say", m.GenerateParams(stream=True)))
    if case in ("barge in", "busy"):
        peer.say(m.SendMessageRequest(6, agent, "typed words"))
    elif case == "destroyed":
        peer.say(m.DestroyAgentRequest(6, agent))
    await listening(mic, agent, barge_in=case != "busy")
    fake.last.end("spoken")
    assert (await peer.get(m.WireTranscriptUpdate)).text == "spoken"
    if case == "without input":
        # The words were told, and are said.
        await peer.ask(mic.destroy(), m.Ack)
    gate.set()
    assert await peer.get(m.Ack) == m.Ack(5)
    if case == "barge in":
        _, complete = await peer.turn()
        assert (complete.request_id, complete.status) == (6, m.TurnStatus.CANCELLED)
    if case in ("barge in", "idle", "without input"):
        answers, complete = await peer.turn()
        assert ("".join(answer.text for answer in answers), complete.request_id) == ("You said: spoken", 0)
    else:
        heard = [await peer.hear() for _ in range(2)]
        (error,) = (each for each in heard if isinstance(each, m.ErrorResponse))
        code = 3004 if case == "busy" else 3002
        assert (error.request_id, error.code, error.agent_id, error.voice_input_id) == (0, code, agent, mic.id)
        if case == "busy":
            await peer.turn()
    assert session_of(server)._requests == 0
