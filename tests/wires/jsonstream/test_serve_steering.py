"""A host's message with `when` `steer`: it joins the answer under way, and has its own beginning and end after it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake_agent import FakeAgent
from tests.support.host import Host
from tests.support.loop import until
from tests.support.served import Served, served
from trunkline.core.approvals import Policy
from trunkline.core.events import Failed, Steered, TextDelta, TurnEnded, UserMessage
from trunkline.core.keeper import When
from trunkline.core.log import MemoryLog
from trunkline.core.session import Session
from trunkline.core.usage import Usage
from trunkline.wires.jsonstream.serve_shared import KnownMessage, SharedJsonStreamServer

pytestmark = pytest.mark.virtual_time

DONE = TurnEnded("success", Usage(10, 3))


def takes_steering(it: Served) -> list[UserMessage]:
    """Let the agent read what it is told in a turn; gives what it has read."""
    read: list[UserMessage] = []

    def steer(message: UserMessage) -> bool:
        read.append(message)
        return True

    it.fake.steer = steer  # type: ignore[attr-defined]  # what conversations have that can be steered
    return read


def steer(it: Served, msg_id: str, text: str = "in French", **more: Any) -> None:
    it.host.send(type="message", msg_id=msg_id, input=text, when="steer", **more)


def named(it: Served) -> list[tuple[str, str]]:
    return [(line["type"], line["msg_id"]) for line in it.host.take()]


async def begun(it: Served) -> None:
    it.host.message("m1")
    await it.settle()
    it.host.take()


async def test_it_joins_the_turn_and_begins_and_ends_when_that_is_over() -> None:
    async with served() as it:
        read = takes_steering(it)
        await begun(it)
        steer(it, "m2", files=["a.txt"])
        steer(it, "m3", "and short")
        it.fake.say(TextDelta("Oui."), DONE)
        await it.settle()
        assert [(message.text, message.files, message.id) for message in read] == [
            ("in French", ("a.txt",), "m2"),
            ("and short", (), "m3"),
        ]
        lines = it.host.take()
        assert [(line["type"], line["msg_id"]) for line in lines] == [
            ("text_delta", "m1"),
            ("stream_end", "m1"),
            ("stream_start", "m2"),
            ("stream_end", "m2"),
            ("stream_start", "m3"),
            ("stream_end", "m3"),
        ]
        assert lines[1]["usage"] == {"input_tokens": 10, "output_tokens": 3}
        assert lines[3]["usage"] == {"input_tokens": 0, "output_tokens": 0}
        assert [message.id for message in it.fake.heard] == ["m1"]


async def test_before_what_waits() -> None:
    async with served() as it:
        takes_steering(it)
        await begun(it)
        it.host.message("m2")
        steer(it, "m3")
        it.fake.say(DONE)
        await it.settle()
        assert named(it) == [
            ("stream_end", "m1"),
            ("stream_start", "m3"),
            ("stream_end", "m3"),
            ("stream_start", "m2"),
        ]
        it.fake.say(DONE)
        await it.settle()


@pytest.mark.parametrize("ending", ["stop", "failure"])
async def test_however_the_turn_ends(ending: str) -> None:
    async with served() as it:
        takes_steering(it)
        await begun(it)
        steer(it, "m2")
        if ending == "stop":
            it.host.send(type="stop")
        else:
            it.fake.say(Failed("provider", "It is overloaded."), TurnEnded("error"))
        await it.settle()
        assert named(it)[-3:] == [("stream_end", "m1"), ("stream_start", "m2"), ("stream_end", "m2")]


async def test_when_idle_it_is_an_ordinary_message() -> None:
    async with served() as it:
        assert takes_steering(it) == []
        steer(it, "m1")
        await it.settle()
        assert [message.text for message in it.fake.heard] == ["in French"]
        it.fake.say(DONE)
        await it.settle()


@pytest.mark.parametrize("can", [True, False])
async def test_where_the_agent_does_not_take_it_it_waits(can: bool) -> None:
    async with served() as it:
        if can:
            it.fake.steer = lambda message: False  # type: ignore[attr-defined]  # as one whose turn is about to end
        await begun(it)
        steer(it, "m2")
        it.fake.say(DONE)
        await it.settle()
        assert named(it) == [("stream_end", "m1"), ("stream_start", "m2")]
        assert [message.id for message in it.fake.heard] == ["m1", "m2"]
        it.fake.say(DONE)
        await it.settle()


async def test_one_without_text_is_refused_in_its_place() -> None:
    async with served() as it:
        assert takes_steering(it) == []
        await begun(it)
        steer(it, "m2", " ")
        it.fake.say(DONE)
        await it.settle()
        assert [kind for kind, _ in named(it)] == ["stream_end", "stream_start", "error", "stream_end"]


async def test_what_others_say_meanwhile_is_shown() -> None:
    async with served() as it:
        await begun(it)
        it.fake.say(Steered(UserMessage("in French", id="m9")), DONE)
        await it.settle()
        lines = it.host.take()
        assert [(line["type"], line["msg_id"]) for line in lines] == [("info", "m1"), ("stream_end", "m1")]
        assert lines[0]["message"] == "told meanwhile: in French"


@pytest.mark.parametrize("when", ["later", 5, ["steer"]])
async def test_a_word_that_means_nothing_is_refused(when: Any) -> None:
    async with served() as it:
        it.host.take()
        it.host.send(type="message", msg_id="m1", input="hi", when=when)
        (error,) = it.host.take()
        assert (error["type"], error["error"]["code"]) == ("error", "protocol_error")
        assert it.fake.heard == []


@pytest.mark.parametrize("when", ["queue", None])
async def test_waiting_can_be_asked_for_by_name(when: str | None) -> None:
    async with served() as it:
        assert takes_steering(it) == []
        await begun(it)
        it.host.send(type="message", msg_id="m2", input="hi", when=when)
        it.fake.say(DONE)
        await it.settle()
        assert named(it) == [("stream_end", "m1"), ("stream_start", "m2")]
        it.fake.say(DONE)
        await it.settle()


class Keeper:
    """Takes messages in for a session that several share."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def known(self, message: UserMessage) -> KnownMessage | None:
        return KnownMessage(0, same=False) if message.id == "used" else None

    async def submit(self, message: UserMessage, when: When = "queue") -> None:
        if when != "steer" or not self._session.steer(message):
            self._session.submit(message)


