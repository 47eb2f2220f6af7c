"""The owner's client, against a server that means no good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from trunkline.base import http
from trunkline.wires.sns.drive import SnsError
from trunkline.wires.sns.owner import Owner
from trunkline.wires.sns.wallet import Wallet


@pytest.fixture
async def dripping() -> AsyncIterator[Owner]:
    """An owner at a server whose answers never end, although something comes all the time."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        try:
            while not writer.is_closing():
                writer.write(b"1\r\n \r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, http.client(secure=False, read=20) as client:
        yield Owner(client, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", Wallet("11" * 32))


async def test_an_answer_that_never_ends_is_not_waited_for(dripping: Owner) -> None:
    with pytest.raises(SnsError, match=r"gave no whole answer within 0\.2 s"):
        await dripping.call("GET", "/api/agents/mine", seconds=0.2)


async def test_signing_out_is_given_up_soon(dripping: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.wires.sns.owner.PARTING_SECONDS", 0.2)
    dripping._token = "t"
    await dripping.sign_out()
    assert dripping._token is None
