"""A real model, measured."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.local_model import MODEL, TIMEOUT_SECONDS, model_path
from trunkline.core.faults import AgentBusy, ConfigError
from trunkline.models import catalog, llama, speed
from trunkline.models.figures import MeasuredModel, MeasurePlan
from trunkline.models.measuring import SHORT, measure


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_a_model_is_loaded_asked_and_let_go_and_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    shared_models(monkeypatch)

    async def both() -> MeasuredModel:
        first = asyncio.create_task(measure(MODEL))
        await asyncio.sleep(0)
        with pytest.raises(AgentBusy):
            await measure(MODEL)
        return await first

    found = asyncio.run(both())
    assert list(found.figures) == ["prompt_tokens_per_second", "tokens_per_second", "first_token_ms"]
    assert all(0 < each.least <= each.median <= each.most for each in found.figures.values())
    assert (found.runs, found.used.device, found.used.kv_cache_type) == (SHORT.repeat, "cpu", "f16")
    assert found.memory_bytes > 0
    assert found.load_seconds > 0
    assert speed.last(MODEL) is not None
    assert MODEL not in llama.loaded()


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_SECONDS)
def test_each_run_counts_as_it_comes_in_and_reads_about_as_much_as_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared_models(monkeypatch)
    seen: list[int] = []
    found = asyncio.run(measure(MODEL, MeasurePlan(100, 8, 2), lambda measured: seen.append(measured.runs)))
    assert seen == [1, 2]
    # Nothing of a prompt is taken from the one before.
    assert 80 <= found.prompt_tokens <= 120


def shared_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that all tests share; what is measured of it is this test's own."""
    path = model_path()
    monkeypatch.setattr(catalog, "path", lambda entry: path)
    monkeypatch.setattr(speed, "_last", {})


async def test_what_is_not_here_cannot_be_measured() -> None:
    with pytest.raises(ConfigError):
        await measure("no-such-model")
