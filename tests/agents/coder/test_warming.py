"""A model that begins slowly, and turns that wait for it."""

from __future__ import annotations

import asyncio
import threading
from typing import cast

import pytest

from tests.support.fake_model import FakeModel
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.coder.warming import Warming
from trunkline.core.faults import ProviderError
from trunkline.models.model import Model


class Slow(FakeModel):
    """Begins when it is let."""

    is_warm = False

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.let = threading.Event()
        self.begun = 0
        self._error = error

    def warm(self) -> None:
        assert self.let.wait(PATIENCE_SECONDS)
        self.begun += 1
        if self._error is not None:
            raise self._error


async def test_a_turn_that_is_stopped_meanwhile_leaves_it_to_the_next_one() -> None:
    model, warming = Slow(), Warming()
    warming.start(cast(Model, model))
    stopped = asyncio.ensure_future(warming.done())
    await asyncio.sleep(0)
    stopped.cancel()
    await asyncio.wait({stopped})
    later = asyncio.ensure_future(warming.done())
    await asyncio.sleep(0)
    assert not later.done()
    model.let.set()
    await later
    assert model.begun == 1
    await warming.done()


@pytest.mark.parametrize("error", [ProviderError("It is not there."), RuntimeError("It is broken.")])
async def test_what_went_wrong_does_not_go_wrong_with_every_turn(error: Exception) -> None:
    model, warming = Slow(error), Warming()
    warming.start(cast(Model, model))
    first = asyncio.ensure_future(warming.done())
    await asyncio.sleep(0)
    model.let.set()
    await asyncio.wait({first})
    assert first.exception() is (None if isinstance(error, ProviderError) else error)
    await warming.done()
