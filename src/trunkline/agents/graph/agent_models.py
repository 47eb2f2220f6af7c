"""Agents among the models of a server, under the names `agent:NAME`.

    models = AgentModels(pool, offered(["echo"]), workspace="work")
    engine = await models.language("agent:echo", InferenceEngine.MOCK)

Only the agents that whoever runs the server has named can be used: a name in a client's graph makes no agent, and so
starts no program. They are the same on every engine. Everything else is the pool's.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from trunkline.agents import registry
from trunkline.agents.graph.agent_engine import AgentLanguage, GraphClient, SessionAgents
from trunkline.agents.graph.params import models_of
from trunkline.base.redact import Redactor
from trunkline.core.agent import Agent
from trunkline.core.approvals import Policy
from trunkline.core.events import UserMessage
from trunkline.core.faults import AgentBusy, ConfigError, GraphError, ModelError, NoEmbeddingModel, NoLanguageModel
from trunkline.core.graph.description import (
    ClassifyIntentLLMParams,
    DirectorParams,
    GraphDescription,
    RememberParams,
    ToolCallParams,
)
from trunkline.core.graph.hosting import Progress
from trunkline.core.graph.models import ModelInfo
from trunkline.core.graph.ordinals import ModelStatus
from trunkline.core.graph.resident import ResidentModel
from trunkline.core.ids import new_id
from trunkline.core.log import MemoryLog
from trunkline.core.redaction import Redaction
from trunkline.core.rules import limits_of
from trunkline.core.session import Session
from trunkline.models.catalog_entry import LLM
from trunkline.models.engines import EmbeddingEngine, LanguageEngine

if TYPE_CHECKING:
    from trunkline.agents.graph.hosting import Models
    from trunkline.agents.graph.pool import ModelPool

#: How the name of a model begins that is an agent.
PREFIX = "agent:"
#: What such a model runs on, as the list of models has it.
ENGINE = "agent"
#: What clients call what answers.
LANGUAGE = "language"
#: It needs nothing and can do nothing, so everybody may have it.
HARMLESS = "echo"

#: Conversations with one agent at a time, the harmless one aside: each may be a process.
MAX_CONVERSATIONS = 256
#: Conversations of one session at a time, whoever they are with: no client is to have all of those, or the memory.
MAX_SESSION_CONVERSATIONS = 32

#: Nodes that need more of a model than its words, and what that is.
_UNFIT = {
    ToolCallParams: "held to the form of a call",
    ClassifyIntentLLMParams: "asked for probabilities",
    RememberParams: "asked without that becoming part of its conversation",
    DirectorParams: "several characters",
}


def offered(
    names: Iterable[str], workspace: str = ".", options: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Agent]:
    """The agents of these names, made once for all conversations, behind the one that is harmless.

    `options` are what `registry.make` takes beside the workspace.

    Raises:
        NoModel: one needs a model, and nobody said which.
        ConfigError: there is none of a name, or it lacks what it needs.
    """
    agents: dict[str, Agent] = {}
    for name in dict.fromkeys((HARMLESS, *names)):
        agents[name] = agent = registry.make(name, {**options, "workspace": workspace})
        if (why := registry.problem(agent, workspace)) is not None:
            raise ConfigError(f"The agent `{name}` cannot answer. {why}")
    return agents


def models_for(
    graph: GraphDescription,
    pool: ModelPool,
    model: str,
    *,
    chosen: str = "",
    workspace: str = ".",
    secrets: Redactor | None = None,
) -> AgentModels:
    """The models of a pool, with the agents among them that a graph names.

    Args:
        model: the graph's default.
        chosen: what a person named in its place, who may name what a file may not.

    Raises:
        ConfigError: there is no such agent, or it is not for a file to name it.
    """
    names, _ = wanted(graph, chosen or model)
    for name in names:
        if registry.runs_code(name) and PREFIX + name != chosen:
            raise ConfigError(
                f"The graph wants to run `{name}`, which a file alone may not start.",
                hint="Take it out of the file, and name it with `--model`.",
            )
        if name.startswith(registry.GRAPH_FORM):
            raise ConfigError(
                f"The graph names `{name}`: a graph cannot be a model of another, which could be a model of the first.",
                hint="Put the nodes of both into one file.",
            )
    return AgentModels(pool, offered(names, workspace), workspace=workspace, secrets=secrets)


def nobody_asked() -> Policy:
    """Denies every tool: there is nobody on this wire who could be asked."""
    return Policy(allow=(), interactive=False)


def wanted(graph: GraphDescription, default_model: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The agents that a graph names in the place of models, and the models that answer in it, each once."""
    named = (name for node in graph.nodes if node.params is not None for name in models_of(node.params, default_model))
    names = tuple(dict.fromkeys(filter(None, named)))
    agents = tuple(name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX))
    return agents, tuple(name for name in names if not name.startswith(PREFIX))


