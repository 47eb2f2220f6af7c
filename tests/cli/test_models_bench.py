"""`trunkline models bench`, with models that cost nothing; real ones are measured in `tests/models`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from trunkline.cli import models_bench
from trunkline.core.faults import ProviderError
from trunkline.models import catalog, measuring, measuring_others
from trunkline.models.catalog_entry import CatalogEntry
from trunkline.models.figures import MeasuredModel, MeasurePlan, Measuring, Runs
from trunkline.models.load_options import LoadedAs

ENTRIES = (
    CatalogEntry("talker", context=512),
    CatalogEntry("finder", kind="embedding"),
    CatalogEntry("speaker", kind="tts", engine="espeak"),
)


@pytest.fixture(autouse=True)
def plans(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, MeasurePlan]]:
    """What is measured is made up; gives what was asked for."""
    asked: list[tuple[str, MeasurePlan]] = []

    async def talks(name: str, plan: MeasurePlan, tell: Measuring) -> MeasuredModel:
        asked.append((name, plan))
        runs = Runs(name, "llm", tell)
        runs.found = runs.found.replace(
            memory_bytes=333_000_000, load_seconds=0.5, used=LoadedAs(0, 1, 512, "f16", "cpu")
        )
        for number in range(plan.repeat):
            runs.add(prompt_tokens_per_second=100.0 + number, tokens_per_second=20.0, first_token_ms=5.0)
        return runs.found

    async def others(entry: CatalogEntry, plan: MeasurePlan, tell: Measuring) -> MeasuredModel:
        asked.append((entry.name, plan))
        runs = Runs(entry.name, entry.kind, tell)
        if entry.kind == "tts":
            raise ProviderError("It lost its voice.")
        runs.add(texts_per_second=400.0)
        if plan.repeat == STOPPED:
            raise KeyboardInterrupt
        return runs.found

    monkeypatch.setattr(catalog, "ENTRIES", ENTRIES)
    monkeypatch.setattr(models_bench, "is_here", lambda entry: entry.name != "speaker")
    monkeypatch.setattr(measuring, "measure", talks)
    monkeypatch.setattr(measuring_others, "measure", others)
    return asked


#: So many times, and somebody presses Ctrl-C.
STOPPED = 7


def run(*arguments: str) -> Result:
    return CliRunner().invoke(models_bench.command, list(arguments))


def test_all_models_that_are_here_are_measured_with_their_spread(plans: list[tuple[str, MeasurePlan]]) -> None:
    done = run()
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "MODEL   LOADED IN  MEMORY  DEVICE  MEASURED         MEDIAN  FROM - TO",
        "talker  0.5 s      333 MB  cpu     prompt tokens/s  101     100 - 102",
        "                                   tokens/s         20      20 - 20",
        "                                   first token, ms  5       5 - 5",
        "finder  0 s                        texts/s          400     400 - 400",
    ]
    assert done.stderr.splitlines() == [
        "talker: loading", "talker: 1 of 3", "talker: 2 of 3", "talker: 3 of 3", "finder: loading", "finder: 1 of 3",
    ]  # fmt: skip
    assert plans == [("talker", MeasurePlan()), ("finder", MeasurePlan())]


def test_programs_get_everything_and_say_how_much_is_asked(plans: list[tuple[str, MeasurePlan]]) -> None:
    done = run("talker", "talker", "--json", "--prompt-tokens", "10", "--tokens", "8", "--repeat", "1")
    told = json.loads(done.stdout)
    assert told["plan"] == {"prompt_tokens": 10, "tokens": 8, "repeat": 1}
    (model,) = told["models"]
    assert model["figures"]["tokens_per_second"] == {"median": 20.0, "least": 20.0, "most": 20.0}
    assert model["used"] == {"gpu_layers": 0, "threads": 1, "context": 512, "kv_cache_type": "f16", "device": "cpu"}
    assert told["failed"] == []
    assert len(plans) == 1


def test_one_that_fails_is_told_and_does_not_keep_the_others_from_being_measured() -> None:
    done = run("speaker", "finder", "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["failed"] == [{"name": "speaker", "error": "It lost its voice."}]
    assert [each["name"] for each in told["models"]] == ["finder"]
    assert "speaker: It lost its voice." in done.stderr


def test_ctrl_c_keeps_what_was_measured() -> None:
    done = run("talker", "finder", "speaker", "--repeat", str(STOPPED))
    assert done.exit_code == 130
    assert "Stopped. What was measured until now:" in done.stderr
    assert "texts/s" in done.stdout
    assert "talker" in done.stdout
    assert "speaker" not in done.stdout


@pytest.mark.parametrize("arguments", [["--tokens", "7"], ["--repeat", "0"], ["--prompt-tokens", "0"]])
def test_what_would_measure_nothing_is_wrong_usage(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2


def test_where_no_model_is_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models_bench, "is_here", lambda entry: False)
    done = run()
    assert done.exit_code == 1
    assert "Get one with `trunkline models pull smollm2-135m`" in done.stderr
    assert "There is no model `nobody`" in run("nobody").stderr
