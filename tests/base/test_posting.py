"""Both ways of asking, straight and through a proxy's library, against real sockets: they do the same."""

from __future__ import annotations

import asyncio
import errno
import gc
import gzip
import ssl
import warnings
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import BREAK, HANG, Gate, Reply, Request, StubProvider
from tests.support.stub_server import StubServer
from trunkline.base import http, posting, posting_direct
from trunkline.base.posting import ConnectionFailed, Poster, Response, poster, why_unmade
from trunkline.base.posting_direct import Direct

#: Nobody is there: the port of a proxy that is never asked, since what runs on this machine is not behind it.
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(params=["direct", "library"])
async def asks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Poster]:
    for name in posting._PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    if request.param == "library":
        monkeypatch.setenv("HTTPS_PROXY", NOBODY)
    made = poster(secure=False)
    assert (type(made).__name__ == "Direct") == (request.param == "direct")
    yield made
    await made.close()


async def post(asks: Poster, url: str, body: bytes = b"{}", **headers: str) -> Response:
    return await asks.post(url, headers, body, connect=PATIENCE_SECONDS)


async def whole(answer: Response) -> bytes:
    return b"".join([piece async for piece in answer.pieces()])


async def test_a_question_is_sent_as_it_is_and_says_who_asks(asks: Poster) -> None:
    body = bytes(range(256)) * 4096
    async with StubProvider(lambda _: Reply([b"yes"])) as stub:
        answer = await post(asks, f"{stub.url}/v1/a%20b/é?q=1&r=ü", body, **{"X-Key": "k"})
        assert (answer.status, await whole(answer)) == (200, b"yes")
        (request,) = stub.requests
    assert (request.method, request.body, request.headers["x-key"]) == ("POST", body, "k")
    assert request.target == "/v1/a%20b/%C3%A9?q=1&r=%C3%BC"
    assert request.headers["host"] == stub.url.removeprefix("http://")
    assert request.headers["user-agent"] == http.user_agent()
    assert request.headers["accept-encoding"] == "identity"


async def test_what_is_at_an_address_can_be_asked_for(asks: Poster) -> None:
    async with StubProvider(lambda _: Reply([b"yes"], status=203)) as stub:
        answer = await asks.get(f"{stub.url}/health", {"X-Key": "k"}, connect=PATIENCE_SECONDS)
        assert (answer.status, await whole(answer)) == (203, b"yes")
        # On the same connection, and others may follow.
        await whole(await post(asks, stub.url))
        first, second = stub.requests
    assert (first.method, first.target, first.body, first.headers["x-key"]) == ("GET", "/health", b"", "k")
    assert "content-length" not in first.headers
    assert first.connection == second.connection


async def test_who_is_named_in_the_address_is_told_to_the_server(asks: Poster) -> None:
    async with StubProvider(lambda _: Reply([b"yes"])) as stub:
        answer = await post(asks, stub.url.replace("//", "//us%40er:pa%3Ass@"))
        await whole(answer)
        assert stub.requests[0].headers["authorization"] == "Basic dXNAZXI6cGE6c3M="


async def test_pieces_are_given_before_the_answer_is_complete(asks: Poster) -> None:
    gate = Gate()
    async with StubProvider(lambda _: Reply([b"first", gate, b"second"])) as stub:
        pieces = (await post(asks, stub.url)).pieces()
        assert await anext(pieces) == b"first"
        gate.open()
        assert await anext(pieces) == b"second"
        assert await anext(pieces, None) is None


async def test_no_more_connections_are_kept_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting_direct, "MAX_IDLE", 1)
    asks = Direct(None)
    async with StubProvider(lambda _: Reply([b"x"])) as stub:
        for _ in range(2):
            for answer in [await post(asks, stub.url), await post(asks, stub.url)]:
                assert await whole(answer) == b"x"
        await asks.close()
        # One of the first two is kept for the second round.
        assert len({request.connection for request in stub.requests}) == 3


