"""What the modules of models know about settings. They are imported when a file speaks of it, not at every start."""

from __future__ import annotations

from importlib import import_module

from trunkline.base.config import Config
from trunkline.base.environ_secrets import FEWEST_CHARS, url_secrets
from trunkline.core.faults import ConfigError
from trunkline.models.prices import Price
from trunkline.models.providers import PROVIDERS, ModelSettings


def longest_answer(kind: str, model: str) -> int:
    """What holds where nobody has set it."""
    if kind == "local":
        from trunkline.models.local import DEFAULT_MAX_TOKENS

        return DEFAULT_MAX_TOKENS
    from trunkline.models import limits

    return limits.max_tokens(model)


def compat_keys(kind: str) -> frozenset[str]:
    """What of `compat` has an effect."""
    spoken = PROVIDERS[kind].speaks
    if spoken is None:
        return frozenset()
    keys: frozenset[str] = import_module(f"trunkline.models.{spoken}").COMPAT_KEYS
    return keys


def prices(config: Config) -> dict[str, Price]:
    """What the user pays.

    Raises:
        ConfigError: a price is not complete.
    """
    found = {}
    for model, table in config.get("prices", default={}).items():
        if not {"input", "output"} <= table.keys():
            error = config.error("must have `input` and `output`, in dollars per million tokens", "prices", model)
            raise ConfigError(f"{error}.")
        price = table["input"]
        found[model] = Price(price, table["output"], table.get("cache_read", price), table.get("cache_write", price))
    return found


def secrets_of(model: ModelSettings) -> set[str]:
    """The secrets of an account: those that a file may have given, or a variable whose name does not tell; and what is
    secret in the address."""
    found = (model.api_key, model.secret_access_key, model.session_token, *url_secrets(model.base_url or ""))
    return {secret for secret in found if secret and len(secret) >= FEWEST_CHARS}


def unheeded_effort(model: ModelSettings, effort: str | None) -> tuple[str, ...]:
    """A warning if the model is not told how hard to try although that is asked for."""
    from trunkline.models import abilities

    if effort is None or abilities.of(model).efforts:
        return ()
    problem = f"`effort` is not sent: the model `{model.model}` has no known setting for effort."
    return (f"{problem} If it can: `supports_effort = true` under `compat` in the configuration.",)
