"""Clients of a node that follows a session, when it has to stop following: nobody is left in silence."""

from __future__ import annotations

import pytest

from tests.support import attached
from tests.support.cluster_world import ClusterWorld
from tests.support.loop import until
from trunkline.base.attach import AttachHeader, Wire
from trunkline.exchange.acts import Acts
from trunkline.exchange.attach import attach_socket
from trunkline.store.database import DatabaseGone

pytestmark = pytest.mark.process


@pytest.mark.parametrize("wire", ["chat", "jsonstream"])
async def test_an_attached_client_is_told_to_come_back_when_its_session_was_let_go_of(
    world: ClusterWorld, wire: Wire
) -> None:
    async with world.nodes("a", "b") as (a, b), attach_socket(b):
        await a.switchboard.open("helper", "s1")
        async with attached.client(b, AttachHeader(wire, resume="s1")) as client:
            await until(lambda: bool((live := b.switchboard.live("s1")) and live.clients))
            assert b.cluster is not None
            await b.cluster.ask(b.cluster.nodes.others["a"], {"do": "drain"})
            while await client.more():
                pass
            assert client.ending is not None
            assert client.ending.exit == 1
        async with attached.client(b, AttachHeader(wire, resume="s1")) as client:
            assert client.answer.session == "s1"
            await until(lambda: bool((live := b.switchboard.live("s1")) and not live.is_followed))


async def test_attached_clients_are_told_when_their_node_takes_the_session_over(world: ClusterWorld) -> None:
    async with world.node("b") as b, attach_socket(b):
        async with world.node("a") as a:
            await a.switchboard.open("helper", "s1")
            assert b.cluster is not None
            await b.cluster.nodes.look()
            theirs = await b.switchboard.find("s1")
            assert theirs.is_followed
            async with attached.client(b, AttachHeader("chat", resume="s1")) as client:
                await until(lambda: bool(theirs.clients))
                await b.switchboard.abandon([theirs])
                while await client.more():
                    pass
                assert client.ending is not None


async def test_who_comes_and_goes_while_the_database_is_away_is_told_in_the_log(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def gone(acts: Acts, session: str, noted: object) -> None:
        raise DatabaseGone("The database does not answer.")

    async with world.nodes("a", "b") as (a, b):
        await a.switchboard.open("helper", "s1")
        theirs = await b.switchboard.find("s1")
        with monkeypatch.context() as patched:
            patched.setattr(Acts, "keep", gone)
            async with b.switchboard.attached("s1", by="bob", wire="chat") as live:
                assert live is theirs
                await until(lambda: "joined session s1" in caplog.text)
            await until(lambda: "left session s1" in caplog.text)