async def test_a_connection_whose_answer_was_read_is_used_again(asks: Poster) -> None:
    async with StubProvider(lambda _: Reply([b"x"])) as stub:
        for _ in range(3):
            assert await whole(await post(asks, stub.url)) == b"x"
        assert len({request.connection for request in stub.requests}) == 1


async def test_several_questions_at_once_have_a_connection_each(asks: Poster) -> None:
    async with StubProvider(lambda request: Reply([request.body])) as stub:
        answers = await asyncio.gather(*(post(asks, stub.url, b"%d" % number) for number in range(5)))
        assert [await whole(answer) for answer in answers] == [b"0", b"1", b"2", b"3", b"4"]
        assert len({request.connection for request in stub.requests}) == 5


async def test_a_connection_that_the_server_has_closed_meanwhile_is_not_used_again(asks: Poster) -> None:
    async with StubProvider(lambda _: Reply([b"x"])) as stub:
        await whole(await post(asks, stub.url))
        await stub.stop()
        async with StubProvider(lambda _: Reply([b"y"])) as other:
            assert await whole(await post(asks, other.url)) == b"y"
        with pytest.raises(ConnectionFailed) as caught:
            await post(asks, stub.url)
    assert caught.value.failure == "refused"


async def test_a_question_that_finds_a_kept_connection_closed_is_asked_on_a_new_one() -> None:
    class Tired(StubServer):
        """Answers once on each connection, and takes the next question without a word."""

        questions = 0

        async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n{}")
            self.questions += 1
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx")
            await reader.readuntil(b"\r\n\r\n{}")
            self.questions += 1

    asks = Direct(None)
    async with Tired() as stub:
        for _ in range(2):
            assert await whole(await post(asks, stub.url)) == b"x"
        assert stub.questions == 3
    await asks.close()


async def test_an_answer_that_nobody_wants_any_more_is_cut_off(asks: Poster) -> None:
    async with StubProvider(lambda _: Reply([b"x", HANG])) as stub:
        answer = await post(asks, stub.url)
        assert await anext(answer.pieces()) == b"x"
        await answer.close()
        await answer.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await stub.requests[0].left.wait()


async def test_a_question_that_is_given_up_while_its_connection_is_made_leaves_none() -> None:
    asks = Direct(None)
    async with StubProvider(lambda _: Reply([b"x"])) as stub:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for passes in range(40):
                asking = asyncio.ensure_future(asks.get(stub.url, {}, connect=PATIENCE_SECONDS))
                for _ in range(passes):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
                if not asking.cancelled():
                    await asking.result().close()
            await asks.close()
            await asyncio.sleep(0)
            gc.collect()
    assert [warning for warning in caught if issubclass(warning.category, ResourceWarning)] == []


async def test_a_question_that_is_given_up_leaves_no_connection(asks: Poster) -> None:
    gate = Gate()

    def late(request: Request) -> Reply:
        return Reply([gate], headers={"content-length": "1"})

    async with StubProvider(late) as stub:
        asking = asyncio.create_task(_read(asks, stub.url))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await gate.reached.wait()
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
            await stub.requests[0].left.wait()


async def _read(asks: Poster, url: str) -> bytes:
    answer = await post(asks, url)
    try:
        return await whole(answer)
    finally:
        await answer.close()


async def test_an_answer_that_breaks_off_is_a_lost_connection(asks: Poster) -> None:
    async with StubProvider(lambda _: Reply([b"x", BREAK])) as stub:
        with pytest.raises(ConnectionFailed) as caught:
            await whole(await post(asks, stub.url))
    assert (caught.value.failure, caught.value.place) == ("lost", stub.url.removeprefix("http://"))


async def test_a_server_that_is_silent_for_too_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    # The library is told its limits when it is made; `tests/base/test_http.py` looks at them.
    monkeypatch.setattr(http, "READ_SECONDS", 0.01)
    asks = Direct(None)
    async with StubProvider(lambda _: Reply([b"x", HANG])) as stub:
        with pytest.raises(ConnectionFailed) as caught:
            await whole(await post(asks, stub.url))
    assert caught.value.failure == "silent"


