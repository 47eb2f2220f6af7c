"""Who gets which server, and who waits, on virtual time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.support.loop import run
from trunkline.core.faults import ProviderError
from trunkline.models.http_errors import ServiceError, broken_off
from trunkline.models.model_server import ModelServer, ServerRequest, known
from trunkline.models.server_choice import NoServerUp, ServerChoice

LOST = broken_off("the connection was cut")


class Farm:
    """Some servers `http://0/v1`, `http://1/v1` ..., those of them that are gone, and the models on them."""

    def __init__(self) -> None:
        self.gone: set[ModelServer] = set()
        self.probes = 0
        self.choices: list[ServerChoice] = []

    def model(self, *numbers: int, name: str = "m", limit: int = 10) -> ServerChoice:
        choice = ServerChoice(name, [known(f"http://{number}/v1", "big") for number in numbers], limit, self._probe)
        self.choices.append(choice)
        return choice

    async def _probe(self, server: ModelServer) -> None:
        self.probes += 1
        await asyncio.sleep(0.001)
        if server in self.gone:
            raise LOST

    def leave(self, *servers: ModelServer) -> None:
        """They go, and whoever asks them is told so."""
        self.gone.update(servers)
        for server in servers:
            request = server.begin()
            request.failed(LOST)
            request.end()

    async def close(self) -> None:
        for choice in self.choices:
            await choice.close()
            assert choice.waiting == 0


def numbers(requests: Sequence[ServerRequest]) -> list[int]:
    return [int(request.server.place[7]) for request in requests]


def test_the_server_with_the_fewest_requests_is_chosen_and_in_turn_where_they_are_equal() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, 2)
        requests = [await choice.take() for _ in range(7)]
        assert numbers(requests) == [0, 1, 2, 0, 1, 2, 0]
        # Two of the second are done.
        requests[1].end()
        requests[4].end()
        assert numbers([await choice.take() for _ in range(4)]) == [1, 1, 2, 1]
        await farm.close()

    run(main())


def test_one_request_after_the_other_goes_to_each_server_in_turn() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, 2)
        taken = []
        for _ in range(6):
            taken.append(await choice.take())
            taken[-1].end()
        assert numbers(taken) == [0, 1, 2, 0, 1, 2]
        await farm.close()

    run(main())


def test_a_slow_server_gets_fewer_requests() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, 2)
        seconds = {0: 0.1, 1: 0.1, 2: 1.0}
        asked: Counter[int] = Counter()

        async def client() -> None:
            for _ in range(50):
                request = await choice.take()
                (number,) = numbers([request])
                asked[number] += 1
                await asyncio.sleep(seconds[number])
                request.end()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(12):
                tasks.create_task(client())
        assert asked.total() == 600
        assert asked[2] * 5 < min(asked[0], asked[1])
        await farm.close()

    run(main())


def test_a_server_that_is_quick_because_it_fails_gets_next_to_nothing() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, 2)
        asked: Counter[int] = Counter()

        async def client() -> None:
            for _ in range(50):
                request = await choice.take()
                (number,) = numbers([request])
                asked[number] += 1
                if number == 2:
                    request.failed(ServiceError("no such model", retryable=False, status=404))
                else:
                    await asyncio.sleep(0.1)
                    request.spoke()
                    request.answered()
                request.end()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(12):
                tasks.create_task(client())
        # A few at first, and then one each time that it comes back.
        assert asked[2] < 20
        assert asked.total() == 600
        await farm.close()

    run(main())


def test_no_server_has_more_requests_than_it_may_and_those_who_wait_are_served_in_their_order() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, limit=2)
        first = [await choice.take() for _ in range(4)]
        served: list[int] = []

        async def wait(number: int) -> None:
            request = await choice.take()
            assert request.server.in_flight <= 2
            served.append(number)
            await asyncio.sleep(0.1)
            request.end()

        async with asyncio.TaskGroup() as tasks:
            for number in range(50):
                tasks.create_task(wait(number))
            await asyncio.sleep(0)
            assert (choice.waiting, served) == (50, [])
            for request in first:
                request.end()
        assert served == list(range(50))
        await farm.close()

    run(main())


def test_whoever_leaves_gives_the_place_in_the_queue_up() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, limit=1)
        held = [await choice.take(), await choice.take()]
        one, two, three = (asyncio.ensure_future(choice.take()) for _ in range(3))
        await asyncio.sleep(0)
        one.cancel()
        await asyncio.wait([one])
        assert choice.waiting == 2
        # It is given a server in the very moment in which it leaves.
        held[0].end()
        two.cancel()
        await asyncio.wait([two])
        assert two.cancelled()
        assert (await three).server is held[0].server
        await farm.close()

    run(main())


def test_all_who_ask_for_a_model_wait_for_its_server_in_one_line_and_the_least_limit_counts() -> None:
    async def main() -> None:
        farm = Farm()
        greedy, modest = farm.model(0, 1, name="greedy", limit=50), farm.model(1, name="modest", limit=2)
        server = known("http://1/v1", "big")
        waited: list[float] = []
        loop = asyncio.get_running_loop()

        async def hammer() -> None:
            while not done.is_set():
                request = await greedy.take()
                await asyncio.sleep(0.1)
                request.end()

        async def ask() -> None:
            for _ in range(20):
                start = loop.time()
                request = await modest.take()
                assert server.in_flight <= 2
                waited.append(loop.time() - start)
                await asyncio.sleep(0.1)
                request.end()

        done = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(100):
                tasks.create_task(hammer())
            await asyncio.sleep(0.5)
            asking = tasks.create_task(ask())
            await asyncio.wait([asking])
            done.set()
        # The line is some hundred long, and each place in it is a matter of milliseconds.
        assert max(waited) < 1.0
        await farm.close()

    run(main())


def test_what_a_server_has_to_do_counts_for_all_its_models_and_whether_it_works_for_each() -> None:
    async def main() -> None:
        farm = Farm()
        big = farm.model(0, 1)
        small = ServerChoice("s", [known(f"http://{number}/v1", "small") for number in range(2)], 1, farm._probe)
        farm.choices.append(small)
        first = [await big.take() for _ in range(3)]
        assert numbers(first) == [0, 1, 0]
        other = await small.take()
        assert (numbers([other]), other.server.in_flight) == ([1], 1)
        for _ in range(3):
            other.failed(ServiceError("no such model", retryable=False, status=404))
        other.end()
        assert (known("http://1/v1", "small").up, known("http://1/v1", "big").up) == (False, True)
        assert numbers([await small.take()]) == [0]
        await farm.close()

    run(main())


def test_servers_that_are_left_out_are_not_asked_until_they_are_back() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, 2)
        warm = await choice.take()
        warm.end()
        farm.leave(known("http://1/v1", "big"))
        assert 1 not in numbers([await choice.take() for _ in range(6)])
        farm.gone.clear()
        await asyncio.sleep(1)
        # On trial, so once.
        assert numbers([await choice.take() for _ in range(3)]).count(1) == 1
        await farm.close()

    run(main())


def test_where_no_server_is_left_the_error_names_them_all_and_says_why() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, 2, name="big")
        (await choice.take()).end()
        farm.leave(*choice.servers)
        with pytest.raises(NoServerUp) as caught:
            await choice.take()
        assert caught.value.retryable
        text = str(caught.value)
        assert "`big`" in text
        assert all(f"`http://{number}/v1`: Connection error: the connection was cut" in text for number in range(3))
        # It was looked at once more, and is not asked in vain by everybody who comes.
        assert farm.probes == 3
        for _ in range(10):
            with pytest.raises(NoServerUp):
                await choice.take()
        assert farm.probes == 3
        await farm.close()

    run(main())


def test_a_server_that_is_back_is_used_at_once_by_whoever_finds_all_left_out() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1)
        (await choice.take()).end()
        farm.leave(*choice.servers)
        farm.gone.remove(known("http://1/v1", "big"))
        assert numbers([await choice.take()]) == [1]
        await farm.close()

    run(main())


def test_those_who_wait_when_the_last_server_goes_are_told() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, limit=1)
        held = [await choice.take(), await choice.take()]
        waiting = [asyncio.ensure_future(choice.take()) for _ in range(3)]
        await asyncio.sleep(0)
        farm.gone.update(choice.servers)
        for request in held:
            request.failed(LOST)
            request.end()
        for each in waiting:
            with pytest.raises(NoServerUp):
                await each
        await farm.close()

    run(main())


def test_a_request_that_failed_somewhere_is_the_next_to_be_served_and_elsewhere() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, limit=1)
        failed, other = await choice.take(), await choice.take()
        waiting = asyncio.ensure_future(choice.take())
        again = asyncio.ensure_future(choice.take(failed.server))
        await asyncio.sleep(0)
        failed.end()
        assert (await waiting).server is failed.server
        other.end()
        assert (await again).server is other.server
        await farm.close()

    run(main())


def test_the_only_server_of_a_model_is_asked_whatever_is_known_of_it() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0)
        (await choice.take()).end()
        farm.leave(*choice.servers)
        assert numbers([await choice.take() for _ in range(3)]) == [0, 0, 0]
        await farm.close()

    run(main())


def test_who_waits_for_a_model_that_is_unloaded_is_told() -> None:
    async def main() -> None:
        farm = Farm()
        choice = farm.model(0, 1, limit=1)
        held = [await choice.take(), await choice.take()]
        waiting = asyncio.ensure_future(choice.take())
        await asyncio.sleep(0)
        await choice.close()
        with pytest.raises(ProviderError, match="unloaded"):
            await waiting
        for request in held:
            request.end()
        assert numbers([await choice.take()]) == [0]
        await farm.close()

    run(main())


class Storm:
    """Servers come and go, requests fail, speak, are given up and fail over, by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.farm = Farm()
        self.limit = self.chance.randint(1, 4)
        self.choices = [
            self.farm.model(0, 1, 2, name="a", limit=self.limit),
            self.farm.model(1, 2, name="b", limit=self.limit),
        ]
        self.fates: Counter[str] = Counter()

    async def weather(self) -> None:
        while True:
            await asyncio.sleep(self.chance.random() * 3)
            self.farm.gone ^= {self.chance.choice(self.choices[0].servers)}

    async def client(self, choice: ServerChoice) -> None:
        for _ in range(20):
            try:
                async with asyncio.timeout(self.chance.choice([0.3, 1.0, 60.0])):
                    self.fates[await self._turn(choice)] += 1
            except TimeoutError:
                self.fates["left"] += 1

    async def _turn(self, choice: ServerChoice) -> str:
        tried: ModelServer | None = None
        for _ in range(2):
            try:
                request = await choice.take(tried)
            except NoServerUp:
                await asyncio.sleep(self.chance.random())
                return "none up"
            try:
                assert request.server.in_flight <= self.limit
                assert request.server is not tried
                if await self._answered(request):
                    return "answered"
                tried = request.server
            finally:
                request.end()
        return "failed"

    async def _answered(self, request: ServerRequest) -> bool:
        await asyncio.sleep(self.chance.random())
        if request.server in self.farm.gone:
            request.failed(LOST)
            return False
        request.spoke()
        await asyncio.sleep(self.chance.random())
        request.answered()
        return True


@pytest.mark.parametrize("seed", range(30))
def test_whatever_happens_every_request_ends_and_nothing_is_left_over(seed: int) -> None:
    async def main() -> None:
        storm = Storm(seed)
        servers = storm.choices[0].servers
        weather = asyncio.ensure_future(storm.weather())
        async with asyncio.TaskGroup() as tasks:
            for number in range(12):
                tasks.create_task(storm.client(storm.choices[number % 2]))
        weather.cancel()
        assert storm.fates.total() == 240
        assert storm.fates["answered"]
        assert all(choice.waiting == 0 for choice in storm.choices)
        assert all(server.in_flight == 0 for server in servers)
        # When the weather is good again, all come back.
        storm.farm.gone.clear()
        await asyncio.sleep(60)
        assert all(server.up for server in servers)
        await storm.farm.close()

    run(main())
