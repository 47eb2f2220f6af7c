"""A backup of a cluster that runs, and an empty cluster that goes on from it."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import nats, postgres
from tests.support.cluster_world import ClusterWorld, outcomes, said, words
from tests.support.loop import until
from tests.support.nats import NatsServer
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import Approve
from trunkline.core.events import UserMessage
from trunkline.core.faults import ConfigError, StoreUnavailable
from trunkline.exchange.approvals import AlreadyDecided
from trunkline.exchange.cluster import backup as backups
from trunkline.exchange.cluster.backup import EVENTS, MANIFEST, ROWS, back_up, read_backup, restore
from trunkline.exchange.settings import ClusterSettings
from trunkline.store.database import dumping
from trunkline.store.jetstream.errors import StreamGone
from trunkline.store.jetstream.snapshot import stream_size
from trunkline.store.jetstream.stream import SessionStream

pytestmark = pytest.mark.process


@pytest.fixture
def empty_server() -> Iterator[NatsServer]:
    with nats.servers() as (only,):
        yield only


@pytest.fixture
def elsewhere(
    world: ClusterWorld, tmp_path: Path, empty_server: NatsServer, postgres_server: postgres.Postgres
) -> Iterator[ClusterWorld]:
    """A cluster of the same name with nothing in it, on other servers; its agents are the same."""
    with postgres_server.database() as url:
        other = ClusterWorld([empty_server], url, tmp_path / "elsewhere", world._name)
        other.agents = world.agents
        yield other


def own(world: ClusterWorld) -> ClusterSettings:
    found = world.settings("a").cluster
    assert found is not None
    return found


async def has(world: ClusterWorld) -> tuple[int, int]:
    """How many sessions there are in the rows, and messages in the stream."""
    async with SessionStream.opened(own(world).nats, name=own(world).name) as stream:
        return await dumping.count_rows(own(world).postgres, "session"), (await stream_size(stream))[0]


async def test_an_empty_cluster_goes_on_from_a_backup_of_one_that_ran(
    world: ClusterWorld, elsewhere: ClusterWorld, tmp_path: Path
) -> None:
    agent = world.agents["helper"]
    saved = str(tmp_path / "saved")
    async with world.node("a") as a:
        board = a.switchboard
        talk = await board.open("helper", "talk", by="ana")
        for word in ("one", "two"):
            await board.submit(talk, UserMessage(f"say {word}"))
        before = [(each.seq, each.turn, each.event) for each in await said(talk, ends=2)]
        asks = await board.open("helper", "asks", by="ana")
        await board.submit(asks, UserMessage("tool t1"))
        await until(lambda: bool(asks.session.waiting))
        busy = await board.open("helper", "busy", by="ana")
        await board.submit(busy, UserMessage("say begun; wait"))
        await board.submit(busy, UserMessage("say after"))
        await until(lambda: busy.session.turn == 1)
        await board.written()

        made = await back_up(own(world), saved)

        # None of this is in it.
        await board.submit(talk, UserMessage("say three"))
        await said(talk, ends=3)
        with pytest.raises(ConfigError, match="are running: `a`"):
            await restore(own(world), saved, force=True)
        agent.gate.set()
        await said(busy, ends=2)
    assert made == read_backup(saved)
    agent.heard.clear()

    assert await restore(own(elsewhere), saved) == made
    async with elsewhere.node("b") as b:
        board = b.switchboard
        talk = await board.find("talk")
        assert [(each.seq, each.turn, each.event) for each in await said(talk, ends=2)] == before
        assert await board.submit(talk, UserMessage("say four")) == 3
        assert words(await said(talk, ends=3)) == "onetwofour"

        asks = await board.find("asks")
        (approval,) = await board.approvals.found("pending")
        await asks.decide(approval, Approve(), "bob")
        assert outcomes(await said(asks)) == ["success"]
        with pytest.raises(AlreadyDecided):
            await asks.decide(approval, Approve(), "eve")
        assert agent.ran["asks", "t1"] == 1

        heard = await said(await board.find("busy"), ends=2)
        assert outcomes(heard) == ["unknown", "success"]
        assert words(heard) == "begunafter"
    # Nothing was run again.
    assert sorted(agent.heard) == ["say after", "say four"]


async def test_rows_that_are_behind_the_events_are_corrected(
    world: ClusterWorld, elsewhere: ClusterWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two files things happen: a turn begins and ends, and an approval is answered."""
    saved, dump = str(tmp_path / "saved"), dumping.dump_database
    async with world.node("a") as a:
        board = a.switchboard
        live = await board.open("helper", "s", by="ana")
        await board.submit(live, UserMessage("tool t1"))
        await until(lambda: bool(live.session.waiting))
        await board.written()

        async def and_then(*arguments: object) -> None:
            await dump(*arguments)  # type: ignore[arg-type]
            (approval,) = await board.approvals.found("pending")
            await live.decide(approval, Approve(), "bob")
            await board.submit(live, UserMessage("say more", id="m2"))
            await said(live, ends=2)

        monkeypatch.setattr(dumping, "dump_database", and_then)
        await back_up(own(world), saved)
    await restore(own(elsewhere), saved)
    async with elsewhere.node("b") as b:
        live = await b.switchboard.find("s")
        assert outcomes(await said(live, ends=2)) == ["success", "success"]
        assert not await b.switchboard.approvals.found("pending")
        assert not live.session.waiting
    assert world.agents["helper"].ran["s", "t1"] == 1


