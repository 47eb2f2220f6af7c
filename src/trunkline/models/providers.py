"""Who offers models, what each needs to know, and how to get one. Cheap to import: nothing of the network in here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.models.endpoint import endpoint, is_own_machine

if TYPE_CHECKING:
    from trunkline.models.model import Model

#: The variables that stand for a provider's settings. Of those that need a credential the first is the one.
VARIABLES: dict[str, dict[str, str]] = {
    "anthropic": {"api_key": "ANTHROPIC_API_KEY", "base_url": "ANTHROPIC_BASE_URL"},
    "openai": {"api_key": "OPENAI_API_KEY", "base_url": "OPENAI_BASE_URL"},
    "bedrock": {
        "region": "AWS_REGION",
        "access_key_id": "AWS_ACCESS_KEY_ID",
        "secret_access_key": "AWS_SECRET_ACCESS_KEY",
        "session_token": "AWS_SESSION_TOKEN",
        "profile": "AWS_PROFILE",
    },
    "vertex": {
        "project": "VERTEX_PROJECT_ID",
        "region": "VERTEX_REGION",
        "credentials": "GOOGLE_APPLICATION_CREDENTIALS",
    },
    "local": {},
    "mock": {},
}

#: What is asked where nobody names a model.
DEFAULT_MODELS: dict[str, str] = {
    "anthropic": "claude-sonnet-5-5",
    "openai": "gpt-6.1-sol",
    "bedrock": "anthropic.claude-sonnet-5-5",
    "vertex": "claude-sonnet-5-5",
    "local": "smollm2-135m",
    "mock": "mock",
}


class CompatibleProvider(Value):
    """Somebody who offers models through another provider's interface, and is known by name all the same."""

    provider: Literal["anthropic", "openai"]
    """Whose interface it is."""
    variable: str | None = None
    """Where its key is; None: it wants none."""
    base_url: str | None = None
    """None: on this machine, where its own variable says."""
    model: str | None = None
    """None: whichever it has."""


#: Their keys are looked for in this order. The models are good ones of a middle price, of November 2026; where a maker
#: keeps an alias up to date, it is the alias.
SERVICES: dict[str, CompatibleProvider] = {
    "gemini": CompatibleProvider(
        "openai", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-flash-latest"
    ),
    "deepseek": CompatibleProvider("openai", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1", "deepseek-v4-pro"),
    "mistral": CompatibleProvider("openai", "MISTRAL_API_KEY", "https://api.mistral.ai/v1", "mistral-medium-latest"),
    "openrouter": CompatibleProvider("openai", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", "openrouter/auto"),
    "ollama": CompatibleProvider("openai"),
    "llama-server": CompatibleProvider("openai"),
}

#: What is sent for a key to a server that wants none, but is not on this machine.
KEYLESS = "none-needed"

#: All that `--provider` takes without a configuration file.
NAMES = (*VARIABLES, *SERVICES)

#: Where else a provider's first setting is found: in what other settings point to, or in other variables.
_ELSEWHERE: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # With credentials alone the region is the usual one; without any sign of AWS, the region is what is missed first.
    "bedrock": (
        ("profile", "base_url", "access_key_id", "api_key"),
        ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"),
    ),
    "vertex": (("credentials",), ("VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")),
}


class ModelSettings(Value):
    """Which model, and how it is reached. Keys and tokens are not part of the `repr`."""

    provider: str
    model: str | None = None
    api_key: str | None = None
    base_url: str | None = None
    max_tokens: int | None = None
    """The longest answer; None: as long as the model can, or the provider's own limit."""
    compat: Mapping[str, Any] = {}
    """How the provider differs from the usual; see `models.encoding`."""
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None
    profile: str | None = None
    project: str | None = None
    credentials: str | None = None
    """A file of them."""
    key_name: str | None = None
    """Where people find the key if it is not in the provider's variable."""
    base_url_name: str | None = None
    """Where people say the address if not with the option for it."""

    def __repr__(self) -> str:
        return f"ModelSettings(provider={self.provider!r}, model={self.model!r}, base_url={self.base_url!r})"


def check(settings: ModelSettings) -> None:
    """Find out, without asking anybody, what cannot work.

    Raises:
        ConfigError: a provider that does not exist, a credential that is missing, an address that is none.
    """
    if settings.provider not in VARIABLES:
        raise ConfigError(f"There is no provider `{settings.provider}`.", hint=f"Use one of {_listed(VARIABLES)}.")
    if settings.provider in ("anthropic", "openai"):
        _check_key(settings)
    elif settings.provider in _ELSEWHERE:
        option, variable = next(iter(VARIABLES[settings.provider].items()))
        others, variables = _ELSEWHERE[settings.provider]
        found = any(getattr(settings, name) for name in (option, *others)) or any(map(os.environ.get, variables))
        if not found:
            raise ConfigError(f"{variable} not set", hint=f"(nor `{option}` in the configuration file)")


def make(settings: ModelSettings) -> Model:
    """The model, checked and not yet connected. Without a name in the settings it is the provider's default.

    Raises:
        ConfigError: it cannot work as configured.
    """
    check(settings)
    if settings.model is None:
        settings = settings.replace(model=DEFAULT_MODELS[settings.provider])
    if settings.api_key is not None:
        settings = settings.replace(api_key=settings.api_key.strip())
    return _made(settings)


def _made(settings: ModelSettings) -> Model:
    match settings.provider:
        case "anthropic":
            from trunkline.models.anthropic import AnthropicModel

            return AnthropicModel(settings)
        case "openai":
            from trunkline.models.openai import OpenAIModel

            return OpenAIModel(settings)
        case "bedrock":
            from trunkline.models.bedrock import BedrockModel

            return BedrockModel(settings)
        case "vertex":
            from trunkline.models.vertex import VertexModel

            return VertexModel(settings)
        case "local":
            from trunkline.models.local import LocalModel

            return LocalModel(settings)
    from trunkline.models.mock import MockModel

    return MockModel(settings)


def _check_key(settings: ModelSettings) -> None:
    variable = settings.key_name or VARIABLES[settings.provider]["api_key"]
    if settings.base_url is not None:
        endpoint(settings.base_url, "/")
    key = (settings.api_key or "").strip()
    if not key and not (settings.base_url is not None and is_own_machine(settings.base_url)):
        hint = None if settings.key_name else "(nor `api_key` in the configuration file)"
        raise ConfigError(f"{variable} not set", hint=hint)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            f"{variable} does not hold a key: it contains spaces, line breaks or letters that no key has."
        )


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(f"`{name}`" for name in names)