async def test_nobody_there_is_said_in_words(asks: Poster) -> None:
    async with StubProvider() as stub:
        pass
    with pytest.raises(ConnectionFailed) as caught:
        await post(asks, stub.url)
    assert caught.value.failure == "refused"
    assert str(caught.value)


async def test_nobody_at_any_address_of_a_name_is_the_same_as_nobody(asks: Poster) -> None:
    async with StubProvider() as stub:
        pass
    with pytest.raises(ConnectionFailed) as caught:
        await post(asks, stub.url.replace("127.0.0.1", "localhost"))
    assert caught.value.failure == "refused"


@pytest.mark.parametrize(
    ("errors", "failure"),
    [
        ([OSError(errno.EMFILE, "Too many open files")], "unreachable"),
        ([ConnectionResetError(errno.ECONNRESET, "reset")], "unreachable"),
        (
            [OSError("Multiple exceptions: [Errno 111] failed ('::1', 1), [Errno 111] failed ('127.0.0.1', 1)")],
            "refused",
        ),
        (
            [OSError("Multiple exceptions: [Errno 99] failed ('::1', 1), [Errno 111] failed ('127.0.0.1', 1)")],
            "refused",
        ),
        ([OSError("Multiple exceptions: [Errno 24] too many, [Errno 111] failed ('127.0.0.1', 1)")], "unreachable"),
        ([ConnectionRefusedError(errno.ECONNREFUSED, "no"), OSError(errno.ENETUNREACH, "no way")], "refused"),
        ([ConnectionRefusedError(errno.ECONNREFUSED, "no"), OSError(errno.EMFILE, "too many")], "unreachable"),
        ([ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]")], "insecure"),
        ([ssl.SSLEOFError(8, "EOF occurred in violation of protocol")], "unreachable"),
    ],
)
def test_only_a_refusal_says_that_nobody_listens(errors: list[OSError], failure: str) -> None:
    # As the library tells it: the cause of a cause, and a group if there were several.
    told = OSError("All connection attempts failed")
    told.__cause__ = errors[0] if len(errors) == 1 else ExceptionGroup("several", errors)
    assert why_unmade(told) == failure


async def test_a_server_that_speaks_no_tls_listens_all_the_same(asks: Poster) -> None:
    async with Saying(b"220 mail\r\n\r\n", at_once=True) as url:
        with pytest.raises(ConnectionFailed) as caught:
            await post(asks, url.replace("http:", "https:"))
    assert caught.value.failure == "insecure"
    assert "SSL" in str(caught.value)


async def test_a_server_that_hangs_up_instead_of_a_handshake_listens_all_the_same(asks: Poster) -> None:
    async with Saying(b"", at_once=True) as url:
        with pytest.raises(ConnectionFailed) as caught:
            await post(asks, url.replace("http:", "https:"))
    assert caught.value.failure == "unreachable"


async def test_what_was_packed_unasked_is_unpacked(asks: Poster) -> None:
    packed = gzip.compress(b"words " * 1000)
    async with StubProvider(lambda _: Reply([packed], headers={"content-encoding": "gzip"}, cut=100)) as stub:
        assert await whole(await post(asks, stub.url)) == b"words " * 1000


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_what_cannot_be_unpacked_is_a_lost_connection(asks: Poster, encoding: str) -> None:
    async with StubProvider(lambda _: Reply([b"no such thing"], headers={"content-encoding": encoding})) as stub:
        with pytest.raises(ConnectionFailed) as caught:
            await whole(await post(asks, stub.url))
    assert (caught.value.failure, caught.value.place) == ("lost", stub.url.removeprefix("http://"))
    assert "unpacked" in str(caught.value)


async def test_what_was_packed_very_small_comes_in_pieces_of_a_bounded_size(asks: Poster) -> None:
    packed = gzip.compress(bytes(64 * posting.UNPACKED_BYTES))
    sizes = []
    async with StubProvider(lambda _: Reply([packed + b"behind it"], headers={"content-encoding": "gzip"})) as stub:
        async for piece in (await post(asks, stub.url)).pieces():
            sizes.append(len(piece))
    assert sum(sizes) == 64 * posting.UNPACKED_BYTES
    assert max(sizes) <= posting.UNPACKED_BYTES


async def test_what_comes_unasked_on_a_connection_is_not_the_next_answer(asks: Poster) -> None:
    async with Intruding() as server:
        assert await whole(await post(asks, server.url)) == b"own"
        await server.intrude()
        assert await whole(await post(asks, server.url)) == b"own"


async def test_what_comes_right_behind_an_answer_is_not_the_next_one() -> None:
    # The library takes it for one: nobody but a proxy stands where it is used.
    asks = Direct(None)
    async with Intruding(at_once=True) as server:
        assert await whole(await post(asks, server.url)) == b"own"
        assert await whole(await post(asks, server.url)) == b"own"
    await asks.close()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 200\r\nno header\r\n\r\n",
        b"220 mail\r\n\r\n",
        b"",
    ],
    ids=["endless head", "broken head", "another protocol", "nothing"],
)
async def test_what_is_no_answer_is_a_lost_connection(asks: Poster, reply: bytes) -> None:
    async with Saying(reply) as url:
        with pytest.raises(ConnectionFailed) as caught:
            await post(asks, url)
    assert caught.value.failure == "lost"


