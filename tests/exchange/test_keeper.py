"""The sessions of an exchange for clients that name agents and sessions themselves: roles, ids, places, and the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.exchange.api_world import BROKEN, FAKE, World, token, world
from tests.support.loop import until
from trunkline.core.agent import AddHistory, AddMcpServer, Approve, Deny, SetMode, SetOptions, UseClient
from trunkline.core.events import Envelope, Gap, TextDelta, ToolRequested, TurnEnded, TurnStarted, UserMessage
from trunkline.core.faults import (
    AgentBusy,
    ConfigError,
    Fault,
    Forbidden,
    SessionExists,
    SessionNotFound,
    StoreUnavailable,
    UnknownAgent,
    UnknownCall,
)
from trunkline.core.keeper import Seat, SessionKeeper
from trunkline.exchange.keeper import ExchangeKeeper
from trunkline.exchange.people import LOCAL, People, Person
from trunkline.exchange.session_rows import SessionRow, SessionRows
from trunkline.exchange.settings import ROLES, Role
from trunkline.exchange.switchboard import Switchboard
from trunkline.store.database import DatabaseGone


def keeper(running: World, role: Role = "admin") -> SessionKeeper:
    return ExchangeKeeper(running.exchange, Person(role, role), "acp")


def asks(call_id: str = "c1") -> ToolRequested:
    return ToolRequested(call_id, "Bash", "exec", {"command": "make"})


async def test_what_a_role_does_not_allow_is_forbidden_and_says_which_does(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        seat = await keeper(running).open(FAKE, "s")
        deeds: dict[Role, list[Callable[[SessionKeeper, Seat], Awaitable[object]]]] = {
            "talker": [
                lambda kept, own: asyncio.to_thread(kept.check_may_ask),
                lambda kept, own: kept.open(FAKE),
                lambda kept, own: own.submit(UserMessage("Hello")),
                lambda kept, own: kept.fork("s", to_ask=True),
                lambda kept, own: asyncio.to_thread(own.stop),
                lambda kept, own: own.keep_file("a.txt", b"a"),
                lambda kept, own: own.configure(SetOptions({"effort": "low"})),
                lambda kept, own: own.configure(AddHistory("We met before.")),
                lambda kept, own: own.configure(UseClient("m1")),
            ],
            "approver": [lambda kept, own: asyncio.to_thread(own.answer, "c1", Approve())],
            "admin": [
                lambda kept, own: asyncio.to_thread(own.set_mode, "yolo"),
                lambda kept, own: own.configure(SetMode("yolo")),
                lambda kept, own: own.configure(AddMcpServer("tools", "stdio", "sh")),
                lambda kept, own: kept.fork("s"),
                lambda kept, own: kept.remove("s"),
            ],
        }
        for least, those in deeds.items():
            for role in ROLES[: ROLES.index(least)]:
                kept = keeper(running, role)
                own = await kept.join("s")
                assert own.may_answer == (ROLES.index(role) >= ROLES.index("approver"))
                for deed in those:
                    with pytest.raises(Forbidden, match=f"it needs the role `{least}`, and yours is `{role}`"):
                        await deed(kept, own)
                await own.leave()
        with pytest.raises(Forbidden, match="only an admin may name others"):
            await keeper(running, "approver").open(FAKE, workspace="/")
        observer = keeper(running, "observer")
        agents = [agent.name for agent in await observer.agents() if not agent.is_model]
        assert agents == [FAKE, "echo", BROKEN]
        assert [each.id for each in await observer.sessions()] == ["s"]
        assert list(await observer.read("s")) == []
        await seat.leave()


@pytest.mark.parametrize("role", ROLES)
async def test_a_command_that_changes_something_is_for_those_who_would_be_asked(tmp_path: Path, role: Role) -> None:
    async with world(tmp_path) as running:
        seat = await keeper(running).open(FAKE, "s")
        own = await keeper(running, role).join("s")
        if role in ("approver", "admin"):
            assert await own.submit(UserMessage("/undo")) == 1
        else:
            with pytest.raises(Forbidden, match=f"yours is `{role}`"):
                await own.submit(UserMessage("/undo"))
            assert running.fake.heard == []
        await own.leave()
        await seat.leave()


async def test_two_clients_of_one_session_see_the_same_and_the_first_answer_wins(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        ana = await ExchangeKeeper(running.exchange, Person("ana", "talker"), "openai").open(FAKE, "s")
        ben = await ExchangeKeeper(running.exchange, Person("ben", "approver"), "acp").join("s")
        watched = ben.session.subscribe()
        assert (ana.client, ben.client, ben.agent) == ("ana", "ben", FAKE)
        turn = await ana.submit(UserMessage("Hello", sender="somebody else"))
        running.fake.say(asks())
        await until(lambda: ben.session.waiting)
        ben.answer("c1", Deny("not now"))
        with pytest.raises(UnknownCall):
            ben.answer("c1", Approve())
        running.fake.say(TextDelta("Then not."), TurnEnded("success"))
        await ben.session.at_rest()
        shown = [item async for item in _until_end(watched)]
        assert {each.turn for each in shown} == {turn}
        assert shown[0].event == TurnStarted(running.fake.heard[0])
        assert running.fake.heard[0].sender == "ana"
        await running.exchange.switchboard.written()
        (row,) = await running.exchange.switchboard.approvals.found()
        assert (row.state, row.decided_by, row.reason) == ("denied", "ben", "not now")
        await ana.leave()
        assert ben.session.status.value == "idle"
        await ben.leave()
        await running.exchange.switchboard.written()
        acts = await running.exchange.switchboard.acts.of("s")
        assert [(act.what, act.person, act.detail) for act in acts] == [
            ("joined", "ana", "openai"),
            ("joined", "ben", "acp"),
            ("left", "ana", "openai"),
            ("left", "ben", "acp"),
        ]


async def _until_end(watched: AsyncIterator[Envelope | Gap]) -> AsyncIterator[Envelope]:
    async for item in watched:
        assert isinstance(item, Envelope)
        yield item
        if isinstance(item.event, TurnEnded):
            return


@pytest.mark.parametrize("id", ["", "a/b", "..", "x" * 201, "a\nb", "\udcff"])
async def test_an_id_that_cannot_be_one_is_refused_and_opens_nothing(tmp_path: Path, id: str) -> None:
    async with world(tmp_path) as running:
        kept = keeper(running)
        with pytest.raises(ConfigError, match="A session id must have"):
            await kept.open(FAKE, id)
        with pytest.raises(ConfigError):
            await kept.join(id)
        assert await kept.sessions() == []


async def test_an_unknown_id_is_opened_under_that_id_and_a_known_one_is_joined(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept = keeper(running)
        with pytest.raises(SessionNotFound):
            await kept.join("mine")
        with pytest.raises(SessionNotFound):
            await kept.read("mine")
        assert await kept.known("mine") is None
        first, again = await kept.open("echo", "mine"), await kept.open("echo", "mine")
        assert first.session is again.session
        assert first.session.id == "mine"
        with pytest.raises(SessionExists, match="is with the agent `echo`"):
            await kept.open(FAKE, "mine")
        with pytest.raises(UnknownAgent):
            await kept.open("nobody")
        with pytest.raises(Fault, match="It lacks a key"):
            await kept.open(BROKEN)
        for seat in (first, again):
            await seat.leave()


async def test_lists_have_titles_and_go_on_before_the_last(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept = keeper(running)
        for name in ("one", "two", "three"):
            seat = await kept.open("echo", name)
            await seat.submit(UserMessage(f"This  is\n{name}"))
            await seat.session.at_rest()
            await seat.leave()
        found = await kept.sessions(limit=2)
        assert [(each.id, each.title, each.agent) for each in found] == [
            ("three", "This is three", "echo"),
            ("two", "This is two", "echo"),
        ]
        assert [each.id for each in await kept.sessions(before="two")] == ["one"]
        assert await kept.sessions(FAKE) == []
        with pytest.raises(SessionNotFound):
            await kept.sessions(before="nothing")
        one = await kept.known("one")
        assert one is not None
        assert (one.title, one.workspace) == ("This is one", str(tmp_path / "workspace"))
        forked = await kept.fork("one")
        assert (forked.title, forked.agent) == ("This is one", "echo")
        with pytest.raises(ConfigError, match="has no event 999"):
            await kept.fork("one", 999)


async def test_a_client_whose_session_is_removed_hears_of_it(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept, heard = keeper(running), list[str]()
        seat = await kept.open("echo", "s", removed=lambda: heard.append("removed"))
        await kept.remove("s")
        assert heard == ["removed"]
        with pytest.raises(SessionNotFound):
            await seat.submit(UserMessage("Anybody?"))
        await seat.leave()
        await seat.leave()


async def test_files_must_be_in_the_workspace_or_have_been_brought(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        (tmp_path / "workspace" / "own.txt").write_text("own")
        (tmp_path / "secret").write_text("secret")
        seat = await keeper(running, "talker").open("echo", "s")
        brought = await seat.keep_file("../../picture.png", b"\x89PNG")
        assert (await asyncio.to_thread(Path(brought).read_bytes), brought[-4:]) == (b"\x89PNG", ".png")
        await seat.submit(UserMessage("Look", ("own.txt", brought)))
        for path in ("../secret", str(tmp_path / "secret"), "file:///etc/passwd"):
            with pytest.raises(Forbidden, match="`files` must be in the agent's workspace"):
                await seat.submit(UserMessage("Look", (path,)))
        with pytest.raises(ConfigError, match="at most"):
            await seat.submit(UserMessage("Look", ("a\0b",)))
        await seat.session.at_rest()
        await seat.leave()
        await keeper(running).remove("s")
        assert not await asyncio.to_thread(os.path.exists, brought)


async def test_a_session_for_one_turn_is_gone_when_it_was_left_and_its_usage_stays(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept = keeper(running)
        seat = await kept.open("echo", passing=True)
        await seat.submit(UserMessage("Hello"))
        await seat.session.at_rest()
        await seat.leave()
        assert await kept.sessions() == []
        assert [row["turns"] for row in await running.exchange.budgets.usage("agent") if row["agent"] == "echo"] == [1]


async def test_of_a_session_for_one_turn_neither_messages_nor_visits_are_kept(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept, board = keeper(running), running.exchange.switchboard
        passing, staying = await kept.open(FAKE, "p", passing=True), await kept.open(FAKE, "s")
        for seat in (passing, staying):
            await seat.submit(UserMessage("Hello", id="m1"))
        await board.written()
        assert await board.messages.find("p", "m1") is None
        found = await board.messages.find("s", "m1")
        assert found is not None
        assert found.turn == 1
        assert [act.what for act in await board.acts.of("p")] == []
        assert "joined" in [act.what for act in await board.acts.of("s")]


async def test_a_session_for_one_turn_answers_before_its_row_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, insert = asyncio.Event(), SessionRows.insert

    async def slow(rows: SessionRows, row: SessionRow, turns: int = 0) -> None:
        await disk.wait()
        await insert(rows, row, turns)

    async with world(tmp_path) as running:
        monkeypatch.setattr(SessionRows, "insert", slow)
        kept = keeper(running)
        seat = await kept.open(FAKE, passing=True)
        await seat.submit(UserMessage("Hello"))
        await until(lambda: running.fake.busy)
        assert await kept.known(seat.session.id) is not None
        assert await kept.sessions() == []
        running.fake.say(TurnEnded("success"))
        await seat.session.at_rest()
        disk.set()
        await running.exchange.switchboard.written()
        assert [each.id for each in await kept.sessions()] == [seat.session.id]
        assert [row["turns"] for row in await running.exchange.budgets.usage("agent") if row["agent"] == FAKE] == [1]
        await seat.leave()
        assert await kept.sessions() == []


async def test_a_session_for_one_turn_whose_row_cannot_be_written_takes_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(rows: SessionRows, row: SessionRow, turns: int = 0) -> None:
        raise DatabaseGone("it is not there")

    async with world(tmp_path) as running:
        seat: Seat
        with monkeypatch.context() as patch:
            patch.setattr(SessionRows, "insert", gone)
            seat = await keeper(running).open(FAKE, passing=True)
            with pytest.raises(StoreUnavailable):
                await seat.submit(UserMessage("Hello"))
            with pytest.raises(DatabaseGone):
                await running.exchange.switchboard.written()
        await running.exchange.switchboard.written()
        await seat.submit(UserMessage("Hello again"))
        await until(lambda: running.fake.busy)
        assert [message.text for message in running.fake.heard] == ["Hello again"]
        await seat.leave()
        assert await keeper(running).sessions() == []


async def test_a_client_that_leaves_in_the_middle_ends_the_turn_of_its_passing_session(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept = keeper(running)
        seat = await kept.open(FAKE, "s", passing=True)
        watched = seat.session.subscribe()
        await seat.submit(UserMessage("Hello"))
        await until(lambda: running.fake.busy)
        with pytest.raises(AgentBusy):
            await seat.submit(UserMessage("Now or never"), "reject")
        await seat.leave()
        shown = [item async for item in watched if isinstance(item, Envelope)]
        assert [each.event.outcome for each in shown if isinstance(each.event, TurnEnded)] == ["cancelled"]
        assert running.fake.closed
        assert await kept.known("s") is None


async def test_passing_sessions_of_a_process_that_died_are_gone_after_a_restart(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept = keeper(running)
        await kept.open("echo", "kept")
        seat = await kept.open(FAKE, "passing", passing=True)
        await seat.submit(UserMessage("Hello"))
        running.fake.say(asks())
        await until(lambda: seat.session.waiting)
        await running.exchange.switchboard.written()
    async with world(tmp_path) as running:
        assert [each.id for each in await keeper(running).sessions()] == ["kept"]
        assert running.fakes == []
        assert await running.exchange.switchboard.approvals.found() == []


async def test_a_passing_session_that_cannot_be_removed_does_not_cost_its_client_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(tmp_path) as running:
        seat = await keeper(running).open("echo", "s", passing=True)

        def refuse(session: str) -> None:
            raise PermissionError(13, "no")

        monkeypatch.setattr(running.exchange.switchboard.store, "remove", refuse)
        await seat.leave()
        assert "session s could not be removed yet" in caplog.text


async def test_a_stop_of_ones_own_turn_leaves_others_theirs(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        ana = await ExchangeKeeper(running.exchange, Person("ana", "talker"), "openai").open(FAKE, "s")
        ben = await ExchangeKeeper(running.exchange, Person("ben", "talker"), "acp").join("s")
        theirs, mine = await ben.submit(UserMessage("Theirs")), await ana.submit(UserMessage("Mine"))
        ana.stop(mine)
        assert ana.session.turn == theirs
        with pytest.raises(AgentBusy):
            await ana.submit(UserMessage("Now or never"), "reject")
        running.fake.say(TurnEnded("success"))
        await ana.session.at_rest()
        assert [message.text for message in running.fake.heard] == ["Theirs"]
        await ana.leave()
        await ben.leave()


async def test_a_token_that_the_file_no_longer_has_counts_no_more(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept = ExchangeKeeper(running.exchange, Person("talker", "talker"), "acp", token("talker"))
        seat = await kept.open("echo", "s")
        running.exchange.people = People(
            each for each in running.exchange.settings.people.values() if each.name != "talker"
        )
        for _ in range(2):
            with pytest.raises(Forbidden, match="does not count any more"):
                await seat.submit(UserMessage("Hello"))
        looks: list[Awaitable[object]] = [
            kept.agents(), kept.join("s"), kept.known("s"), kept.sessions(), kept.read("s")
        ]  # fmt: skip
        for look in looks:
            with pytest.raises(Forbidden, match="does not count any more"):
                await look
        assert not seat.may_answer
        running.exchange.people = People(running.exchange.settings.people.values())
        await seat.submit(UserMessage("Hello"))
        await seat.session.at_rest()
        await seat.leave()


async def test_whoever_gives_up_while_a_passing_session_is_joined_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path) as running:
        kept = ExchangeKeeper(running.exchange, LOCAL, "openai")

        def refuse(*_: object, **__: object) -> None:
            raise asyncio.CancelledError

        with monkeypatch.context() as patch:
            patch.setattr(Switchboard, "attached", refuse)
            with pytest.raises(asyncio.CancelledError):
                await kept.open("echo", passing=True)
        assert await kept.sessions() == []


async def test_what_an_agent_can_do_is_known_before_its_first_session(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept = keeper(running, "observer")
        can = await kept.capabilities_of("echo")
        assert can is not None
        assert can.images is False
        assert await kept.capabilities_of(BROKEN) is None
        assert await kept.capabilities_of("nope") is None


async def test_models_of_this_machine_are_agents_without_being_configured(tmp_path: Path) -> None:
    async with world(tmp_path) as running:
        kept = keeper(running, "talker")
        offered = await kept.agents()
        assert [(each.name, each.is_model) for each in offered][:3] == [(FAKE, False), ("echo", False), (BROKEN, False)]
        assert ("model:mock", True) in [(each.name, each.is_model) for each in offered[3:]]
        assert all(each.is_model and each.capabilities is None for each in offered[3:])
        seat = await kept.open("model:mock", "s")
        await seat.submit(UserMessage("Hello"))
        await seat.session.at_rest()
        assert seat.session.state.turns == 1
        # What its users name in a message reaches nothing of the exchange's own.
        for path in ("../exchange.db", str(tmp_path / "exchange.db")):
            with pytest.raises(Forbidden):
                await seat.submit(UserMessage("Look", (path,)))
        await seat.leave()
        for unknown in ("model:nothing", "model:", f"model:{tmp_path}/a.gguf", "model:ollama/x"):
            with pytest.raises(UnknownAgent):
                await kept.open(unknown)
        await running.exchange.take_up(running.exchange.settings)
        assert (await kept.join("s")).agent == "model:mock"
        await running.exchange.switchboard.written()
        usage = await running.exchange.budgets.usage("agent")
        assert [row["turns"] for row in usage if row["agent"] == "model:mock"] == [1]
    async with world(tmp_path) as running:
        seat = await keeper(running, "talker").join("s")
        assert (seat.agent, seat.session.state.turns) == ("model:mock", 1)
