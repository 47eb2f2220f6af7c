"""What was set in a session counts when it is resumed, unless the command line says something else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.coder.test_history import Notebook
from tests.support.fake_model import FakeModel
from trunkline.agents.coder.history import History
from trunkline.agents.coder.kept_options import KeptOptions
from trunkline.agents.coder.options import DEFAULT_THINKING_BUDGET
from trunkline.agents.coder.settings import CoderSettings
from trunkline.core.faults import ConfigError
from trunkline.models.messages import Text
from trunkline.models.model import Model
from trunkline.models.providers import ModelSettings


def configured(provider: str = "anthropic", **more: Any) -> CoderSettings:
    return CoderSettings(ModelSettings(provider, "claude-sonnet-4-7", **more), "a test")


def set_in(notebook: Notebook, *changes: dict[str, Any], settings: CoderSettings | None = None) -> None:
    """A session in which something was said, and then set."""
    history = History(notebook)
    history.user((Text("hello"),))
    kept = KeptOptions(history, settings or configured(), ())
    for change in changes:
        kept.keep(change)


def resumed(
    notebook: Notebook, *said: str, settings: CoderSettings | None = None, broken: str = ""
) -> tuple[CoderSettings, list[str]]:
    """What holds in the next process, and what people are told."""

    def make_model(wanted: ModelSettings) -> Model:
        if wanted.model == broken:
            raise ConfigError(f"`{broken}` is gone.")
        return FakeModel()

    kept = KeptOptions(History(Notebook(*notebook.kept)), settings or configured(), said)
    return kept.begin(make_model)[0], kept.notes


def test_model_effort_thinking_and_compaction_are_kept() -> None:
    notebook = Notebook()
    set_in(notebook, {"model": "claude-opus-4-7"}, {"effort": "high", "model": None}, {"thinking": "enabled"})
    found, notes = resumed(notebook)
    assert (found.model.model, found.effort, found.thinking_budget) == (
        "claude-opus-4-7",
        "high",
        DEFAULT_THINKING_BUDGET,
    )
    assert (found.compaction, notes) == (True, [])
    set_in(notebook, {"compaction": "off"})
    assert resumed(notebook)[0].compaction is False


def test_what_was_said_last_counts() -> None:
    notebook = Notebook()
    set_in(notebook, {"thinking_budget": 5000}, {"thinking": "disabled"})
    assert resumed(notebook)[0].thinking_budget is None
    set_in(notebook, {"thinking_budget": 7000})
    assert resumed(notebook)[0].thinking_budget == 7000
    set_in(notebook, {"image_input": "unsupported"}, {"model": "claude-opus-4-7"})
    assert resumed(notebook)[0].model.compat == {}
    set_in(notebook, {"image_input": "unsupported"})
    assert resumed(notebook)[0].model == ModelSettings(
        "anthropic", "claude-opus-4-7", compat={"image_input": "unsupported"}
    )
    set_in(notebook, {"effort": "high"}, {"effort": ""})
    assert resumed(notebook)[0].effort is None


@pytest.mark.parametrize(
    ("said", "model", "effort"),
    [
        ((), "claude-opus-4-7", "high"),
        (("model",), "claude-sonnet-4-7", "high"),
        (("effort", "provider", "base_url"), "claude-opus-4-7", None),
        (("profile",), "claude-sonnet-4-7", None),
    ],
)
def test_the_command_line_counts_more(said: tuple[str, ...], model: str, effort: str | None) -> None:
    notebook = Notebook()
    set_in(notebook, {"model": "claude-opus-4-7", "effort": "high"})
    found, _ = resumed(notebook, *said)
    assert (found.model.model, found.effort) == (model, effort)


def test_what_was_set_for_another_service_does_not_count() -> None:
    notebook = Notebook()
    set_in(notebook, {"model": "x"}, settings=configured("openai", base_url="http://127.0.0.1:1111/v1"))
    there, elsewhere = (
        configured("openai", base_url=url) for url in ("http://127.0.0.1:2222/v1", "https://models.example/v1")
    )
    assert resumed(notebook, settings=there)[0].model.model == "x"
    assert resumed(notebook, settings=elsewhere)[0] == elsewhere
    assert resumed(notebook)[0] == configured()
    # What is set there is all that counts from then on.
    set_in(notebook, {"compaction": "off"}, settings=elsewhere)
    assert resumed(notebook, settings=there)[0] == there


def test_an_output_style_counts_with_every_service_unless_a_profile_is_said() -> None:
    notebook = Notebook()
    history = History(notebook)
    history.user((Text("hello"),))
    kept = KeptOptions(history, configured(), ())
    kept.keep({"model": "claude-opus-4-7"})
    kept.keep_style("concise")
    elsewhere = configured("openai")
    assert resumed(notebook)[0].output_style == "concise"
    assert resumed(notebook, settings=elsewhere)[0] == elsewhere.replace(output_style="concise")
    assert resumed(notebook, "profile")[0].output_style is None


def test_a_model_that_is_gone_is_left_out_and_told() -> None:
    notebook = Notebook()
    set_in(notebook, {"model": "claude-opus-4-7"})
    found, notes = resumed(notebook, broken="claude-opus-4-7")
    assert found == configured()
    assert notes == ["What was set in this session before is left out: `claude-opus-4-7` is gone."]
    with pytest.raises(ConfigError):
        resumed(notebook, "model", broken="claude-sonnet-4-7")


def test_what_means_nothing_to_the_model_is_left_out_and_told() -> None:
    notebook = Notebook()
    set_in(notebook, {"model": "claude-opus-4-7", "effort": "high"}, {"model": "claude-3-haiku-20240307"})
    found, (note,) = resumed(notebook)
    assert (found.model.model, found.effort) == ("claude-3-haiku-20240307", None)
    assert "`effort`" in note


def test_before_anything_is_said_nothing_is_written_down() -> None:
    notebook = Notebook()
    history = History(notebook)
    kept = KeptOptions(history, configured(), ())
    kept.keep({"effort": "low"})
    kept.keep({"model": "claude-opus-4-7"})
    assert notebook.kept == []
    history.user((Text("hello"),))
    kept.write()
    found, _ = resumed(notebook)
    assert (found.model.model, found.effort) == ("claude-opus-4-7", "low")


def test_it_outlives_a_compaction_and_what_clears_the_conversation() -> None:
    notebook = Notebook()
    set_in(notebook, {"effort": "high"})
    History(notebook).replace([])
    assert resumed(notebook)[0].effort == "high"