async def test_what_comes_before_the_answer_is_passed_over(asks: Poster) -> None:
    async with Saying(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as url:
        assert await whole(await post(asks, url)) == b"ok"


async def test_an_answer_without_a_length_ends_with_its_connection(asks: Poster) -> None:
    async with Saying(b"HTTP/1.0 200 OK\r\n\r\nall of it") as url:
        assert await whole(await post(asks, url)) == b"all of it"


async def test_a_server_that_refuses_in_the_middle_of_a_long_question_is_heard(asks: Poster) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlong"
    async with Saying(refusal) as url:
        answer = await post(asks, url, b"x" * 4_000_000)
        assert (answer.status, await whole(answer)) == (413, b"long")


@pytest.mark.parametrize("url", ["http://[zz]/", "http://\N{SNOWMAN}..example/", "gopher://h.example/", "http:///x"])
async def test_an_address_that_is_none_is_refused(asks: Poster, url: str) -> None:
    with pytest.raises((ValueError, ConnectionFailed)):
        await post(asks, url)


async def test_a_header_that_is_none_is_not_sent(asks: Poster) -> None:
    async with StubProvider(lambda _: Reply([b"x"])) as stub:
        with pytest.raises(ConnectionFailed) as caught:
            await post(asks, stub.url, b"{}", **{"x-key": "a\r\nx-other: b"})
        assert stub.requests == []
    assert caught.value.failure == "unsendable"


class Saying:
    """A server that reads a request's head and says one thing to everybody; or says it `at_once`, and hangs up."""

    def __init__(self, said: bytes, *, at_once: bool = False) -> None:
        self._said = said
        self._at_once = at_once
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._answer(reader, writer)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self._at_once:
                await reader.read(1)
            else:
                await reader.readuntil(b"\r\n\r\n")
            writer.write(self._said)
            await writer.drain()
            # The rest of the question is read, so that its sender is not cut off before it has heard us.
            writer.write_eof()
            await reader.read()
        finally:
            writer.transport.abort()


class Intruding:
    """A server that answers "own", and says more than it was asked for: right behind its answer, or when told to."""

    def __init__(self, *, at_once: bool = False) -> None:
        self._at_once = at_once
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Intruding:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def intrude(self) -> None:
        """Say it on every connection, and let whoever hears it hear it."""
        for writer in self._writers:
            writer.write(_answer(b"forged"))
        for _ in range(10):
            await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._tasks.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"{}")
                writer.write(_answer(b"own") + (_answer(b"forged") if self._at_once else b""))
        finally:
            writer.transport.abort()


def _answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
