"""A server that says nothing, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from tests.support.loop import run
from trunkline.core.faults import ProviderError
from trunkline.models.http_errors import broken_off
from trunkline.models.model import Chunk, TextChunk
from trunkline.models.silence import listened


class Said:
    """Chunks, each after so many seconds, and probes that work until one is to fail."""

    def __init__(self, *pauses: float, works: float = 1e9) -> None:
        self._pauses = pauses
        self._works = works
        self.probed: list[float] = []
        self.left = False

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        try:
            for number, pause in enumerate(self._pauses):
                await asyncio.sleep(pause)
                yield TextChunk(str(number))
        finally:
            self.left = True

    async def probe(self) -> None:
        now = asyncio.get_running_loop().time()
        self.probed.append(now)
        await asyncio.sleep(0.5)
        if now >= self._works:
            raise broken_off("it does not answer")


async def heard(said: Said) -> list[str]:
    texts: list[str] = []
    async with aclosing(listened(said.chunks(), said.probe, 10.0)) as chunks:
        async for chunk in chunks:
            assert isinstance(chunk, TextChunk)
            texts.append(chunk.text)
    return texts


def test_an_answer_that_comes_is_not_disturbed() -> None:
    async def main() -> None:
        said = Said(9, 0, 9, 0, 9)
        assert await heard(said) == ["0", "1", "2", "3", "4"]
        assert (said.probed, said.left) == ([], True)

    run(main())


def test_a_server_that_thinks_is_probed_now_and_then_and_waited_for() -> None:
    async def main() -> None:
        said = Said(35, 1, 12)
        assert await heard(said) == ["0", "1", "2"]
        assert said.probed == [10.0, 20.5, 31.0, 46.0]

    run(main())


@pytest.mark.parametrize("spoken", [0, 1])
def test_one_that_does_not_answer_the_probe_is_left(spoken: int) -> None:
    async def main() -> None:
        said = Said(*[1.0] * spoken, 1000, works=15)
        async with aclosing(listened(said.chunks(), said.probe, 10.0)) as chunks:
            for _ in range(spoken):
                await anext(chunks)
            with pytest.raises(ProviderError, match="does not answer"):
                await anext(chunks)
        assert said.left
        assert asyncio.get_running_loop().time() == 21.0 + spoken

    run(main())


def test_whoever_leaves_during_a_probe_leaves_nothing_behind() -> None:
    async def main() -> None:
        said = Said(1000)
        listening = asyncio.ensure_future(heard(said))
        await asyncio.sleep(10.2)
        assert said.probed
        listening.cancel()
        await asyncio.wait([listening])
        assert listening.cancelled()
        assert said.left
        assert len(asyncio.all_tasks()) == 1

    run(main())


def test_a_time_limit_of_others_stays_theirs() -> None:
    async def main() -> None:
        said = Said(1000)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await heard(said)
        assert said.left

    run(main())
