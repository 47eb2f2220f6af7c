"""Models that embed, hear and speak, measured: real ones."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.speech import pulled
from trunkline.core.faults import ConfigError
from trunkline.models import catalog, measuring_others
from trunkline.models.figures import MeasurePlan
from trunkline.models.measuring_others import measure
from trunkline.models.voice.engines import HEARING_RATE

PLAN = MeasurePlan(repeat=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("minilm-l6", ["texts_per_second"]),
        ("espeak", ["first_sound_ms", "real_time_factor"]),
        ("silero-vad", ["real_time_factor"]),
        ("whisper-base", ["real_time_factor"]),
    ],
)
def test_a_model_does_its_work_as_often_as_it_is_told(
    name: str, wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {each: pulled(each) for each in (name, "espeak")}
    monkeypatch.setattr(catalog, "path", lambda entry: shared[entry.name])
    monkeypatch.setattr(measuring_others, "models_here", lambda kind: ("espeak",))
    seen: list[int] = []
    found = asyncio.run(measure(catalog.find(name), PLAN, lambda measured: seen.append(measured.runs)))
    assert seen == [1, 2]
    assert list(found.figures) == wanted
    assert all(each.median > 0 for each in found.figures.values())


async def test_what_is_not_here_cannot_be_measured() -> None:
    with pytest.raises(ConfigError, match="Get it with `trunkline models pull piper-joe`"):
        await measure(catalog.find("piper-joe"), PLAN)


async def test_without_a_voice_there_is_nothing_to_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring_others, "models_here", lambda kind: ())
    with pytest.raises(ConfigError, match="There is no voice here whose words could be heard"):
        await measuring_others._something_said()


@pytest.mark.parametrize("rate", [8000, 22_050, 48_000])
def test_sound_of_any_rate_is_heard_as_long_as_it_is(rate: int) -> None:
    second = bytes(2 * rate)
    assert len(measuring_others._at_hearing_rate(second + b"x", rate)) == 2 * HEARING_RATE