def check_nodes(graph: GraphDescription, default_model: str) -> None:
    """Look whether a node wants of an agent what only a model has.

    Raises:
        GraphError: one does.
    """
    for node in graph.nodes:
        needed = _UNFIT.get(type(node.params))  # type: ignore[arg-type]  # other kinds need nothing
        if needed is None or node.params is None:
            continue
        for model in models_of(node.params, default_model):
            if model.startswith(PREFIX):
                raise GraphError(
                    f"The node `{node.name}` cannot use `{model}`: an agent cannot be {needed}, and only answers."
                )


class SharedAgents(Protocol):
    """Agents whose sessions are kept by somebody else, and outlive the graph that talks to them."""

    person: str
    """Who speaks there."""
    serving: bool
    """Whether clients are served. When that ends, theirs is not the wish to stop what is under way."""

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called behind `agent:`."""

    async def open(self, name: str, instructions: str | None) -> Session:
        """Begin a session.

        Raises:
            Fault: it cannot be had.
        """

    async def submit(self, session: Session, message: UserMessage) -> int:
        """Have a message answered when its turn comes; gives the number of that turn, in the tick in which the session
        has it.

        Raises:
            Fault: it was not taken.
        """

    def stop(self, session: Session, turn: int) -> None:
        """Nobody here listens to that turn, which was begun from here and may be over."""

    async def leave(self, session: Session) -> None:
        """Nobody here needs it any more."""


class AgentModels:
    """`Models` with agents among them.

    Args:
        models: all others.
        agents: by the name that stands behind `agent:`.
        policy: what they may do unasked; a new one for each conversation.
        workspace: the folder that they work in.
        secrets: what no client may hear; an agent's own `redactor` knows better.
        elsewhere: more agents, whose sessions are not ours.
    """

    def __init__(
        self,
        models: Models,
        agents: Mapping[str, Agent],
        *,
        policy: Callable[[], Policy] = nobody_asked,
        workspace: str = ".",
        secrets: Redactor | None = None,
        elsewhere: SharedAgents | None = None,
    ) -> None:
        self._elsewhere = elsewhere
        self._models = models
        self._agents = dict(agents)
        self._policy = policy
        self._workspace = workspace
        self._secrets = secrets if secrets is not None else Redactor()
        self._open: dict[Session, tuple[str, SessionAgents]] = {}
        # Conversations by agent, those that begin or end included.
        self._count: Counter[str] = Counter()
        # Those that end.
        self._closing: dict[asyncio.Task[None], tuple[str, SessionAgents]] = {}

    async def language(self, name: str, engine: int, client: GraphClient | None = None) -> LanguageEngine:
        """A language model, or the client's conversation with an agent, for one node. Its `release` ends the use.

        Raises:
            NoLanguageModel: it is not offered; or as the models say.
        """
        if not name.startswith(PREFIX):
            return await self._models.language(name, engine, client)
        if not self._knows(name):
            raise NoLanguageModel(f"This server offers no model `{name}`.")
        client = client if client is not None else GraphClient()
        short = name.removeprefix(PREFIX)
        if short not in client.conversations:
            open = partial(self._opened, short, client.session_agents)
            theirs = self._elsewhere if self._elsewhere is not None and short in self._elsewhere.names else None
            client.conversations[short] = (
                AgentLanguage(short, open, self._end)
                if theirs is None
                else AgentLanguage(short, open, self._end, theirs.submit, theirs.person, theirs.stop)
            )
        return client.conversations[short].lend()

    async def _opened(self, name: str, session_agents: SessionAgents, instructions: str | None) -> Session:
        await self._room(name, session_agents)
        if self._count[name] >= MAX_CONVERSATIONS and name != HARMLESS:
            raise AgentBusy(f"It has reached its limit of conversations ({MAX_CONVERSATIONS}).")
        if session_agents.conversations >= MAX_SESSION_CONVERSATIONS:
            raise AgentBusy(f"A session is in at most {MAX_SESSION_CONVERSATIONS} conversations with agents.")
        self._counted(name, session_agents, 1)
        try:
            if self._elsewhere is not None and name in self._elsewhere.names:
                session = await self._elsewhere.open(name, instructions)
            else:
                session = await self._own(self._agents[name], instructions)
        except BaseException:
            self._counted(name, session_agents, -1)
            raise
        self._open[session] = name, session_agents
        return session

    async def _own(self, agent: Agent, instructions: str | None) -> Session:
        own: Redactor | None = getattr(agent, "redactor", None)
        policy = self._policy()
        # It was made for all of them; what one's own configuration denies is not done here, either.
        policy.rules = limits_of(agent).replace(allow=policy.rules.allow)
        return await Session.open(
            agent,
            MemoryLog(new_id(), keep=0),
            policy,
            workspace=self._workspace,
            instructions=instructions,
            options={},
            redact=Redaction(own if own is not None else self._secrets),
        )

    async def _room(self, name: str, session_agents: SessionAgents) -> None:
        """If there is no room for one conversation more, wait for those that are ending. That takes only so long."""
        ending = {closing for closing, (agent, of) in self._closing.items() if agent == name or of is session_agents}
        while ending and (
            session_agents.conversations >= MAX_SESSION_CONVERSATIONS
            or (self._count[name] >= MAX_CONVERSATIONS and name != HARMLESS)
        ):
            _, ending = await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)

    def _counted(self, name: str, session_agents: SessionAgents, more: int) -> None:
        self._count[name] += more
        session_agents.conversations += more

    def _end(self, session: Session) -> None:
        if (found := self._open.pop(session, None)) is not None:
            closing = asyncio.get_running_loop().create_task(self._closed(session, *found), name="end an agent")
            self._closing[closing] = found
            closing.add_done_callback(self._closing.pop)

    async def _closed(self, session: Session, name: str, session_agents: SessionAgents) -> None:
        try:
            if self._elsewhere is not None and name in self._elsewhere.names:
                await self._elsewhere.leave(session)
            else:
                await session.close()
        finally:
            self._counted(name, session_agents, -1)

    async def embedding(self, name: str, engine: int) -> EmbeddingEngine:
        """An embedding model.

        Raises:
            NoEmbeddingModel: it is an agent; or as the models say.
        """
        if name.startswith(PREFIX):
            raise NoEmbeddingModel(f"`{name}` is not an embedding model.")
        return await self._models.embedding(name, engine)

    async def speech(self, name: str, kind: str, missing: type[ModelError]) -> tuple[Any, Callable[[], None]]:
        """A model that hears or speaks: no agent does."""
        return await self._models.speech(name, kind, missing)

    def named(self, kind: str) -> tuple[str, ...]:
        """The names of all models of a kind; of those that answer, the agents behind them. Looks at no file."""
        agents = tuple(PREFIX + name for name in self._names()) if kind == LLM else ()
        return (*self._models.named(kind), *agents)

    def is_here(self, name: str) -> bool:
        """Whether a model could be loaded now. Agents always are here."""
        return self._knows(name) or self._models.is_here(name)

    def list(self) -> tuple[ModelInfo, ...]:
        """The models, and behind them the agents: always there, and nothing to fetch."""
        agents = (
            ModelInfo(PREFIX + name, ModelStatus.LOCAL, model_type=LANGUAGE, engine=ENGINE) for name in self._names()
        )
        return (*self._models.list(), *agents)

    async def download(self, name: str, progress: Progress) -> None:
        """Fetch a model; of an agent there is nothing to fetch."""
        self._refuse(name, "there is nothing to download")
        await self._models.download(name, progress)

    async def ensure(self, name: str, engine: int, progress: Progress) -> None:
        """See to it that a model is here. Agents are."""
        if not name.startswith(PREFIX):
            await self._models.ensure(name, engine, progress)

    async def load(self, name: str) -> None:
        """Load a model, and keep it. An agent is ready as it is."""
        if not self._knows(name):
            await self._models.load(name)

    def resident(self) -> tuple[ResidentModel, ...]:
        """The models that are loaded; an agent is none."""
        return self._models.resident()

    async def unload(self, name: str) -> None:
        """Keep a model no longer. An agent stays ready."""
        if not self._knows(name):
            await self._models.unload(name)

    async def delete(self, name: str) -> None:
        """Remove what a download has brought; of an agent there is nothing."""
        self._refuse(name, "there is nothing to delete")
        await self._models.delete(name)

    async def close(self) -> None:
        """End all conversations, then let go of the models. Idempotent."""
        for session in tuple(self._open):
            self._end(session)
        if self._closing:
            await asyncio.wait(self._closing)
        await self._models.close()

    def _knows(self, name: str) -> bool:
        return name.startswith(PREFIX) and name.removeprefix(PREFIX) in self._names()

    def _names(self) -> tuple[str, ...]:
        more = () if self._elsewhere is None else self._elsewhere.names
        return tuple(dict.fromkeys((*self._agents, *more)))

    def _refuse(self, name: str, why: str) -> None:
        if self._knows(name):
            raise ModelError(f"`{name}` is an agent: {why}.")
