"""The tables of states in the reference, row by row against the server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack

import pytest

from tests.support.tryll_served import Peer, Served, echo, served
from tests.support.tryll_voice import silence, tone
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.codec import MAX_FRAME

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "tryll-states.md"
NOBODY = 2**63
#: A turn that lasts until it is stopped, and one that ends while a test looks.
LONG, SHORT = "word " * 20_000, "word"

_CELL = re.compile(r"`(\w+)`|\b(\d{4})\b")


def rows(section: str) -> list[tuple[str, str, str, str]]:
    text = PAGE.read_text(encoding="utf-8").split(f"## {section}\n")[1].split("\n## ")[0]
    found = [
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines() if line[:1] == "|"
    ]
    return [(each[0], each[1], each[2], each[3]) for each in found[2:]]


def cases(section: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("state", "event", "answer", "then"), rows(section))


def expected(answer: str) -> list[str]:
    return [name or number for name, number in _CELL.findall(answer)]


def told(message: m.Message) -> str:
    if isinstance(message, m.ErrorResponse):
        return str(message.code)
    if isinstance(message, m.WireTranscriptUpdate):
        return m.TranscriptUpdateKind.names()[message.kind].title().replace("_", "")
    return type(message).__name__


class Place:
    """A session with an agent and a voice input, as far as there are any."""

    def __init__(self, server: Served, peer: Peer) -> None:
        self.server = server
        self.peer = peer
        self.agent = NOBODY
        self.voice = NOBODY

    async def heard(self, *wanted: str) -> list[str]:
        """What comes, up to all that is wanted, or to what is not. Of several in a row that are alike, one."""
        found: list[str] = []
        while found != list(wanted):
            message = await self.peer.hear()
            if message is None or len(found) > len(wanted):
                break
            if not found or found[-1] != told(message):
                found.append(told(message))
        return found

    async def is_quiet(self, *passed: str) -> bool:
        """Whether nothing comes but that: what is asked next is answered next."""
        self.peer.say(m.HealthRequest(99))
        while not isinstance(message := await self.peer.hear(), m.HealthResponse):
            if message is None or told(message) not in passed:
                return False
        return True

    async def ended(self) -> bool:
        return await self.peer.hear() is None


@asynccontextmanager
async def place(folder: Path) -> AsyncIterator[Place]:
    async with served(folder) as server, server.peer(configured=False) as peer:
        yield Place(server, peer)


# Sessions.

_BROKEN = pack("<I", 4) + b"\xff" * 4
SESSION_EVENTS: dict[str, m.Message | bytes] = {
    "`ConfigureSessionRequest`": m.ConfigureSessionRequest(5),
    "`ConfigureSessionRequest` of another version": m.ConfigureSessionRequest(5, protocol_version=3),
    "`ListModelsRequest`": m.ListModelsRequest(5),
    "`CreateAgentRequest`": m.CreateAgentRequest(5, echo(), "any"),
    "`CreateStringStorageRequest`": m.CreateStringStorageRequest(5, "lines", ("a",)),
    "`CreateVoiceInputRequest`": m.CreateVoiceInputRequest(5, "any"),
    "a frame that is not a message": _BROKEN,
    "a frame that is too large": pack("<I", MAX_FRAME + 1),
}


@cases("Sessions")
async def test_a_session(tmp_path: Path, state: str, event: str, answer: str, then: str) -> None:
    async with place(tmp_path) as at:
        if state == "configured":
            await at.peer.configure()
        closing = None
        if event == "the client ends its half":
            at.peer.writer.write_eof()
        elif event == "the server stops":
            closing = asyncio.create_task(at.server.server.close())
        elif isinstance(sent := SESSION_EVENTS[event], bytes):
            at.peer.writer.write(sent)
        else:
            at.peer.say(sent)
        assert await at.heard(*expected(answer)) == expected(answer)
        if then == "ended":
            assert await at.ended()
        else:
            at.peer.say(m.CreateStringStorageRequest(6, "probe", ("a",)))
            after = "CreateStringStorageResponse" if then == "configured" else "2002"
            assert await at.heard(after) == [after]
        if closing is not None:
            await closing


# Agents.

AGENT_EVENTS: dict[str, Callable[[int], m.Message]] = {
    "`SendMessageRequest`": lambda agent: m.SendMessageRequest(5, agent, LONG),
    "`DestroyAgentRequest`": lambda agent: m.DestroyAgentRequest(5, agent),
    "`ChangeAgentParamRequest`": lambda agent: m.ChangeAgentParamRequest(
        5, agent, "say", m.GenerateParams(stream=True)
    ),
    "`CancelTurnRequest`": lambda agent: m.CancelTurnRequest(5, agent),
}


@cases("Agents")
async def test_an_agent(tmp_path: Path, state: str, event: str, answer: str, then: str) -> None:
    async with place(tmp_path) as at:
        peer = at.peer
        await peer.configure()
        if state != "never made":
            at.agent = await peer.agent("mock-slow")
        if state == "in a turn":
            peer.say(m.SendMessageRequest(3, at.agent, SHORT if event == "its end" else LONG))
            await peer.get(m.AnswerText)
        elif state == "destroyed":
            await peer.ask(m.DestroyAgentRequest(3, at.agent), m.Ack)
        if event != "its end":
            peer.say(AGENT_EVENTS[event](at.agent))
        wanted = expected(answer)
        found = await at.heard(*wanted)
        if state == "in a turn" and wanted[0].isdigit() and found[0] == "AnswerText":
            # The turn goes on, and its pieces may come first.
            found = found[1:]
        assert found == wanted
        # What there is then: only an agent in a turn is busy, and only one that is there can be idle.
        peer.say(m.ChangeAgentParamRequest(6, at.agent, "say", m.GenerateParams(stream=True)))
        after = {"never made": "3001", "idle": "Ack", "in a turn": "3004", "destroyed": "3002"}[then]
        while (heard := told((await peer.hear()) or m.Ack(0))) == "AnswerText":
            assert then == "in a turn"
        assert heard == after


# Utterances.


@cases("Utterances")
async def test_an_utterance(tmp_path: Path, state: str, event: str, answer: str, then: str) -> None:
    async with place(tmp_path) as at:
        peer = at.peer
        await peer.configure()
        at.voice = (await peer.ask(m.CreateVoiceInputRequest(4, "any"), m.CreateVoiceInputResponse)).voice_input_id
        begin = m.BeginUtteranceRequest(5, at.voice, 0, "hands-free" in state, 1000)
        if state.startswith("listening"):
            await peer.ask(begin, m.Ack)
        elif state == "destroyed":
            await peer.ask(m.DestroyVoiceInputRequest(3, at.voice), m.Ack)
        sounds = {
            "sound": tone(500), "silence": silence(500), "more sound than `max_utterance_ms`": tone(1500),
            "words and a pause": tone(300) + silence(700),
        }  # fmt: skip
        requests: dict[str, m.Message] = {
            "`BeginUtteranceRequest`": begin,
            "`EndUtteranceRequest`": m.EndUtteranceRequest(5, at.voice),
            "`CancelUtteranceRequest`": m.CancelUtteranceRequest(5, at.voice),
            "`DestroyVoiceInputRequest`": m.DestroyVoiceInputRequest(5, at.voice),
        }
        peer.say(m.AudioBufferFrame(at.voice, sounds[event]) if event in sounds else requests[event])
        wanted = [each for each in expected(answer) if each != "max_utterance_ms"]
        assert await at.heard(*wanted) == wanted
        assert await at.is_quiet("Partial")
        peer.say(m.EndUtteranceRequest(6, at.voice))
        after = {"idle": ["4104"], "listening": ["UtteranceFinal", "Ack"], "destroyed": ["4102"]}[then]
        assert await at.heard(*after) == after
