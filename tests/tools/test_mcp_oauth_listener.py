"""Where a browser comes back to: one request counts, and nothing else does any harm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.tools.mcp.oauth import listener as listener_module
from trunkline.tools.mcp.oauth.listener import LoginAnswer, LoginListener, LoginRefused, StrayAnswer, read_answer


@pytest.fixture
async def listener() -> AsyncIterator[LoginListener]:
    async with LoginListener.opened("<web>") as made:
        made.expect("s1")
        yield made


async def sent(listener: LoginListener, data: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(listener.redirect_uri).port)
    writer.write(data)
    if not data:
        writer.write_eof()
    answer = await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)
    writer.close()
    return answer.decode()


def get(target: str, host: str = "127.0.0.1") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "query",
    [
        "",
        "code=c",
        "state=s1",
        "code=&state=s1",
        "code=c&state=S1",
        "code=c&state=s1&state=s1",
        "a&" * 50,
        "state=\xff",
    ],
)
def test_what_is_no_answer_to_this_login_is_stray(query: str) -> None:
    with pytest.raises(StrayAnswer):
        read_answer(query, "s1")


def test_an_answer_is_a_code_or_a_refusal() -> None:
    assert read_answer("code=a%2Bb&state=s1&iss=https%3A%2F%2Fa", "s1") == LoginAnswer("a+b", "s1", "https://a")
    with pytest.raises(LoginRefused, match=r"\(access_denied\)"):
        read_answer("error=access_denied&state=s1", "s1")
    with pytest.raises(LoginRefused) as caught:
        read_answer(f"error=x&error_description=%1B[31m{'a' * 50}+{'b' * 9000}&state=s1", "s1")
    assert len(str(caught.value)) < 400
    assert "\x1b" not in str(caught.value)


async def test_it_answers_to_its_own_name_and_place_alone(listener: LoginListener) -> None:
    good = "/callback?code=c&state=s1"
    assert (await sent(listener, get(good, "evil.example.org"))).startswith("HTTP/1.1 421")
    assert (await sent(listener, get("/"))).startswith("HTTP/1.1 404")
    post = f"POST {good} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    assert (await sent(listener, post.encode())).startswith("HTTP/1.1 404")
    for garbage in (b"", b"\x16\x03\x01\x00\xee", b"GET / HTTP/1.1\r\n\r\n", b"x" * 100_000):
        assert "200" not in (await sent(listener, garbage)).split("\r\n")[0]
    listener.tell("It <worked>.")
    page = await sent(listener, get(good, "localhost:1"))
    assert page.startswith("HTTP/1.1 200")
    assert "It &lt;worked&gt;." in page
    assert "login to &lt;web&gt;" in page
    assert "no-store" in page
    assert await listener.answer() == LoginAnswer("c", "s1")
    # A second one is too late.
    assert (await sent(listener, get("/callback?code=d&state=s1"))).startswith("HTTP/1.1 400")


async def test_before_there_is_a_login_nothing_is_an_answer() -> None:
    async with LoginListener.opened("web") as listener:
        assert (await sent(listener, get("/callback?code=c&state="))).startswith("HTTP/1.1 400")


async def test_whoever_connects_and_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "REQUEST_SECONDS", 0.05)
    async with LoginListener.opened("web") as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(listener.redirect_uri).port)
        assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
        writer.close()


async def test_a_page_that_waits_is_told_when_the_login_is_given_up() -> None:
    async with LoginListener.opened("web") as listener:
        listener.expect("s1")
        page = asyncio.create_task(sent(listener, get("/callback?code=c&state=s1")))
        await asyncio.wait_for(listener.answer(), PATIENCE_SECONDS)
    assert "given up" in await page
