"""What a host may change between turns: the model, its thinking, how the conversation is compacted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trunkline.agents.coder.compaction import Compaction
from trunkline.agents.coder.mind import Mind
from trunkline.agents.coder.settings import CoderSettings
from trunkline.core.faults import ConfigError
from trunkline.models.model import Model
from trunkline.models.providers import ModelSettings

EFFORTS = ("low", "medium", "high")
#: Tokens that a model may think when it is only told to.
DEFAULT_THINKING_BUDGET = 10_000


def applied(
    options: Mapping[str, Any],
    settings: CoderSettings,
    mind: Mind,
    compaction: Compaction,
    make_model: Callable[[ModelSettings], Model],
) -> CoderSettings:
    """Change what the options say; gives the settings as they are then.

    Raises:
        ConfigError: an option has a value that cannot be. Nothing was changed.
    """
    thinking, effort, model = options.get("thinking"), options.get("effort"), options.get("model")
    if thinking not in (None, "enabled", "disabled"):
        raise ConfigError(f"`thinking` is `enabled` or `disabled`, not `{thinking}`.")
    if effort not in (None, "", *EFFORTS):
        raise ConfigError(f"`effort` is one of {', '.join(EFFORTS)}, not `{effort}`.")
    if model:
        settings = settings.replace(model=settings.model.replace(model=model))
        mind.model = make_model(settings.model)
    budget = options.get("thinking_budget")
    if thinking == "disabled":
        mind.thinking_budget = None
    elif thinking == "enabled" or budget:
        mind.thinking_budget = budget or mind.thinking_budget or DEFAULT_THINKING_BUDGET
    if effort is not None:
        mind.effort = effort or None
    if options.get("compaction") is not None:
        compaction.enabled = options["compaction"] != "off"
    return settings
