"""What is measured of a model."""

from __future__ import annotations

import pytest

from trunkline.models import figures
from trunkline.models.figures import Figure, MeasuredModel, Runs, figure
from trunkline.models.load_options import ON_CPU


def test_a_figure_is_the_median_with_the_least_and_the_most() -> None:
    assert figure([3.0, 100.04, 1.23456]) == Figure(3.0, 1.235, 100.0)


def test_runs_are_told_as_they_come_in() -> None:
    told: list[MeasuredModel] = []
    runs = Runs("m", "tts", told.append)
    runs.loaded(1.234, ON_CPU)
    runs.add(real_time_factor=0.5, first_sound_ms=20.0)
    runs.add(real_time_factor=0.1, first_sound_ms=40.0)
    assert [each.runs for each in told] == [1, 2]
    assert told[0].figures["real_time_factor"] == Figure(0.5, 0.5, 0.5)
    assert told[1].figures == {"first_sound_ms": Figure(30.0, 20.0, 40.0), "real_time_factor": Figure(0.3, 0.1, 0.5)}
    assert (told[1].load_seconds, told[1].used) == (1.23, ON_CPU)


def test_memory_is_that_of_this_process_and_of_the_models_own(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([100, 150, 30])
    monkeypatch.setattr(figures, "resident", lambda pid=None: next(sizes))
    runs = Runs("m", "tts")
    runs.loaded(1.0, ON_CPU, pid=7)
    assert runs.found.memory_bytes == 80
