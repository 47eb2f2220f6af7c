"""Who offers models, what each needs to know, and how to get one. Cheap to import: nothing of the network in here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, MissingKey
from trunkline.models.endpoint import endpoint, is_own_machine

if TYPE_CHECKING:
    from trunkline.models.model import Model


class ModelProvider(Value):
    """Somebody who offers models, or something that runs them. What is known of it without importing it."""

    made_by: str
    """The module in this package, and the class in it that makes requests: `MODULE.CLASS`."""
    model: str
    """What is asked where nobody names a model."""
    variables: Mapping[str, str] = {}
    """The variables that stand for its settings. Of those that need a credential the first is the one."""
    speaks: Literal["anthropic", "openai", "local"] | None = None
    """Whose format it speaks, as the module is called that says which differences (`compat`) there are."""
    told_by: tuple[tuple[str, ...], ...] = ()
    """Variables that tell that it is meant where nobody names a provider: all of one of these groups."""
    elsewhere: tuple[str, ...] = ()
    """Other settings that point to what the first one says."""
    elsewhere_variables: tuple[str, ...] = ()
    """Other variables that do."""
    modes: Mapping[str, str] = {}
    """What makes requests in its place where `compat.openai_api_mode` says so."""
    families: tuple[str, ...] = ()
    """How the names of its own models begin, among those whose price is known."""
    extra: str | None = None
    """Which extra of this package brings what it imports, if it needs one."""

    @property
    def has_key(self) -> bool:
        """Whether it is opened by a key alone."""
        return "api_key" in self.variables


#: The interfaces of OpenAI's models, by their names in `compat.openai_api_mode`.
_OPENAI_MODES = {
    "responses": "openai_responses.ResponsesModel",
    "chat_completions": "openai.OpenAIModel",
    "chat": "openai.OpenAIModel",
}

#: Those that have an interface of their own. When nobody names one, their variables are looked for in this order.
PROVIDERS: dict[str, ModelProvider] = {
    "anthropic": ModelProvider(
        "anthropic.AnthropicModel",
        "claude-sonnet-5-5",
        {"api_key": "ANTHROPIC_API_KEY", "base_url": "ANTHROPIC_BASE_URL"},
        speaks="anthropic",
        told_by=(("ANTHROPIC_API_KEY",),),
        families=("claude",),
    ),
    "openai": ModelProvider(
        "openai.OpenAIModel",
        "gpt-6.1-sol",
        {"api_key": "OPENAI_API_KEY", "base_url": "OPENAI_BASE_URL"},
        speaks="openai",
        told_by=(("OPENAI_API_KEY",),),
        modes=_OPENAI_MODES,
        families=("gpt", "o3", "o4"),
    ),
    "bedrock": ModelProvider(
        "bedrock.BedrockModel",
        "anthropic.claude-sonnet-5-5",
        {
            "region": "AWS_REGION",
            "access_key_id": "AWS_ACCESS_KEY_ID",
            "secret_access_key": "AWS_SECRET_ACCESS_KEY",
            "session_token": "AWS_SESSION_TOKEN",
            "profile": "AWS_PROFILE",
        },
        speaks="anthropic",
        told_by=(("AWS_REGION", "AWS_ACCESS_KEY_ID"), ("AWS_REGION", "AWS_PROFILE")),
        # With credentials alone the region is the usual one; without any sign of AWS, the region is what is missed
        # first.
        elsewhere=("profile", "base_url", "access_key_id", "api_key"),
        elsewhere_variables=("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK"),
        families=("claude",),
        extra="bedrock",
    ),
    "vertex": ModelProvider(
        "vertex.VertexModel",
        "claude-sonnet-5-5",
        {
            "project": "VERTEX_PROJECT_ID",
            "region": "VERTEX_REGION",
            "credentials": "GOOGLE_APPLICATION_CREDENTIALS",
        },
        speaks="anthropic",
        told_by=(("VERTEX_PROJECT_ID",),),
        elsewhere=("credentials",),
        elsewhere_variables=("VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"),
        families=("claude",),
        extra="vertex",
    ),
    "local": ModelProvider("local.LocalModel", "smollm2-135m", speaks="local", extra="local"),
    "mock": ModelProvider("mock.MockModel", "mock"),
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
NAMES = (*PROVIDERS, *SERVICES)


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
    provider = PROVIDERS.get(settings.provider)
    if provider is None:
        raise ConfigError(f"There is no provider `{settings.provider}`.", hint=f"Use one of {_listed(PROVIDERS)}.")
    if provider.has_key:
        _check_key(settings)
    elif provider.variables:
        option, variable = next(iter(provider.variables.items()))
        found = any(getattr(settings, name) for name in (option, *provider.elsewhere))
        if not found and not any(map(os.environ.get, provider.elsewhere_variables)):
            raise MissingKey(f"{variable} not set", hint=f"(nor `{option}` in the configuration file)")


def make(settings: ModelSettings) -> Model:
    """The model, checked and not yet connected. Without a name in the settings it is the provider's default.

    Raises:
        ConfigError: it cannot work as configured.
    """
    check(settings)
    if settings.model is None:
        settings = settings.replace(model=PROVIDERS[settings.provider].model)
    if settings.api_key is not None:
        settings = settings.replace(api_key=settings.api_key.strip())
    module, _, name = _maker(settings).partition(".")
    made: Model = getattr(import_module(f"trunkline.models.{module}"), name)(settings)
    return made


def _maker(settings: ModelSettings) -> str:
    """See `ModelProvider.made_by`."""
    provider = PROVIDERS[settings.provider]
    mode = settings.compat.get("openai_api_mode") if provider.modes else None
    if mode is None:
        return provider.made_by
    if not isinstance(mode, str) or mode not in provider.modes:
        raise ConfigError(f"`compat.openai_api_mode` must be one of {_listed(provider.modes)}.")
    return provider.modes[mode]


def _check_key(settings: ModelSettings) -> None:
    variable = settings.key_name or PROVIDERS[settings.provider].variables["api_key"]
    if settings.base_url is not None:
        endpoint(settings.base_url, "/")
    key = (settings.api_key or "").strip()
    if not key and not (settings.base_url is not None and is_own_machine(settings.base_url)):
        hint = None if settings.key_name else "(nor `api_key` in the configuration file)"
        raise MissingKey(f"{variable} not set", hint=hint)
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            f"{variable} does not hold a key: it contains spaces, line breaks or letters that no key has."
        )


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(f"`{name}`" for name in names)
