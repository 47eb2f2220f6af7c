"""Programs at the exchange's socket: who is let in, and to which session."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.support.attached import client, echo, exchange
from trunkline.base.attach import ATTACH_SOCKET, AttachHeader
from trunkline.exchange.session_rows import SessionRows
from trunkline.store.database import DatabaseGone

HERE = AttachHeader("jsonstream")


async def test_the_socket_is_its_users_alone_and_gone_with_the_exchange(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        path = os.path.join(running.settings.home, ATTACH_SOCKET)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with pytest.raises(FileNotFoundError):
        os.stat(path)


async def test_a_new_session_begins_with_the_agent_that_there_is(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running, client(running, HERE) as program:
        assert program.answer.agent == "a"
        rows = await running.switchboard.rows()
        assert [(row.id, row.agent, row.by_person) for row in rows] == [(program.answer.session, "a", "local")]


async def test_a_session_is_named_and_joined_by_its_name(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path), b=echo(tmp_path)) as running:
        header = HERE.replace(agent="b", session_id="mine")
        async with client(running, header) as one, client(running, header) as other:
            assert (one.answer.session, other.answer.session) == ("mine", "mine")
        for again in (HERE.replace(resume="mine"), HERE.replace(agent="b", resume="latest")):
            async with client(running, again) as program:
                assert (program.answer.session, program.answer.agent) == ("mine", "b")
        assert len(await running.switchboard.rows()) == 1


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (HERE, "No agent was named. The agents are `a`, `b`."),
        (HERE.replace(agent="c"), "There is no agent `c` here. The agents are `a`, `b`."),
        (HERE.replace(resume="gone"), "There is no session `gone` in the exchange."),
        (HERE.replace(resume="latest"), "There is no session `latest`"),
        (HERE.replace(agent="a", workspace="/not/there"), "The workspace `/not/there` is not a directory."),
        (b"GET / HTTP/1.1\n", "The first line cannot be understood"),
        (b"[" * 100_000 + b"\n", "The first line cannot be understood"),
        (b'{"wire": "tcp"}\n', "The first line cannot be understood"),
        (b'{"wire": "jsonstream", "agent": 3}\n', "The first line cannot be understood"),
    ],
)
async def test_who_cannot_be_let_in_is_told_why(tmp_path: Path, header: AttachHeader | bytes, why: str) -> None:
    async with exchange(tmp_path, a=echo(tmp_path), b=echo(tmp_path)) as running:
        async with client(running, header) as program:
            assert program.answer.error is not None
            assert why in program.answer.error
            assert not await program.more()
        assert await running.switchboard.rows() == []


async def test_an_exchange_whose_disk_is_full_says_so_and_serves_when_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise DatabaseGone("database or disk is full")

    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        with monkeypatch.context() as patched:
            patched.setattr(SessionRows, "insert", full)
            async with client(running, HERE) as program:
                assert "database or disk is full" in (program.answer.error or "")
        async with client(running, HERE) as program:
            assert program.answer.error is None


async def test_a_session_of_another_agent_is_not_joined(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path), b=echo(tmp_path)) as running:
        async with client(running, HERE.replace(agent="a", session_id="mine")):
            pass
        for header in (HERE.replace(agent="b", session_id="mine"), HERE.replace(agent="b", resume="mine")):
            async with client(running, header) as program:
                assert program.answer.error == "Session `mine` is with the agent `a`."


async def test_an_exchange_that_ends_lets_go_of_everybody(tmp_path: Path) -> None:
    async with exchange(tmp_path, a=echo(tmp_path)) as running:
        connected = client(running, HERE)
        program = await connected.__aenter__()
        await program.until("ready")
    assert not await program.more()
    assert program.ending is None
    await connected.__aexit__(None, None, None)
