"""What decides: a model, any agent, or a list of replies.

    {"kind": "scripted", "replies": [...]}      in order, the last repeats; the place in the list survives restarts
    {"kind": "openai", "baseUrl", "model", "apiKey"}      also `anthropic`, `gemini`, `deepseek` ...
    {"kind": "local", "model"}                            held to valid actions, unless `guided` is false
    {"kind": "agent", "name": "agentproc:claude-code"}    any agent; it may use no tools but those in `allow`

`allow` names the tools that an agent may use, and `keep` keeps each prompt and its answer as a session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from trunkline.agents.turn_stream import TurnStream
from trunkline.base import jsontext, paths
from trunkline.base.environ_secrets import environment_secrets
from trunkline.base.redact import Redactor
from trunkline.core.approvals import unknown_tool
from trunkline.core.events import TextDelta
from trunkline.core.faults import ConfigError, NoModel, ProviderError
from trunkline.core.usage import Usage
from trunkline.models.providers import NAMES, SERVICES, CompatibleProvider
from trunkline.runner import config_parts
from trunkline.runner.brain import Answerer, Answering, Brain, Keeping, LonelyBrain
from trunkline.runner.config import LLM_PROVIDERS, RunnerConfig
from trunkline.runner.finishing import on_disk
from trunkline.runner.prompting import DecisionPrompt
from trunkline.runner.state import RunnerMemory
from trunkline.store import names
from trunkline.store.files import FileStore

if TYPE_CHECKING:
    from trunkline.models.model import Model

#: An agent's own window is not known; most take this many tokens.
AGENT_WINDOW = 128_000

KINDS = ("scripted", "agent", "litellm", *NAMES)

#: Makes the brain that an agent is; what the configuration says of it is given as well.
WithAgent = Callable[[RunnerConfig, Mapping[str, Any]], Brain]


def make(
    config: RunnerConfig,
    general: Mapping[str, Any],
    state: RunnerMemory,
    home: str,
    with_agent: WithAgent | None = None,
) -> Brain:
    """The brain of a configuration; of one without, what the agent's general data on the network says.

    Args:
        with_agent: who knows agents by their names: the registry, if left out.

    Raises:
        ConfigError: it cannot work as configured.
    """
    given = config.brain if config.brain is not None else _of_general(config, general)
    where = "llm" if config.brain is None else "brain"
    seconds, keeping = config.timeout_seconds, _keeping(given, config, home)
    kind = given.get("kind")
    match kind:
        case "scripted":
            answering, window, close = _replying(_replies(given), state), None, None
        case "agent" if with_agent is not None:
            return with_agent(config, given)
        case "agent":
            return _with_agent(given, config, home, keeping)
        case str() if kind in KINDS:
            guided = kind == "local" and given.get("guided") is not False
            model = _model(kind, given, where, {"force_tool": True} if guided else {})
            close = model.close
            answering, window = (
                (_guiding(model), None) if guided else (_asking(model, config.max_tokens), model.context_window)
            )
        case _:
            shown = kind if isinstance(kind, str) else "nothing"
            raise ConfigError(
                f"`brain.kind` is `{shown[:40]}`.", hint=f"Use one of {', '.join(f'`{each}`' for each in KINDS)}."
            )
    return LonelyBrain(partial(Answerer, answering), seconds=seconds, window=window, keeping=keeping, close=close)


# A list of replies


def _replying(replies: Sequence[str], state: RunnerMemory) -> Answering:
    # Other replies are another script, which begins at its beginning.
    name = f"scripted:{sha256(jsontext.dumps(list(replies))).hexdigest()}"

    async def reply(prompt: DecisionPrompt, tell: TurnStream) -> Usage | None:
        place = await on_disk(lambda: state.next_number(name))
        await tell.say(TextDelta(replies[min(place, len(replies) - 1)]))
        return None

    return reply


def _replies(given: Mapping[str, Any]) -> list[str]:
    replies = given.get("replies")
    if not isinstance(replies, list) or not replies:
        raise ConfigError("`brain.replies` must be an array with at least one reply.")
    # A decision may be written as it is, instead of as a text of it.
    return [each if isinstance(each, str) else jsontext.dumps(each).decode() for each in replies]


# A model


def _asking(model: Model, max_tokens: int | None) -> Answering:
    """Asks a model, without tools and without a history."""

    async def ask(prompt: DecisionPrompt, tell: TurnStream) -> Usage | None:
        from trunkline.models.asking import asked
        from trunkline.models.messages import Message, Text
        from trunkline.models.model import Answer, Request, Retrying, TextChunk

        message = Message("user", (Text(prompt.user),))
        request = Request([message], system=prompt.system, max_tokens=max_tokens)
        said = False
        async with aclosing(asked(model, request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextChunk(text=text):
                        said = said or bool(text)
                        await tell.say(TextDelta(text))
                    case Retrying(reason=reason):
                        raise ProviderError(reason, retryable=True)
                    case Answer(content=content, usage=usage):
                        whole = "".join(block.text for block in content if isinstance(block, Text))
                        if whole and not said:
                            await tell.say(TextDelta(whole))
                        return usage
        return None

    return ask


def _guiding(model: Model) -> Answering:
    """Asks a small model in this process, whose answer is held to valid actions."""

    async def ask(prompt: DecisionPrompt, tell: TurnStream) -> Usage | None:
        from trunkline.runner import guided

        text, usage = await guided.answer(model, prompt)
        await tell.say(TextDelta(text))
        return usage

    return ask


def _model(kind: str, given: Mapping[str, Any], where: str, compat: Mapping[str, Any]) -> Model:
    from trunkline.models.discover_servers import server_url
    from trunkline.models.providers import PROVIDERS, ModelSettings
    from trunkline.models.providers import make as make_model

    service = SERVICES.get(kind) or CompatibleProvider("openai")
    provider = kind if kind in PROVIDERS else service.provider
    base_url = _text(given, "baseUrl")
    # A key of the environment belongs to the provider's own address.
    variable = (
        "" if base_url else PROVIDERS[provider].variables.get("api_key", "") if kind in PROVIDERS else service.variable
    )
    model = _text(given, "model") or service.model
    if kind == "litellm" and not base_url:
        raise ConfigError("LiteLLM base URL missing.", hint=f"Set `{where}.baseUrl`.")
    if kind in SERVICES:
        base_url = base_url or service.base_url or f"{server_url(kind, os.environ)}/v1"
        if model is None:
            raise ConfigError(f"`{kind}` has no usual model.", hint=f"Set `{where}.model`.")
    own_key, found_key = _text(given, "apiKey"), os.environ.get(variable or "")
    return make_model(
        ModelSettings(
            provider,
            model=model,
            api_key=own_key or found_key or None,
            base_url=base_url or None,
            region=_text(given, "region") or None,
            project=_text(given, "project") or None,
            profile=_text(given, "profile") or None,
            compat={**compat, **_options(given)},
            key_name=f"{where}.apiKey" if own_key or not found_key else variable,
            base_url_name=f"{where}.baseUrl",
        )
    )


def _of_general(config: RunnerConfig, general: Mapping[str, Any]) -> dict[str, Any]:
    """The provider and the model that the agent's owner chose on the network.

    What the network says never is where the key goes: addresses are the configuration's own, or the makers' own, and a
    key that shows whose it is goes to nobody else.

    Raises:
        ConfigError: nobody knows the provider, the address is missing, or the key is another maker's.
    """
    kind = str(config.llm_provider or general.get("llmProvider") or "OPENAI").lower()
    if kind not in LLM_PROVIDERS:
        raise ConfigError(
            f"The network says that the agent's provider is `{kind[:40]}`, and `llm.apiKey` is not a key for it.",
            hint=f"Set `llm.provider` to what the key is for ({', '.join(LLM_PROVIDERS)}), or configure a `brain`.",
        )
    base_url = config.llm_base_url
    if kind == "litellm" and not base_url:
        raise ConfigError(
            "LiteLLM base URL missing.",
            hint="Set `llm.baseUrl`. The one that the network names is not used: your key would go there.",
        )
    if not base_url and (whose := _maker(config.llm_api_key or "", config.llm_provider)) not in (kind, None):
        raise ConfigError(
            f"`llm.apiKey` is a key of `{whose}` by its looks, and the network says `{kind}`.",
            hint="Set `llm.provider` to what the key is for, or correct the agent's provider on the network.",
        )
    return {"kind": kind, "model": general.get("llmModel"), "apiKey": config.llm_api_key, "baseUrl": base_url}


#: How makers' keys begin, the longer ones first. Others give out keys with the last one, too.
_KEYS = (("sk-ant-", "anthropic"), ("sk-or-", "openrouter"), ("AIza", "gemini"), ("sk-", "openai"))
_SHARED = _KEYS[-1][1]


def _maker(key: str, named: str | None) -> str | None:
    """Whose key it is, if that can be seen; of a beginning that several have, whoever the configuration names."""
    maker = next((maker for beginning, maker in _KEYS if key.strip().startswith(beginning)), None)
    return named if named is not None and maker == _SHARED and named in SERVICES else maker


# Any agent


def _with_agent(given: Mapping[str, Any], config: RunnerConfig, home: str, keeping: Keeping | None) -> Brain:
    from trunkline.agents import registry

    name, options, allow = _text(given, "name"), _options(given), _allowed(given)
    if not name:
        raise ConfigError("`brain.name` is missing.", hint="`trunkline agent --help` lists the agents.")
    workspace = os.path.join(home, "runner", "workspaces", names.file_name(config.agent_id))
    try:
        paths.ensure_dir(workspace)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"The agent's workspace `{workspace}` cannot be made: {reason}.") from None
    options = {**options, "workspace": workspace}
    try:
        agent = registry.make(name, options)
    except NoModel as error:
        hint = "Name a provider in `brain.options.provider`, or set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`."
        raise ConfigError(error.message, hint=hint) from None
    return LonelyBrain(
        lambda prompt: agent,
        seconds=config.timeout_seconds,
        window=AGENT_WINDOW,
        workspace=workspace,
        options=options,
        allow=allow,
        keeping=keeping,
    )


def _keeping(given: Mapping[str, Any], config: RunnerConfig, home: str) -> Keeping | None:
    keep = given.get("keep")
    if keep is not None and not isinstance(keep, bool):
        raise ConfigError("`brain.keep` must be true or false.")
    secrets = Redactor([*config.secrets(), *environment_secrets(os.environ)])
    return Keeping(FileStore(os.path.join(home, "sessions")), secrets) if keep else None


def _text(given: Mapping[str, Any], name: str) -> str:
    return config_parts.text(given, name, "brain.")


def _options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    options = given.get("options")
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError("`brain.options` must be an object.")
    return options or {}


def _allowed(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The tools that an agent may use: those that the configuration names, and no others."""
    allow = given.get("allow")
    if allow is None:
        return ()
    if not isinstance(allow, list) or not all(isinstance(each, str) for each in allow):
        raise ConfigError("`brain.allow` must be an array of names of tools.", hint='Such as ["Read", "Grep"].')
    for name in allow:
        if slip := unknown_tool(name, more_tools=True):
            raise ConfigError(f"`brain.allow`: {slip}")
    return tuple(allow)