@pytest.mark.parametrize("msg_id", ["m2", "used"])
async def test_of_those_who_share_a_session_only_who_said_it_sees_it_begin_and_end(msg_id: str) -> None:
    fake, hosts = FakeAgent(), {"ana": Host(), "ben": Host()}
    fake.steer = lambda message: True  # type: ignore[attr-defined]  # what conversations have that can be steered
    session = await Session.open(fake, MemoryLog("s1"), Policy())
    servers = {name: SharedJsonStreamServer(session, host, name, Keeper(session)) for name, host in hosts.items()}
    for server in servers.values():
        session.attach(server)
    await servers["ana"].hear(b'{"type":"message","msg_id":"m1","input":"hello"}\n')
    await until(lambda: fake.busy)
    said = {"type": "message", "msg_id": msg_id, "input": "in French", "when": "steer"}
    await servers["ben"].hear(json.dumps(said).encode() + b"\n")
    fake.say(DONE)
    await session.at_rest()
    session.flush()
    seen = {name: [(line["type"], line["msg_id"]) for line in host.take()] for name, host in hosts.items()}
    await session.close()
    assert seen["ana"] == [("stream_start", "m1"), ("info", "m1"), ("stream_end", "m1")]
    assert seen["ben"][2:] == [("stream_end", "m1"), ("stream_start", msg_id), ("stream_end", msg_id)]
