"""A graph's file as an agent of the core: any wire, terminal or bridge that has agents has graphs.

    agent = GraphFileAgent.load("npc")            # or a file; `graph:npc` in the registry

The models are those that the file names, unless whoever opens the conversation names another in its place; `mock` needs
no weights. What has to be fetched is fetched by the first turn, which shows how far that is. A tool that the graph
calls is asked for like any other: if it is denied, the turn goes on as if no tool had been called. What nodes tell are
extensions of the kind `node_event`. What was said is in the session's journal, and known again when it is resumed.
"""

from __future__ import annotations

import os
from functools import partial

from trunkline.agents.graph import bundled, yaml_graph
from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.agent_models import PREFIX as AGENT_PREFIX
from trunkline.agents.graph.agent_models import AgentModels, models_for, wanted
from trunkline.agents.graph.diagnostics import by_kind
from trunkline.agents.graph.hosting import LocalGraphHost, SessionHost
from trunkline.agents.graph.pool import ModelPool
from trunkline.agents.graph.recorded import JOURNAL_KEY, usage_of
from trunkline.agents.graph.stream_listener import StreamListener
from trunkline.agents.graph.vectors import VectorStore
from trunkline.agents.graph.yaml_graph import GraphFile
from trunkline.agents.journal_notes import exchanges
from trunkline.agents.streamed import StreamedConversation
from trunkline.agents.turn_stream import TurnStream
from trunkline.base import jsontext, paths
from trunkline.base.extras import lacking
from trunkline.core.agent import AddHistory, Approve, Capabilities, Change, Decision, Deny, OpenRequest, SetOptions
from trunkline.core.approvals import Decisions
from trunkline.core.events import (
    Category,
    Extension,
    Failed,
    Notice,
    Progress,
    ToolCancelled,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from trunkline.core.faults import Fault, ModelError, Unsupported
from trunkline.core.graph.description import GenerateAndSpeakParams, SpeakParams
from trunkline.core.graph.hosting import HostSettings
from trunkline.core.graph.ordinals import InferenceEngine, TurnStatus
from trunkline.core.graph.turns import TURN_DIAGNOSTICS, DescribeError
from trunkline.core.turns import DENIED
from trunkline.models.catalog_entry import LLM, SPEAKS
from trunkline.models.tool_calls import Call

#: Models whose names begin like this need no weights: then all of the graph runs on the engine of that name.
MOCK = "mock"
#: How long a turn may put its things in order when the conversation is closed.
CLOSE_SECONDS = 1.0

#: What the character is taken to have answered to what it is told of the time before: an exchange has two sides, and in
#: front of the next message it would be looked at by every node that reads messages.
_REMEMBERED = "I remember that."
#: What can be done about a model that cannot be had.
_OTHER_MODELS = "`trunkline models list` shows those there are, and `--model mock` needs none of them."
#: The tools of a graph are somebody else's, as those of an MCP server are.
_CATEGORY: Category = "mcp"


class GraphFileAgent:
    """Opens conversations with what a graph's file describes. They share its models."""

    def __init__(
        self,
        file: GraphFile,
        name: str,
        folder: str,
        *,
        mock: bool | None = None,
        describe: DescribeError = by_kind,
        models_dir: str | None = None,
        keeps_memories: bool = True,
    ) -> None:
        """
        Args:
            folder: where the graph looks for files.
            mock: whether all of it runs on the engine that needs no weights. Without it, the model's name decides.
            describe: gives what the diagnostics of a turn tell of a fault.
            models_dir: a folder with more models, as a `ModelPool` takes it.
            keeps_memories: whether what is remembered is there for later conversations.
        """
        self.name = name
        self._keeps_memories = keeps_memories
        self._describe = describe
        self._mock = mock
        self._models_dir = models_dir
        self.file = file
        speaks = any(isinstance(node.params, GenerateAndSpeakParams | SpeakParams) for node in file.graph.nodes)
        #: Nothing runs unasked: tools are only ever asked for.
        self.capabilities = Capabilities(approval=True, resume=True, voice=speaks)
        self._folder = folder
        self._hosts: dict[tuple[str, ...], tuple[LocalGraphHost, list[SessionHost]]] = {}
        """By the model that was chosen, and the agents that the graph names."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of all tools that the graph may call."""
        nodes = self.file.graph.nodes
        found = (each for node in nodes for each in (*node.tools, *getattr(node.params, "tools", ())))
        return tuple(dict.fromkeys(each.name for each in found))

    def runs_mock(self, model: str) -> bool:
        """Whether a conversation in which that model answers needs no weights."""
        return model.startswith(MOCK) if self._mock is None else self._mock

    @property
    def all_mock(self) -> bool:
        """Whether it was made to need no weights, whatever its models are called."""
        return bool(self._mock)

    @property
    def default_model(self) -> str | None:
        """The model of nodes that name none; None if the file has no such."""
        return MOCK if self.all_mock else self.file.default_model or None

    @property
    def model_note(self) -> str:
        """What people should know about its models."""
        if self.all_mock:
            return "`--engine local` runs the models that the graph names."
        return "It answers for the nodes that name none; `trunkline models list` has others."

    @classmethod
    def load(
        cls,
        spec: str,
        *,
        mock: bool | None = None,
        describe: DescribeError = by_kind,
        models_dir: str | None = None,
    ) -> GraphFileAgent:
        """The agent of a graph's file, or of the bundled graph of that name; the rest as above.

        Raises:
            ConfigError: it cannot be read, or no agent can be made of it. It says where.
        """
        spec = os.path.expanduser(spec)
        file, folder = yaml_graph.load(spec), bundled.folder_of(spec)
        return cls(file, f"graph:{spec}", folder, mock=mock, describe=describe, models_dir=models_dir)

    async def offered_models(self) -> list[str]:
        """The names of those that could answer, fetched or not."""
        return [MOCK] if self.all_mock else [*self._pool().named(LLM), MOCK]

    async def open(self, request: OpenRequest) -> GraphConversation:
        """Begin a conversation. Models are for the first turn to get."""
        return GraphConversation(self, request)

    def enter(self, chosen: str, workspace: str) -> SessionHost:
        """A session of the host with the model that was chosen in place of the file's. The host is there as long as one
        of its sessions is. `chosen` is "" for the file's own.

        Raises:
            ConfigError: the graph names what is not there, or not for it to name.
            ModelError: it needs a model that there is not, or that nothing here runs.
        """
        agents, _ = wanted(self.file.graph, chosen or self.file.default_model)
        found = self._hosts.get(key := (chosen, *agents))
        if found is None:
            models = self.models_with(chosen, workspace)
            vectors = VectorStore(os.path.join(paths.cache_dir(), "tryll-vectors"))
            found = self._hosts[key] = (
                LocalGraphHost(models, self._folder, vectors, keeps_memories=self._keeps_memories),
                [],
            )
        host, sessions = found
        session = host.open_session(self._describe)
        sessions.append(session)
        return session

    def models_with(self, chosen: str, workspace: str) -> AgentModels:
        """All that the graph needs, with the model that was chosen. Fetches nothing; raises as `enter`."""
        pool = self._pool()
        if chosen and not (chosen.startswith(AGENT_PREFIX) or self.runs_mock(chosen)):
            pool.check_language(chosen)
        self._check(pool, chosen)
        return models_for(self.file.graph, pool, self.file.default_model, chosen=chosen, workspace=workspace)

    def problem(self) -> str | None:
        """Why it cannot answer here, as far as that can be told without trying: a model, or what runs one, is missing.

        Models that can be fetched are not missing.
        """
        try:
            self._check(self._pool(), "")
        except ModelError as error:
            return str(error)
        return None

    def _pool(self) -> ModelPool:
        """All models that the graph may name.

        Raises:
            ConfigError: the `models.json` cannot be used.
        """
        return ModelPool(models_dir=self._models_dir)

    def _check(self, pool: ModelPool, chosen: str) -> None:
        """Look for all models and for what runs them, before one of them is fetched."""
        model = chosen or self.file.default_model
        if self.runs_mock(model):
            return
        _, answering = wanted(self.file.graph, model)
        finding = (records.embedding_model for records in self.file.knowledge)
        speaking = (getattr(node.params, "tts_model_name", None) or "" for node in self.file.graph.nodes)
        known = pool.named(SPEAKS)
        pool.check(*answering, *filter(None, finding), *(name for name in speaking if name in known))

    async def leave(self, session: SessionHost) -> None:
        """Give a session back. The last of a host takes the models along."""
        session.close()
        key, (host, sessions) = next(each for each in self._hosts.items() if session in each[1][1])
        sessions.remove(session)
        if not sessions:
            del self._hosts[key]
            await host.close()


class GraphConversation(StreamedConversation):
    """One dialogue over a graph."""

    #: A model that is being loaded does not stop at once.
    close_seconds = 2 * CLOSE_SECONDS

    def __init__(self, owner: GraphFileAgent, request: OpenRequest) -> None:
        super().__init__(request)
        self._owner = owner
        self._chosen = str((request.options or {}).get("model") or "")
        self._model = self._chosen or owner.file.default_model
        self._diagnostics = bool((request.options or {}).get("diagnostics"))
        self._session: SessionHost | None = None
        self._agent: GraphAgent | None = None
        self._decisions = Decisions()
        self._calls = 0
        self._file = owner.file
        """What the agent was made of, or last could not be."""
        self._left: list[SessionHost] = []
        """Sessions that are of no more use, to be given back."""
        self._told = [*([request.instructions] if request.instructions else []), *request.history]
        self._before = [(text, _REMEMBERED) for text in self._told]
        if request.resumed:
            self._before += exchanges(request.journal.records, JOURNAL_KEY)

    async def decide(self, call_id: str, decision: Decision) -> None:
        self._decisions.resolve(call_id, decision)

    async def configure(self, change: Change) -> None:
        if isinstance(change, SetOptions) and set(change.options) == {"model"}:
            self._use(str(change.options["model"]))
            return
        if not isinstance(change, AddHistory):
            raise Unsupported("A graph cannot be changed like this: edit its file instead.")
        self._told.append(change.text)
        if self._agent is None:
            self._before.append((change.text, _REMEMBERED))
        else:
            self._agent.restore([(change.text, _REMEMBERED)], append=True)

    def _use(self, model: str) -> None:
        """Let another model answer from the next turn on: an agent is made for it that knows what was said.

        Raises:
            Unsupported: all of it runs on the engine that needs no model.
            ConfigError: there is no such model, or nothing here runs it.
        """
        if self._owner.all_mock:
            raise Unsupported(
                "The mock engine has no other models.", hint="Leave, and come back with `--engine local --model NAME`."
            )
        try:
            self._owner.models_with(model, self._request.workspace)
        except ModelError as error:
            error.say(hint=error.hint or _OTHER_MODELS)
            raise
        self._chosen = self._model = model
        if self._agent is not None:
            self._agent.close()
            self._agent = None
            self._put_aside()
            self._before = [(text, _REMEMBERED) for text in self._told]
            self._before += exchanges(self._request.journal.records, JOURNAL_KEY)

    async def close(self) -> None:
        await self.cancel()
        if self._stream is not None:
            await self._stream.finished(CLOSE_SECONDS)
        # What ends later must not write to a journal that is closed.
        self._now_closed()
        if self._agent is not None:
            self._agent.close()
        self._put_aside()
        await self._give_back()

    def _put_aside(self) -> None:
        if self._session is not None:
            self._left.append(self._session)
            self._session = None

    async def _give_back(self) -> None:
        while self._left:
            await self._owner.leave(self._left.pop())

    # A turn.

    async def _work(self, message: UserMessage, tell: TurnStream) -> TurnEnded:
        for file in message.files:
            await tell.say(Notice(f"Graphs do not read files: `{file}` was ignored."))
        heard = StreamListener(tell)
        try:
            agent = await self._made(tell)
            ending = await agent.turn(message.text, heard, partial(self._approved, tell))
        except Fault as fault:
            return await _failed(fault, tell)
        except ModuleNotFoundError as error:
            if (lacks := lacking(error)) is None:
                raise
            await tell.say(Failed("config", lacks))
            return TurnEnded("error", tell.usage)
        finally:
            if heard.text:
                self._note(JOURNAL_KEY, [message.text, heard.text])
        tell.usage = usage_of(ending)
        if self._diagnostics:
            await tell.say(Extension(TURN_DIAGNOSTICS, jsontext.loads(ending.debug_info.encode())))
        if ending.error is not None:
            return await _failed(ending.error, tell)
        return TurnEnded("cancelled" if ending.status == TurnStatus.CANCELLED else "success", tell.usage)

    async def _made(self, tell: TurnStream) -> GraphAgent:
        """The agent, with all that it needs. If the file is another one since, so is the agent, and it knows what was
        said; where that cannot be had, the one before goes on.

        Raises:
            Fault: it cannot be made.
        """
        file = self._owner.file
        if self._agent is not None and file is self._file:
            return self._agent
        # What the turn before could not finish, with storages that are half there; or another model's.
        await self._give_back()
        before = self._agent
        try:
            session = self._owner.enter(self._chosen, self._request.workspace)
            self._left.append(session)
            agent = await self._of(file, session, tell)
        except Fault as fault:
            if before is None:
                raise
            self._file = file
            await tell.say(Notice(f"The changed graph cannot be used, and the one before goes on. {fault}"))
            return before
        self._left.remove(session)
        agent.restore(self._before if before is None else before.history())
        self._before = []
        if before is not None:
            before.close()
            self._put_aside()
        self._agent, self._session, self._file = agent, session, file
        await self._give_back()
        return agent

    async def _of(self, file: GraphFile, session: SessionHost, tell: TurnStream) -> GraphAgent:
        """An agent of a file. Raises as `_made`."""

        def progress(name: str, done: int, total: int) -> None:
            share = f"{100 * done // total} %" if total else f"{done} bytes"
            tell.say_now(Progress(f"{name}: {share}"))

        self._model = self._chosen or file.default_model
        session.configure(_settings(mock=self._owner.runs_mock(self._model)))
        for strings in file.storages:
            await session.create_strings(strings)
        for records in file.knowledge:
            await session.create_embedded(records, progress)
        return await session.create_agent(
            file.graph,
            progress,
            default_model=self._model,
            diagnostics=self._diagnostics,
            max_steps=file.max_steps,
        )

    async def _approved(self, tell: TurnStream, call: Call, description: str) -> bool:
        """Whether a tool may be called. Who is told of the call carries it out: nobody here does."""
        self._calls += 1
        call_id = f"call-{self._calls}"
        decision = self._decisions.ask(call_id)
        await tell.say(ToolRequested(call_id, call.name, _CATEGORY, call.arguments, description))
        verdict = await decision
        if not isinstance(verdict, Approve):
            reason = (verdict.reason if isinstance(verdict, Deny) else "") or DENIED
            await tell.say(ToolCancelled(call_id, reason))
            return False
        await tell.say(ToolStarted(call_id, call.name))
        await tell.say(ToolFinished(call_id, call.name, "success", "The call was passed on to the client."))
        return True


async def _failed(fault: Fault, tell: TurnStream) -> TurnEnded:
    if isinstance(fault, ModelError) and fault.hint is None:
        fault.say(hint=_OTHER_MODELS)
    await tell.say(Failed(fault.kind, str(fault), fault.retryable))
    return TurnEnded("error", tell.usage)


def _settings(*, mock: bool) -> HostSettings:
    """The engines of a conversation."""
    if mock:
        return HostSettings()
    return HostSettings(
        inference_engine=InferenceEngine.LLAMA_CPP,
        embedding_engine=InferenceEngine.LLAMA_CPP,
        stt_engine=InferenceEngine.SHERPA_ONNX,
        tts_engine=InferenceEngine.SHERPA_ONNX,
        allow_auto_model_downloading=True,
    )
