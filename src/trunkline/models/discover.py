"""What to talk to when nobody said: a key in the environment, else a server on this machine, else a pulled model.

    found = await discover(os.environ)
    found.why       # "`ANTHROPIC_API_KEY` is set"

A key decides before anything is asked. Servers are asked all at once, and get a second. What was chosen, and why, is
for the user to see: a key for another purpose may have been found.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal

from trunkline.base.extras import install_hint
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.models import catalog
from trunkline.models.discover_servers import LLAMA_SERVER_URL, find_servers, ollama_url
from trunkline.models.endpoint import is_own_machine
from trunkline.models.providers import DEFAULT_MODELS, VARIABLES, ModelSettings

#: The model to pull for those who have nothing.
DEMO_MODEL = "smollm2-135m"


class Found(Value):
    """What to use, named in full, and the reason in a few words for people."""

    settings: ModelSettings
    why: str

    @property
    def told(self) -> str:
        """What was chosen and why, for people."""
        return f"The model is `{self.settings.model}`: {self.why}."

    @property
    def options(self) -> dict[str, Any]:
        """What an agent is to be told of it."""
        return {key: getattr(self.settings, key) for key in ("provider", "model", "base_url", "api_key")}


class _Key(Value):
    """A variable with a key, and what the key opens."""

    variable: str
    provider: Literal["anthropic", "openai"]
    model: str
    base_url: str | None = None
    """None: the provider's own."""


#: In this order. The models are good ones of a middle price, of November 2026; where a maker keeps an alias up to date,
#: it is the alias.
KEYS = (
    _Key("ANTHROPIC_API_KEY", "anthropic", DEFAULT_MODELS["anthropic"]),
    _Key("OPENAI_API_KEY", "openai", DEFAULT_MODELS["openai"]),
    _Key("GEMINI_API_KEY", "openai", "gemini-flash-latest", "https://generativelanguage.googleapis.com/v1beta/openai"),
    _Key("DEEPSEEK_API_KEY", "openai", "deepseek-v4-pro", "https://api.deepseek.com/v1"),
    _Key("MISTRAL_API_KEY", "openai", "mistral-medium-latest", "https://api.mistral.ai/v1"),
    _Key("OPENROUTER_API_KEY", "openai", "openrouter/auto", "https://openrouter.ai/api/v1"),
)

#: Any of these says that somebody uses Amazon's cloud from here.
AWS_VARIABLES = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE")


async def discover(environ: Mapping[str, str], *, llama_server_url: str = LLAMA_SERVER_URL) -> Found:
    """The model to use.

    Raises:
        ConfigError: there is none; the text lists the ways to have one, and what was almost found.
    """
    notes: list[str] = []
    found = _in_environment(environ, notes)
    if found is None:
        ollama = ollama_url(environ.get("OLLAMA_HOST", ""))
        found = await _on_this_machine(ollama, llama_server_url, notes) or _pulled(notes)
    if found is None:
        raise ConfigError(" ".join(["No model is configured, and none was found.", *notes]), hint=_WAYS)
    return found


_WAYS = (
    "Set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, or start Ollama or `llama-server` on this machine, "
    f"or try the small demo model: `trunkline models pull {DEMO_MODEL}`."
)


def _in_environment(environ: Mapping[str, str], notes: list[str]) -> Found | None:
    for key in KEYS:
        if environ.get(key.variable):
            return Found(_opened_by(key, environ), f"`{key.variable}` is set")
    base_url = environ.get("OPENAI_BASE_URL", "")
    if is_own_machine(base_url):
        return Found(_settings("openai", environ), "`OPENAI_BASE_URL` is set")
    for variable in AWS_VARIABLES:
        if environ.get(variable) and _installed("botocore", "bedrock", variable, notes):
            return Found(_settings("bedrock", environ), _of_a_cloud(variable))
    variable = "VERTEX_PROJECT_ID"
    if environ.get(variable) and _installed("google.auth", "vertex", variable, notes):
        return Found(_settings("vertex", environ), _of_a_cloud(variable))
    return None


def _of_a_cloud(variable: str) -> str:
    """Such variables are often set for something else, so it is said how to go another way."""
    return f"`{variable}` is set, and servers on this machine were not looked for; `--provider` chooses another one"


def _opened_by(key: _Key, environ: Mapping[str, str]) -> ModelSettings:
    if key.base_url is None:
        return _settings(key.provider, environ).replace(model=key.model)
    return ModelSettings(key.provider, key.model, api_key=environ[key.variable], base_url=key.base_url)


def _settings(provider: str, environ: Mapping[str, str]) -> ModelSettings:
    """All that the environment says about a provider."""
    said: dict[str, Any] = {option: environ[name] for option, name in VARIABLES[provider].items() if environ.get(name)}
    return ModelSettings(provider, DEFAULT_MODELS[provider], **said)


def _installed(module: str, extra: str, variable: str, notes: list[str]) -> bool:
    """Whether a package is there; if not, that is noted once."""
    try:
        there = find_spec(module) is not None
    except ModuleNotFoundError:
        there = False
    if not there and not any(extra in note for note in notes):
        notes.append(f"`{variable}` is set, but its support is not installed: `{install_hint(extra)}`.")
    return there


async def _on_this_machine(ollama: str, llama_server: str, notes: list[str]) -> Found | None:
    for server in await find_servers(ollama, llama_server):
        where = f"{server.name} answers at `{server.url}`"
        if server.model is not None:
            base_url = f"{server.url}/v1"
            # These servers ask for no key. Elsewhere than on this machine we are careful not to go without one.
            key = None if is_own_machine(base_url) else "none-needed"
            settings = ModelSettings("openai", server.model, base_url=base_url, api_key=key)
            # A llama-server may call its model by the path of the file.
            shown = server.model.rpartition("/")[2] if server.model.startswith("/") else server.model
            return Found(settings, f"{where} with model `{shown}`")
        notes.append(f"{where}, but has no model: `ollama pull qwen3` gets one.")
    return None


def _pulled(notes: list[str]) -> Found | None:
    for entry in catalog.entries():
        if entry.kind == "llm" and catalog.installed(entry.name) is not None:
            why = [
                "no key is set, no Ollama and no `llama-server` with a model was found, and this one was pulled before"
            ]
            if entry.name == DEMO_MODEL:
                why.append("It is a small demo model, to see how things work, not to work with")
            why += [note.removesuffix(".") for note in notes]
            return Found(ModelSettings("local", entry.name), ". ".join(why))
    return None
