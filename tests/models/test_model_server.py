"""What becomes of a server that fails, on virtual time."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.support.loop import VirtualLoop, run
from trunkline.core.faults import ProviderError, TooLong
from trunkline.models import model_server
from trunkline.models.http_errors import ServiceError, broken_off
from trunkline.models.model_server import LONGEST_SECONDS, STRIKES, ModelServer, is_request_fault, known, servers
from trunkline.models.refused import PartRefused

LOST = broken_off("the connection was cut")


class User:
    """Who asks the server, and what is wrong with the server, if anything."""

    def __init__(self, server: ModelServer, limit: int = 10) -> None:
        self.server = server
        self.limit = limit
        # It always wants to know.
        self.waiting, self.oldest = 1, 0
        self.back = asyncio.Event()
        self.wrong: ProviderError | None = LOST
        self.probes: list[float] = []
        server.attach(self)

    async def probe(self, server: ModelServer) -> None:
        assert server is self.server
        self.probes.append(asyncio.get_running_loop().time())
        if self.wrong is not None:
            raise self.wrong

    def serve(self) -> None:
        if self.server.up:
            self.back.set()
        else:
            self.back.clear()


def is_up(server: ModelServer) -> bool:
    """Asked anew each time: it changes."""
    return server.up


def has_room(server: ModelServer) -> bool:
    return server.has_room


def fail(server: ModelServer, fault: ProviderError = LOST) -> bool:
    request = server.begin()
    try:
        return request.failed(fault)
    finally:
        request.end()


def answer(server: ModelServer) -> None:
    request = server.begin()
    request.spoke()
    request.answered()
    request.end()


def test_a_server_that_is_gone_is_probed_after_twice_as_long_each_time_up_to_a_limit() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        assert fail(server)
        assert not is_up(server)
        assert "cut" in server.reason
        await asyncio.sleep(120)
        await server.detach(user)
        waits = [later - earlier for earlier, later in zip([0.0, *user.probes], user.probes, strict=False)]
        assert waits == pytest.approx([0.5, 1, 2, 4, 8, 16, LONGEST_SECONDS, LONGEST_SECONDS])
        # Nobody uses it, and nobody looks at it.
        await asyncio.sleep(1000)
        assert len(user.probes) == len(waits)

    run(main())


def test_one_good_probe_brings_a_server_back_and_it_gets_one_request_until_it_has_said_a_word() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        fail(server)
        assert not has_room(server)
        user.wrong = None
        await asyncio.sleep(0.6)
        assert (server.up, server.reason, len(user.probes)) == (True, "", 1)
        trial = server.begin()
        assert not has_room(server)
        trial.spoke()
        assert has_room(server)
        trial.end()
        await server.detach(user)

    run(main())


def test_a_server_that_passes_probes_and_fails_at_requests_is_left_out_for_longer_each_time() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        user.wrong = None
        tried: list[float] = []
        for _ in range(4):
            fail(server, ServiceError("API error 404: no such model", retryable=False, status=404))
            if tried:
                # Once it has been left out, one failure is enough.
                assert not is_up(server)
            else:
                for _ in range(STRIKES - 1):
                    fail(server, ServiceError("API error 404: no such model", retryable=False, status=404))
            await user.back.wait()
            tried.append(asyncio.get_running_loop().time())
        waits = [later - earlier for earlier, later in zip([0.0, *tried], tried, strict=False)]
        assert waits == pytest.approx([0.5, 1.0, 2.0, 4.0])
        # One answer, and all is forgotten.
        answer(server)
        fail(server)
        left = asyncio.get_running_loop().time()
        await asyncio.sleep(0.6)
        assert is_up(server)
        assert user.probes[-1] == pytest.approx(left + 0.5)
        await server.detach(user)

    run(main())


def test_requests_that_fail_together_are_one_outage() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        together = [server.begin() for _ in range(10)]
        for request in together:
            request.failed(LOST)
            request.end()
        user.wrong = None
        await asyncio.sleep(0.6)
        assert is_up(server)
        assert (server.failures, server.requests, server.in_flight) == (10, 10, 0)
        await server.detach(user)

    run(main())


def test_what_a_request_from_before_comes_to_says_nothing_of_the_server_now() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        slow, slower = server.begin(), server.begin()
        fail(server)
        # It shuts down, and finishes what it had begun.
        slow.spoke()
        slow.answered()
        slow.end()
        assert not is_up(server)
        user.wrong = None
        await asyncio.sleep(0.6)
        assert is_up(server)
        slower.failed(LOST)
        slower.end()
        assert is_up(server)
        await server.detach(user)

    run(main())


def test_a_request_that_was_made_nevertheless_and_answered_brings_a_server_back() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        fail(server)
        answer(server)
        assert is_up(server)
        assert has_room(server)
        # And again, before anything else could happen.
        fail(server)
        assert not is_up(server)
        await asyncio.sleep(LONGEST_SECONDS)
        assert user.probes
        await server.detach(user)

    run(main())


@pytest.mark.parametrize(
    ("fault", "strikes"),
    [
        (LOST, 1),
        (ServiceError("busy", retryable=True, status=429), 1),
        (ServiceError("loading", retryable=True, status=503), 1),
        (ServiceError("oops", retryable=True, status=500), STRIKES),
        (ServiceError("who are you", retryable=False, status=401), STRIKES),
        (ServiceError("no such model", retryable=False, status=404), STRIKES),
        (ServiceError("in the stream", retryable=True), STRIKES),
        (ProviderError("a web page", retryable=False), STRIKES),
    ],
)
def test_how_often_a_server_may_fail(fault: ProviderError, strikes: int) -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        for _ in range(strikes):
            assert is_up(server)
            assert fail(server, fault)
        assert not is_up(server)
        await server.detach(user)

    run(main())


def test_an_answer_in_between_starts_the_count_of_failures_again() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        for _ in range(3 * STRIKES):
            fail(server, ServiceError("oops", retryable=True, status=500))
            answer(server)
        assert is_up(server)
        await server.detach(user)

    run(main())


@pytest.mark.parametrize(
    "fault",
    [
        TooLong("too long", retryable=False),
        PartRefused("no pictures", "pictures"),
        ServiceError("bad", retryable=False, status=400),
        ServiceError("unprocessable", retryable=False, status=422),
        ServiceError("invalid_request_error", retryable=False),
    ],
)
def test_what_is_wrong_with_a_request_is_not_the_servers_fault(fault: ProviderError) -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        for _ in range(2 * STRIKES):
            assert not fail(server, fault)
        assert (server.up, server.failures) == (True, 0)
        await server.detach(user)

    assert is_request_fault(fault)
    run(main())


def test_a_server_that_asks_for_time_gets_it_up_to_a_limit() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        user.wrong = None
        fail(server, ServiceError("slow down", retryable=True, status=429, after=7.0))
        # Nor is it looked at because somebody is in a hurry.
        await server.look_again()
        assert not is_up(server)
        await asyncio.sleep(7.1)
        assert user.probes == [7.0]
        fail(server, ServiceError("slow down", retryable=True, status=429, after=1e6))
        await asyncio.sleep(LONGEST_SECONDS + 0.1)
        assert is_up(server)
        await server.detach(user)

    run(main())


def test_who_needs_a_server_now_has_it_looked_at_and_many_at_once_only_once() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        fail(server)
        await asyncio.gather(*(server.look_again() for _ in range(100)))
        assert user.probes == [0.0]
        # Just looked at.
        await server.look_again()
        assert user.probes == [0.0]
        user.wrong = None
        await asyncio.sleep(model_server.AGAIN_SECONDS)
        await server.look_again()
        assert is_up(server)
        await server.detach(user)

    run(main())


def test_whoever_leaves_while_a_server_is_looked_at_leaves_the_answer_to_the_others() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        user.wrong = None
        fail(server)
        one, other = asyncio.ensure_future(server.look_again()), asyncio.ensure_future(server.look_again())
        await asyncio.sleep(0)
        one.cancel()
        await other
        assert is_up(server)
        await server.detach(user)

    run(main())


def test_a_server_that_is_left_out_when_somebody_comes_is_looked_at_first() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        first = User(server)
        fail(server)
        await server.detach(first)
        second = User(server)
        second.wrong = None
        await server.look_again()
        assert is_up(server)
        assert first.probes == []
        await server.detach(second)

    run(main())


def test_probes_go_on_with_whoever_is_left() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        first, second = User(server, limit=3), User(server, limit=5)
        assert server.limit == 3
        fail(server)
        await server.detach(first)
        assert server.limit == 5
        second.wrong = None
        await asyncio.sleep(1)
        assert is_up(server)
        assert (first.probes, len(second.probes)) == ([], 1)
        await server.detach(second)

    run(main())


def test_all_who_name_an_address_in_one_event_loop_share_what_is_known_of_it() -> None:
    async def main() -> None:
        assert known("http://h/v1", "m") is known("http://h/v1", "m")
        known("http://user:secret@g/v1?key=secret", "m")
        assert [server.place for server in servers()] == ["http://h/v1", "http://g/v1"]

    run(main())
    run(main())


def test_a_long_reason_is_cut() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        fail(server, broken_off("x" * 1000))
        assert len(server.reason) < 200
        await server.detach(user)

    run(main())


def test_an_event_loop_that_is_over_is_forgotten_with_its_servers() -> None:
    async def main() -> None:
        server = known("http://h/v1", "m")
        user = User(server)
        fail(server)
        await server.look_again()
        await server.detach(user)

    loop = VirtualLoop()
    _run_to_end(loop, main())
    kept = weakref.ref(loop)
    del loop
    gc.collect()
    assert kept() is None


def _run_to_end(loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, None]) -> None:
    loop.run_until_complete(main)
    loop.close()
