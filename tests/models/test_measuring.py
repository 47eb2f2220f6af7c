"""A real model, measured."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.local_model import MODEL, SHARED_CACHE, TIMEOUT_SECONDS, model_path
from trunkline.core.faults import AgentBusy, ConfigError
from trunkline.models import llama, speed
from trunkline.models.measuring import measure


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_a_model_is_loaded_asked_and_let_go_and_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    model_path()
    monkeypatch.setenv("TRUNKLINE_CACHE", SHARED_CACHE)

    async def both() -> None:
        first = asyncio.create_task(measure(MODEL))
        await asyncio.sleep(0)
        with pytest.raises(AgentBusy):
            await measure(MODEL)
        found = await first
        assert found.tokens_per_second > 0
        assert found.first_token_ms > 0
        assert speed.last(MODEL) is not None
        assert MODEL not in llama.loaded()

    asyncio.run(both())


async def test_what_is_not_here_cannot_be_measured() -> None:
    with pytest.raises(ConfigError):
        await measure("no-such-model")
