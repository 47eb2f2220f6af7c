"""Streams under all circumstances: silence, slow readers, clients that leave, sessions that end."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.keeper import FAKE
from tests.support.loop import until
from tests.support.openai_world import OpenAIWorld, events_in, openai_world
from trunkline.core import events as core
from trunkline.core.agent import Approve, Deny
from trunkline.core.usage import Usage
from trunkline.wires.openai.errors import OpenAIRefused
from trunkline.wires.openai.streaming import (
    BEHIND_BYTES,
    HEARTBEAT_SECONDS,
    MOST_BEHIND_BYTES,
    REST_SECONDS,
    STALLED_SECONDS,
    OpenTurns,
)
from trunkline.wires.openai.turn import AnsweringTurn

ASKED = core.ToolRequested("c1", "Bash", "exec", {"command": "ls -la"}, "Run ls -la")


async def begun(world: OpenAIWorld) -> None:
    await until(lambda: world.keeper.fakes and world.fake.busy)


@pytest.mark.virtual_time
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_silent_stream_says_that_it_is_alive_at_least_every_15_seconds(path: str) -> None:
    async with openai_world() as world:
        caller = world.call(path, {"stream": True})
        await begun(world)
        await asyncio.sleep(60)
        assert caller.text.count(": alive\n\n") >= 4
        assert 2 * HEARTBEAT_SECONDS <= 15
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        assert caller.ended
        assert events_in(caller.text)


async def test_what_waits_for_approval_is_told_and_decided_elsewhere_while_the_stream_lives() -> None:
    async with openai_world() as world:
        world.keeper.is_shared = True
        caller = world.call("chat/completions", {"stream": True})
        await begun(world)
        world.fake.say(ASKED)
        await until(lambda: "Waiting for approval" in caller.text)
        world.keeper.seats[0].session.answer("c1", Approve(), "ben")
        await until(lambda: world.fake.decisions)
        world.fake.say(core.ToolStarted("c1", "Bash"), core.ToolFinished("c1", "Bash", "success", "x"))
        world.fake.say(core.TextDelta("Done."), core.TurnEnded("success"))
        await caller.whole()
        said = [chunk["choices"][0]["delta"] for chunk in caller.events[1:-2]]
        assert said == [
            {"reasoning_content": "Waiting for approval: Bash: Run ls -la\n"},
            {"reasoning_content": "Approved by ben.\n"},
            {"reasoning_content": "Using the tool Bash.\n"},
            {"reasoning_content": "The tool Bash has finished.\n"},
            {"content": "Done."},
        ]


async def test_where_nobody_can_be_asked_it_is_denied() -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {"stream": True})
        await begun(world)
        world.fake.say(ASKED)
        await until(lambda: world.fake.decisions)
        ((call_id, decision),) = world.fake.decisions
        assert call_id == "c1"
        assert isinstance(decision, Deny)
        assert "cannot be asked" in decision.reason
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        assert "cannot be asked" in caller.text


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_stops_its_turn_and_what_was_passing_is_removed(path: str, stream: bool) -> None:
    async with openai_world() as world:
        caller = world.call(path, {"stream": stream, "store": False})
        await begun(world)
        world.fake.say(core.TextDelta("Hello"))
        await caller.leave()
        assert world.keeper.seats[0].stopped == [1]
        assert list(world.keeper.held) == []
        assert world.fake.closed


async def test_a_client_that_leaves_stops_its_own_turn_and_no_other() -> None:
    async with openai_world() as world:
        first = world.call("responses", {"stream": True, "conversation": "s1"})
        await begun(world)
        second = world.call("responses", {"stream": True, "conversation": "s1", "input": "Second"})
        await until(lambda: "response.created" in second.text)
        await second.leave()
        assert world.keeper.seats[1].stopped == [2]
        world.fake.say(core.TextDelta("Hello"), core.TurnEnded("success"))
        await first.whole()
        assert first.events[-2]["type"] == "response.completed"


async def test_a_response_in_the_background_goes_on_when_its_reader_leaves() -> None:
    async with openai_world() as world:
        caller = world.call("responses", {"stream": True, "background": True, "conversation": "s1"})
        await begun(world)
        await caller.leave()
        assert world.keeper.seats[0].stopped == []
        world.fake.say(core.TextDelta("Hello"), core.TurnEnded("success"))
        await until(lambda: world.keeper.seats[0].left)
        assert (await world.get("responses/resp_1_s1")).json()["status"] == "completed"


async def test_only_the_turn_that_was_asked_for_is_told() -> None:
    async with openai_world() as world:
        first = world.call("responses", {"stream": True, "conversation": "s1"})
        await begun(world)
        second = world.call("chat/completions", {"stream": True}, headers={"X-Trunkline-Session": "s1"})
        await until(lambda: second.text)
        world.fake.say(core.TextDelta("One"), core.TurnEnded("success", Usage(1, 1)))
        await first.whole()
        await until(lambda: len(world.fake.heard) == 2)
        world.fake.say(core.TextDelta("Two"), core.TurnEnded("success", Usage(2, 2)))
        await second.whole()
        assert "Two" not in first.text
        assert "One" not in second.text


async def test_who_keeps_up_is_written_to_at_once_and_in_order() -> None:
    written: list[bytes] = []
    async with openai_world() as world:

        def write_now(framed: bytes) -> bool:
            size, _, rest = framed.partition(b"\r\n")
            assert len(rest) == int(size, 16) + 2
            assert rest.endswith(b"\r\n")
            caller.chunks.append(rest[:-2])
            written.append(rest)
            return True

        caller = world.call("chat/completions", {"stream": True}, write_now=write_now)
        await begun(world)
        for number in range(5):
            world.fake.say(core.TextDelta(f"{number} "))
            await until(lambda count=number: len(written) > count)  # type: ignore[misc]  # each its own
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in caller.events[:-1])
        assert said == "0 1 2 3 4 "


@pytest.mark.virtual_time
async def test_words_that_follow_each_other_closely_are_written_together_and_the_first_one_at_once() -> None:
    written: list[bytes] = []
    async with openai_world() as world:

        def write_now(framed: bytes) -> bool:
            written.append(framed)
            return True

        caller = world.call("chat/completions", {"stream": True}, write_now=write_now)
        await begun(world)
        session = world.keeper.seats[0].session
        for number in range(4):
            world.fake.say(core.TextDelta(f"word{number}"))
            await until(lambda count=number: session.shown > count + 1)  # type: ignore[misc]  # each its own
        assert [b"word0" in written[0], len(written)] == [True, 1]
        await asyncio.sleep(REST_SECONDS)
        assert [word in written[1] for word in (b"word1", b"word2", b"word3")] == [True] * 3
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()


@pytest.mark.virtual_time
async def test_an_agent_waits_for_its_one_client_and_not_for_ever() -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {"stream": True}, slow=True)
        await begun(world)
        piece = "x" * 1000
        for _ in range(3 * BEHIND_BYTES // len(piece)):
            world.fake.say(core.TextDelta(piece))
        await asyncio.sleep(1)
        assert world.keeper.seats[0].session.seq < BEHIND_BYTES // len(piece) * 2
        caller.may_read.set()
        world.fake.say(core.TurnEnded("success"))
        await caller.whole()
        assert caller.text.count(piece) == 3 * BEHIND_BYTES // len(piece)


@pytest.mark.virtual_time
async def test_a_client_that_reads_nothing_is_cut_off_and_its_turn_stopped() -> None:
    async with openai_world() as world:
        caller = world.call("chat/completions", {"stream": True}, slow=True)
        await begun(world)
        world.fake.say(core.TextDelta("Hello"))
        await asyncio.sleep(STALLED_SECONDS + 2 * HEARTBEAT_SECONDS)
        await caller.whole()
        assert world.keeper.seats[0].stopped == [1]
        assert not caller.ended


async def test_nobody_waits_for_a_slow_client_of_a_session_that_others_share() -> None:
    async with openai_world() as world:
        world.keeper.is_shared = True
        caller = world.call("chat/completions", {"stream": True}, slow=True)
        await begun(world)
        piece = "x" * (MOST_BEHIND_BYTES // 8)
        for _ in range(10):
            world.fake.say(core.TextDelta(piece))
        await until(lambda: world.keeper.seats[0].session.seq > 10)
        caller.may_read.set()
        await caller.whole()
        assert not caller.ended


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_session_that_is_removed_ends_its_streams_with_an_error(path: str) -> None:
    async with openai_world() as world:
        caller = world.call(path, {"stream": True, "store": True})
        await begun(world)
        await world.keeper.remove(next(iter(world.keeper.held)))
        await caller.whole()
        assert caller.ended
        assert "The session was removed." in caller.text


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_a_server_that_stops_ends_what_is_being_answered_with_an_error(path: str) -> None:
    async with openai_world() as world:
        streaming = world.call(path, {"stream": True})
        await begun(world)
        waiting = world.call(path, {})
        await until(lambda: len(world.keeper.fakes) == 2 and world.fake.busy)
        world.app.close()
        await streaming.whole()
        await waiting.whole()
        assert streaming.ended
        assert "The server is stopping" in streaming.text
        assert waiting.status == 503
        await world.app.closed()
        late = world.call(path, {})
        await late.whole()
        assert late.status == 503


async def test_what_happens_before_the_turn_is_known_is_not_lost() -> None:
    async with openai_world() as world:
        seat = await world.keeper.open(FAKE, "s1")
        submit = type(seat).submit

        async def slow_submit(self: object, message: core.UserMessage, when: str = "queue") -> int:
            number: int = await submit(self, message)  # type: ignore[arg-type]  # a seat
            await begun(world)
            world.fake.say(core.TextDelta("Hello"), core.TurnEnded("success"))
            await seat.session.at_rest()
            return number

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(seat), "submit", slow_submit)
            response = await world.chat("Hi", FAKE, stream=True, headers={"X-Trunkline-Session": "s1"})
        await seat.leave()
        assert [chunk["choices"][0]["delta"] for chunk in events_in(response.text)[:-1]] == [
            {"role": "assistant", "content": ""}, {"content": "Hello"}, {},
        ]  # fmt: skip


class LeftTurn(AnsweringTurn):
    """A turn that says whether it was ended."""

    was_ended = False

    def end(self, refused: OpenAIRefused | None = None) -> None:
        self.was_ended = True
        super().end(refused)


async def test_a_turn_that_was_left_is_not_ended_with_the_others() -> None:
    async with openai_world() as world:
        turns = OpenTurns()
        made = [LeftTurn(await world.keeper.open(FAKE), shared=False) for _ in range(2)]
        for turn in made:
            turns.add(turn)
        await turns.leave(made[0])
        turns.close()
        assert [turn.was_ended for turn in made] == [False, True]
        await turns.leave(made[1])
        await turns.closed()
