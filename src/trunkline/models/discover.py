"""What to talk to when nobody said: a key in the environment, else a server on this machine, else a pulled model.

    found = await discover(os.environ)
    found.why       # "`ANTHROPIC_API_KEY` is set"

A key decides before anything is asked. Servers are asked all at once, and get a second. What was chosen, and why, is
for the user to see: a key for another purpose may have been found.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from trunkline.base.extras import adding
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.models import catalog
from trunkline.models.catalog_entry import LLAMA
from trunkline.models.discover_servers import LLAMA_SERVER_URL, find_servers, ollama_url, server_url
from trunkline.models.endpoint import is_own_machine
from trunkline.models.installed import missing_extra
from trunkline.models.providers import KEYLESS, PROVIDERS, SERVICES, CompatibleProvider, ModelSettings

#: The model to pull for those who have nothing.
DEMO_MODEL = "smollm2-135m"


class ModelChoice(Value):
    """What to use, named in full, and the reason in a few words for people."""

    settings: ModelSettings
    why: str
    service: str | None = None
    """What the provider is called, if it only speaks like `settings.provider`."""

    @property
    def told(self) -> str:
        """What was chosen and why, for people."""
        return f"The model is `{self.settings.model}`: {self.why}."

    @property
    def options(self) -> dict[str, Any]:
        """What an agent is to be told of it."""
        if self.service is not None:
            # Who knows its name knows the rest.
            return {"provider": self.service, "model": self.settings.model}
        return {key: getattr(self.settings, key) for key in ("provider", "model", "base_url", "api_key")}


#: The variables with a key, and whom the key opens, in the order in which they are looked for.
KEYS: dict[str, str] = {
    **{provider.variables["api_key"]: name for name, provider in PROVIDERS.items() if provider.has_key},
    **{service.variable: name for name, service in SERVICES.items() if service.variable},
}

#: Any of these says that somebody uses Amazon's cloud from here.
AWS_VARIABLES = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE")


def usual_model(provider: str) -> str | None:
    """A good model that this provider sells now, by its name in any case; None if nobody here knows the provider."""
    name = provider.lower()
    if name in SERVICES:
        return SERVICES[name].model
    return PROVIDERS[name].model if name in PROVIDERS else None


async def discover(
    environ: Mapping[str, str],
    *,
    provider: str | None = None,
    base_url: str | None = None,
    llama_server_url: str = LLAMA_SERVER_URL,
) -> ModelChoice:
    """The model to use. With `provider`, one of the servers on this machine by its name, only that one's.

    Args:
        base_url: where that one is, if it was said.

    Raises:
        ConfigError: there is none; the text lists the ways to have one, and what was almost found.
    """
    notes: list[str] = []
    if provider is not None:
        url = server_url(provider, environ) if base_url is None else base_url.rstrip("/").removesuffix("/v1")
        return await _served_by(provider, url, notes)
    found = _in_environment(environ, notes)
    if found is None:
        ollama = ollama_url(environ.get("OLLAMA_HOST", ""))
        found = await _on_this_machine(ollama, llama_server_url, notes) or _pulled(notes)
    if found is None:
        raise ConfigError(" ".join(["No model is configured, and none was found.", *notes]), hint=_ways())
    return found


def _ways() -> str:
    """The ways to have a model, and of the last one all steps in their order."""
    engine = missing_extra(LLAMA)
    first = "" if engine is None else f"First the engine that runs it. {adding(engine)} Then the model. "
    return (
        "Set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, or start Ollama or `llama-server` on this machine, "
        f"or try the small demo model. {first}Get it with `trunkline models pull {DEMO_MODEL}`."
    )


def _in_environment(environ: Mapping[str, str], notes: list[str]) -> ModelChoice | None:
    for variable, name in KEYS.items():
        if environ.get(variable):
            service = SERVICES.get(name)
            settings = _settings(name, environ) if service is None else _opened_by(variable, service, environ)
            return ModelChoice(settings, f"`{variable}` is set", name if service else None)
    base_url = environ.get("OPENAI_BASE_URL", "")
    if is_own_machine(base_url):
        return ModelChoice(_settings("openai", environ), "`OPENAI_BASE_URL` is set")
    for variable in AWS_VARIABLES:
        if environ.get(variable) and _installed("botocore", "bedrock", variable, notes):
            return ModelChoice(_settings("bedrock", environ), _of_a_cloud(variable))
    variable = "VERTEX_PROJECT_ID"
    if environ.get(variable) and _installed("google.auth", "vertex", variable, notes):
        return ModelChoice(_settings("vertex", environ), _of_a_cloud(variable))
    return None


def _of_a_cloud(variable: str) -> str:
    """Such variables are often set for something else, so it is said how to go another way."""
    return f"`{variable}` is set, and servers on this machine were not looked for; `--provider` chooses another one"


def _opened_by(variable: str, service: CompatibleProvider, environ: Mapping[str, str]) -> ModelSettings:
    return ModelSettings(
        service.provider, service.model, api_key=environ[variable], base_url=service.base_url, key_name=variable
    )


def _settings(provider: str, environ: Mapping[str, str]) -> ModelSettings:
    """All that the environment says about a provider."""
    known = PROVIDERS[provider]
    said: dict[str, Any] = {option: environ[name] for option, name in known.variables.items() if environ.get(name)}
    return ModelSettings(provider, known.model, **said)


def _installed(module: str, extra: str, variable: str, notes: list[str]) -> bool:
    """Whether a package is there; if not, that is noted once."""
    try:
        there = find_spec(module) is not None
    except ModuleNotFoundError:
        there = False
    if not there and not any(extra in note for note in notes):
        notes.append(f"`{variable}` is set, but its support is not installed. {adding(extra)}")
    return there


async def _served_by(provider: str, url: str, notes: list[str]) -> ModelChoice:
    """What a server has that somebody asked for by name."""
    found = await _on_this_machine(*((url, "") if provider == "ollama" else ("", url)), notes)
    if found is not None:
        return found
    start = "`ollama serve` starts it" if provider == "ollama" else "`llama-server -m FILE` starts it"
    raise ConfigError(" ".join(notes) or f"No {provider} answers at `{url}`.", hint=None if notes else f"{start}.")


async def _on_this_machine(ollama: str, llama_server: str, notes: list[str]) -> ModelChoice | None:
    for server in await find_servers(ollama, llama_server):
        where = f"{server.name} answers at `{server.url}`"
        if server.model is not None:
            base_url = f"{server.url}/v1"
            # These servers ask for no key. Elsewhere than on this machine we are careful not to go without one.
            key = None if is_own_machine(base_url) else KEYLESS
            settings = ModelSettings("openai", server.model, base_url=base_url, api_key=key)
            # A llama-server may call its model by the path of the file.
            shown = server.model.rpartition("/")[2] if server.model.startswith("/") else server.model
            return ModelChoice(settings, f"{where} with model `{shown}`")
        notes.append(f"{where}, but has no model: `ollama pull qwen3` gets one.")
    return None


def _pulled(notes: list[str]) -> ModelChoice | None:
    # The demo model comes last: who has pulled another one means to use it.
    for entry in sorted(catalog.entries(), key=lambda entry: entry.name == DEMO_MODEL):
        if entry.kind == "llm" and catalog.path(entry) is not None:
            why = [
                "no key is set, no Ollama and no `llama-server` with a model was found, and this one was pulled before"
            ]
            if entry.name == DEMO_MODEL:
                why.append("It is a small demo model, to see how things work, not to work with")
            why += [note.removesuffix(".") for note in notes]
            return ModelChoice(ModelSettings("local", entry.name), ". ".join(why))
    return None
