"""What a host may change between turns: the model, its thinking, whether it sees, how the conversation is compacted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from trunkline.agents.coder.settings import CoderSettings
from trunkline.base.vocabulary import IMAGE_INPUT
from trunkline.core.faults import ConfigError
from trunkline.core.turns import SHOWN_CHARS
from trunkline.models import abilities
from trunkline.models.providers import ModelSettings

#: Tokens that a model may think when it is only told to.
DEFAULT_THINKING_BUDGET = 10_000
#: What hosts say of compaction. There are two degrees of it elsewhere; here it is on or off.
COMPACTION = {"off": False, "safe": True, "full": True}


def applied(options: Mapping[str, Any], settings: CoderSettings, configured: CoderSettings) -> CoderSettings:
    """The settings as the options change them. An option that is None was not said.

    `configured` are the settings at the start: what a host says of a model's eyes is said of that model alone.

    Raises:
        ConfigError: an option has a value that means nothing, or nothing to this model.
    """
    said = {name: value for name, value in options.items() if value is not None}
    _check(said)
    wanted = settings
    if "model" in said or "image_input" in said:
        compat = configured.model.compat if "model" in said else settings.model.compat
        sight = {"image_input": said["image_input"]} if "image_input" in said else {}
        name = said.get("model", settings.model.model)
        wanted = settings.replace(model=settings.model.replace(model=name, compat={**compat, **sight}))
    _check_abilities(said, wanted.model)
    budget = said.get("thinking_budget")
    if said.get("thinking") == "disabled" or budget == 0:
        wanted = wanted.replace(thinking_budget=None)
    elif "thinking" in said or budget:
        wanted = wanted.replace(thinking_budget=budget or wanted.thinking_budget or DEFAULT_THINKING_BUDGET)
    if "effort" in said:
        wanted = wanted.replace(effort=said["effort"] or None)
    if "compaction" in said:
        wanted = wanted.replace(compaction=COMPACTION[said["compaction"]])
    return wanted


def _check(said: Mapping[str, Any]) -> None:
    """Refuse what means nothing to any model."""
    if "model" in said and not str(said["model"]).strip():
        raise ConfigError("`model` is empty.", hint="Name a model, or leave it out.")
    for name, words in (
        ("thinking", ("enabled", "disabled")),
        ("image_input", IMAGE_INPUT),
        ("compaction", COMPACTION),
    ):
        _check_word(name, said.get(name), words)
    if said.get("thinking_budget", 0) < 0:
        raise ConfigError(f"`thinking_budget` is a number of tokens, 0 for none, not `{said['thinking_budget']}`.")


def _check_abilities(said: Mapping[str, Any], model: ModelSettings) -> None:
    """Refuse what means nothing to this model."""
    can = abilities.of(model)
    thinking = said.get("thinking") != "disabled" and (said.get("thinking") or said.get("thinking_budget"))
    if thinking and not can.thinks:
        raise ConfigError(f"`thinking`: the model `{model.model}` does not show its thinking.")
    if IMAGE_INPUT.get(said.get("image_input", "")) and can.images is False:
        raise ConfigError(f"`image_input`: the model `{model.model}` runs in this process, which shows it no pictures.")
    if said.get("effort"):
        if not can.efforts:
            raise ConfigError(
                f"`effort`: the model `{model.model}` has no known setting for effort.",
                hint="If it can: `supports_effort = true` under `compat` in the configuration.",
            )
        _check_word("effort", said["effort"], can.efforts)


def _check_word(name: str, word: Any, words: Collection[str]) -> None:
    if word is not None and word not in words:
        *most, last = words
        listed = f"{', '.join(most)} or {last}" if most else last
        raise ConfigError(f"`{name}` is {listed}, not `{str(word)[:SHOWN_CHARS]}`.")
