"""What decides: a model, any agent, or a list of replies.

    {"kind": "scripted", "replies": [...]}      in order, the last repeats; the place in the list survives restarts
    {"kind": "openai", "baseUrl", "model", "apiKey"}      also `anthropic`, `gemini`, `deepseek` ...
    {"kind": "local", "model"}                            held to valid actions, unless `guided` is false
    {"kind": "agent", "name": "agentproc:claude-code"}    any agent; it may use no tools

Every answer is limited as a whole, from the connection to the last byte. Nothing is asked twice: the next cycle asks
again, with what is known then.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from trunkline.base import jsontext, paths
from trunkline.base.values import Value
from trunkline.core.events import Envelope, Failed, TextDelta, ToolStarted, TurnEnded, UserMessage
from trunkline.core.faults import AgentFailed, AgentTimeout, ConfigError, NoModel, ProviderError
from trunkline.core.usage import Usage
from trunkline.models.providers import NAMES, SERVICES, Service
from trunkline.runner import config_parts
from trunkline.runner.config import LLM_PROVIDERS, RunnerConfig
from trunkline.runner.finishing import on_disk
from trunkline.runner.prompting import Prompt
from trunkline.runner.state import AgentState
from trunkline.store import names

if TYPE_CHECKING:
    from trunkline.models.model import Model

T = TypeVar("T")

#: Characters of one answer: what is longer is no decision.
MAX_REPLY = 1024 * 1024
#: An agent's own window is not known; most take this many tokens.
AGENT_WINDOW = 128_000

KINDS = ("scripted", "agent", "litellm", *NAMES)


class Reply(Value):
    """What was answered, word for word."""

    text: str
    usage: Usage | None = None


class TooLong(AgentFailed):
    """An answer without an end. `said`: its beginning."""

    def __init__(self, said: str) -> None:
        super().__init__(f"The answer has more than {MAX_REPLY} characters.")
        self.said = said[:MAX_REPLY]


class Brain(Protocol):
    """Answers prompts."""

    @property
    def window(self) -> int | None:
        """Tokens that a prompt and its answer may have together, if known."""

    async def answer(self, prompt: Prompt) -> Reply:
        """Ask once.

        Raises:
            TooLong: it does not end.
            Fault: no answer came, or not all of it in time.
        """

    async def close(self) -> None:
        """Let go of everything. Idempotent."""


def make(config: RunnerConfig, general: Mapping[str, Any], state: AgentState, home: str) -> Brain:
    """The brain of a configuration; of one without, what the agent's general data on the network says.

    Raises:
        ConfigError: it cannot work as configured.
    """
    given = config.brain if config.brain is not None else _of_general(config, general)
    where = "llm" if config.brain is None else "brain"
    kind = given.get("kind")
    match kind:
        case "scripted":
            return ScriptedBrain(_replies(given), state)
        case "agent":
            workspace = os.path.join(home, "runner", "workspaces", names.file_name(config.agent_id))
            return AgentBrain(_text(given, "name"), _options(given), workspace, config.timeout_seconds)
        case str() if kind in KINDS:
            guided = kind == "local" and given.get("guided") is not False
            model = _model(kind, given, where, {"force_tool": True} if guided else {})
            return (GuidedBrain if guided else ModelBrain)(model, config.timeout_seconds, config.max_tokens)
    shown = kind if isinstance(kind, str) else "nothing"
    raise ConfigError(
        f"`brain.kind` is `{shown[:40]}`.", hint=f"Use one of {', '.join(f'`{each}`' for each in KINDS)}."
    )


# A list of replies


class ScriptedBrain:
    """Says what it was given, one reply for each prompt."""

    window = None

    def __init__(self, replies: Sequence[str], state: AgentState) -> None:
        self._replies = replies
        self._state = state
        # Other replies are another script, which begins at its beginning.
        self._name = f"scripted:{sha256(jsontext.dumps(list(replies))).hexdigest()}"

    async def answer(self, prompt: Prompt) -> Reply:
        place = await on_disk(lambda: self._state.next_number(self._name))
        return Reply(self._replies[min(place, len(self._replies) - 1)])

    async def close(self) -> None:
        """There is nothing to let go of."""


def _replies(given: Mapping[str, Any]) -> list[str]:
    replies = given.get("replies")
    if not isinstance(replies, list) or not replies:
        raise ConfigError("`brain.replies` must be an array with at least one reply.")
    # A decision may be written as it is, instead of as a text of it.
    return [each if isinstance(each, str) else jsontext.dumps(each).decode() for each in replies]


# A model


class ModelBrain:
    """Asks a model, without tools and without a history."""

    def __init__(self, model: Model, seconds: float, max_tokens: int | None) -> None:
        self._model = model
        self._seconds = seconds
        self._max_tokens = max_tokens

    @property
    def window(self) -> int | None:
        return self._model.context_window

    async def answer(self, prompt: Prompt) -> Reply:
        return await _in_time(self._asked(prompt), self._seconds, "The model")

    async def close(self) -> None:
        await self._model.close()

    async def _asked(self, prompt: Prompt) -> Reply:
        from trunkline.models.messages import Message, Text
        from trunkline.models.model import Answer, Request, Retrying, TextChunk

        message = Message("user", (Text(prompt.user),))
        request = Request([message], system=prompt.system, max_tokens=self._max_tokens)
        pieces: list[str] = []
        length = 0
        async with aclosing(self._model.stream(request)) as chunks:
            async for chunk in chunks:
                match chunk:
                    case TextChunk(text=text):
                        pieces.append(text)
                        length += len(text)
                        if length > MAX_REPLY:
                            raise TooLong("".join(pieces))
                    case Retrying(reason=reason):
                        raise ProviderError(reason, retryable=True)
                    case Answer(content=content, usage=usage):
                        said = "".join(block.text for block in content if isinstance(block, Text))
                        return Reply(said or "".join(pieces), usage)
        return Reply("".join(pieces))


class GuidedBrain(ModelBrain):
    """Asks a small model in this process, whose answer is held to valid actions."""

    window = None

    async def _asked(self, prompt: Prompt) -> Reply:
        from trunkline.runner import guided

        return Reply(*await guided.answer(self._model, prompt))


def _model(kind: str, given: Mapping[str, Any], where: str, compat: Mapping[str, Any]) -> Model:
    from trunkline.models.discover_servers import server_url
    from trunkline.models.providers import VARIABLES, ModelSettings
    from trunkline.models.providers import make as make_model

    service = SERVICES.get(kind) or Service("openai")
    provider = kind if kind in VARIABLES else service.provider
    base_url = _text(given, "baseUrl")
    # A key of the environment belongs to the provider's own address.
    variable = "" if base_url else VARIABLES[provider].get("api_key", "") if kind in VARIABLES else service.variable
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
            f"The network says that the agent's provider is `{kind[:40]}`, and `llm.apiKey` is no key for that.",
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


class AgentBrain:
    """Asks an agent, in a new conversation each time. Nobody is there to approve anything, so it may use no tools."""

    window = AGENT_WINDOW

    def __init__(self, name: str, options: Mapping[str, Any], workspace: str, seconds: float) -> None:
        from trunkline.agents import registry

        if not name:
            raise ConfigError("`brain.name` is missing.", hint="`trunkline agent --help` tells what agents there are.")
        try:
            paths.ensure_dir(workspace)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigError(f"The agent's workspace `{workspace}` cannot be made: {reason}.") from None
        self._options = {**options, "workspace": workspace}
        try:
            self._agent = registry.make(name, self._options)
        except NoModel as error:
            hint = "Name a provider in `brain.options.provider`, or set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`."
            raise ConfigError(error.message, hint=hint) from None
        self._workspace = workspace
        self._seconds = seconds

    async def answer(self, prompt: Prompt) -> Reply:
        return await _in_time(self._asked(prompt), self._seconds, f"The agent `{self._agent.name}`")

    async def close(self) -> None:
        """Each conversation was closed after its answer."""

    async def _asked(self, prompt: Prompt) -> Reply:
        from trunkline.core.approvals import Policy
        from trunkline.core.log import MemoryLog
        from trunkline.core.session import Session

        log = MemoryLog(f"runner-{os.urandom(8).hex()}")
        policy = Policy(allow=(), interactive=False)
        heard = _Heard()
        session = await Session.open(
            self._agent,
            log,
            policy,
            busy="reject",
            workspace=self._workspace,
            instructions=prompt.system,
            options=self._options,
        )
        try:
            session.attach(heard)
            session.submit(UserMessage(prompt.user))
            await heard.ended.wait()
        finally:
            await session.close()
        return heard.reply()


class _Heard:
    """What an agent says in one turn. After a tool it begins anew: what came before was not the answer."""

    congested = False

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self._pieces: list[str] = []
        self._length = 0
        self._problems: list[str] = []
        self._end: TurnEnded | None = None

    def show(self, envelopes: Sequence[Envelope]) -> None:
        for envelope in envelopes:
            match envelope.event:
                case TextDelta(text=text) if self._length <= MAX_REPLY:
                    self._pieces.append(text)
                    self._length += len(text)
                case ToolStarted():
                    self._pieces.clear()
                    self._length = 0
                case Failed(message=message):
                    self._problems.append(message)
                case TurnEnded() as end:
                    self._end = end
                    self.ended.set()

    async def drain(self) -> None:
        """It is never behind."""

    def reply(self) -> Reply:
        if self._end is None or self._end.outcome != "success":
            problem = self._problems[-1] if self._problems else "The agent gave no answer."
            raise AgentFailed(problem)
        said = "".join(self._pieces)
        if self._length > MAX_REPLY:
            raise TooLong(said)
        return Reply(said, self._end.usage)


async def _in_time(work: Awaitable[T], seconds: float, who: str) -> T:
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise AgentTimeout(f"{who} gave no complete answer within {seconds:g} s.") from None


def _text(given: Mapping[str, Any], name: str) -> str:
    return config_parts.text(given, name, "brain.")


def _options(given: Mapping[str, Any]) -> Mapping[str, Any]:
    options = given.get("options")
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError("`brain.options` must be an object.")
    return options or {}