async def test_sessions_are_replaced_only_by_force(world: ClusterWorld, tmp_path: Path) -> None:
    saved = str(tmp_path / "saved")
    async with world.node("a") as a:
        live = await a.switchboard.open("helper", "old", by="ana")
        await a.switchboard.submit(live, UserMessage("say old"))
        await said(live)
    await back_up(own(world), saved)
    async with world.node("a") as a:
        await a.switchboard.open("helper", "new", by="ana")
    with pytest.raises(ConfigError, match="has sessions already: 2 in PostgreSQL"):
        await restore(own(world), saved)
    await restore(own(world), saved, force=True)
    async with world.node("a") as a:
        assert [row.id for row in await a.switchboard.rows()] == ["old"]
        assert words(await said(await a.switchboard.find("old"))) == "old"


async def test_a_backup_is_private_and_is_written_into_a_new_directory_alone(
    world: ClusterWorld, tmp_path: Path
) -> None:
    saved = tmp_path / "deep" / "saved"
    told: list[str] = []
    await back_up(own(world), str(saved), lambda part, done, total: told.append(part))
    assert sorted(set(told)) == ["events", "rows"]
    assert stat.S_IMODE(saved.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in saved.iterdir()} == dict.fromkeys(
        (MANIFEST, ROWS, EVENTS), 0o600
    )
    with pytest.raises(ConfigError, match="something in"):
        await back_up(own(world), str(saved))
    read_backup(str(saved))


@pytest.mark.parametrize("name", [ROWS, EVENTS, MANIFEST])
@pytest.mark.parametrize("damage", ["missing", "shorter", "other"])
async def test_what_is_not_what_was_written_is_refused_before_anything_changes(
    world: ClusterWorld, tmp_path: Path, name: str, damage: str
) -> None:
    saved = tmp_path / "saved"
    await back_up(own(world), str(saved))
    file = saved / name
    data = file.read_bytes()
    match damage:
        case "missing":
            file.unlink()
        case "shorter":
            file.write_bytes(data[:-10])
        case "other":
            file.write_bytes(data[:20] + b"?" + data[21:])
    with pytest.raises(ConfigError, match=r"backup|manifest"):
        await restore(own(world), str(saved), force=True)


async def test_a_backup_of_another_cluster_or_a_newer_version_is_refused(world: ClusterWorld, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    await back_up(own(world), str(saved))
    with pytest.raises(ConfigError, match="backup of the cluster"):
        await restore(own(world).replace(name="other"), str(saved))
    (saved / MANIFEST).write_text('{"version": 2}')
    with pytest.raises(ConfigError, match="newer version"):
        await restore(own(world), str(saved))


async def test_what_fails_or_is_stopped_leaves_no_directory(
    world: ClusterWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = tmp_path / "saved"
    saving = asyncio.Event()

    async def never(*_: object) -> None:
        saving.set()
        await asyncio.Event().wait()

    async def gone(*_: object) -> None:
        raise StreamGone("NATS does not answer.")

    monkeypatch.setattr(backups, "save_stream", gone)
    with pytest.raises(StreamGone):
        await back_up(own(world), str(saved))
    assert not saved.exists()
    monkeypatch.setattr(backups, "save_stream", never)
    stopped = asyncio.create_task(back_up(own(world), str(saved)))
    await saving.wait()
    assert (saved / ROWS).exists()
    stopped.cancel()
    await asyncio.wait({stopped}, timeout=PATIENCE_SECONDS)
    assert stopped.cancelled()
    assert not saved.exists()


async def test_a_database_that_cannot_be_restored_leaves_everything_as_it_was(
    world: ClusterWorld, elsewhere: ClusterWorld, tmp_path: Path, postgres_server: postgres.Postgres
) -> None:
    saved = str(tmp_path / "saved")
    await back_up(own(elsewhere), saved)
    async with world.node("a") as a:
        await a.switchboard.open("helper", "s", by="ana")
    before = await has(world)
    assert before[0] == 1
    with postgres_server.database() as url:
        settings = own(world).replace(postgres=url.replace("user=postgres", "user=nobody-here"))
        with pytest.raises(ConfigError, match="`pg_restore` failed"):
            await restore(settings, saved, force=True)
    assert await has(world) == before


async def test_events_that_cannot_be_restored_are_told_with_what_to_do(
    world: ClusterWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = str(tmp_path / "saved")
    async with world.node("a") as a:
        await a.switchboard.open("helper", "s", by="ana")
    await back_up(own(world), saved)

    async def gone(*_: object) -> None:
        raise StreamGone("NATS does not answer.")

    with monkeypatch.context() as patch:
        patch.setattr(backups, "restore_stream", gone)
        with pytest.raises(StoreUnavailable, match=r"the events are not.*`--force`"):
            await restore(own(world), saved, force=True)
    await restore(own(world), saved, force=True)
    assert (await has(world))[0] == 1


async def test_errors_have_no_passwords_in_them(
    world: ClusterWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.store.jetstream.stream.CONNECT_SECONDS", 0.5)
    for server in ("nats://ana:hush-hush@127.0.0.1:1", "nats://hush-hush@127.0.0.1:1"):
        with pytest.raises(ConfigError, match="No NATS server answers") as told:
            await back_up(own(world).replace(nats=(server,)), str(tmp_path / "saved"))
        assert "hush" not in str(told.value)
    assert not (tmp_path / "saved").exists()
