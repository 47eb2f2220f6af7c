"""A Tryll server as an agent: each conversation is a session of its own, with one agent of a graph.

    agent = TryllAgent("127.0.0.1", 9100)               # the server's language model answers
    agent = TryllAgent.parse("127.0.0.1:9100/smollm2-135m")
    agent = TryllAgent.parse("ws://127.0.0.1:9101")
    agent = TryllAgent("127.0.0.1", 9100, graph=graph)  # a graph of yours, or its file with all that it brings along

A model that is not there yet is fetched by the first turn, which shows how far that is. What nodes tell is passed on;
nobody runs the tools that they call. The server forgets a conversation with its connection: what was said is in the
session's journal, and given back to a server that takes it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from trunkline.agents.external.tryll_conversation import JOURNAL_KEY, ServerConversation, exchanges, not_accepted
from trunkline.agents.external.tryll_models import check_known, is_missing, language_models, pick
from trunkline.agents.turn_stream import TurnStream
from trunkline.core.agent import Capabilities, OpenRequest
from trunkline.core.events import Audio, Extension, Failed, Notice, Progress, TextDelta, TurnEnded, UserMessage
from trunkline.core.faults import AgentTimeout, ConfigError, Fault, ModelError, Unsupported
from trunkline.core.graph.hosting import EmbeddedStorageDescription, StringStorageDescription
from trunkline.core.graph.turns import TURN_DIAGNOSTICS, node_event
from trunkline.core.usage import Usage
from trunkline.wires.tryll.drive import (
    IntentClassified,
    RemoteAgent,
    Reply,
    Sound,
    SpeechTiming,
    ToolCall,
    Tryll,
    Turn,
    TurnFailed,
    appended,
)
from trunkline.wires.tryll.drive.address import ServerAddress
from trunkline.wires.tryll.drive.events import INTENT_CLASSIFIED, TOOL_CALL
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    ConfigureSessionRequest,
    DownloadProgress,
    GenerateParams,
    GraphDescription,
    InferenceEngine,
    NodeDescription,
    NodeEvent,
    TurnStatus,
)

if TYPE_CHECKING:
    from ssl import SSLContext

    from trunkline.agents.graph.yaml_graph import GraphFile

logger = logging.getLogger(__name__)

DEFAULT_PORT = 9100
#: How long a server may take to begin a session: it does so at once, or it is not well.
CONNECT_SECONDS = 10.0
#: How long it may take after a stop to hear what the server keeps of an answer: a stop is waited for a little longer.
KEPT_SECONDS = 0.4

#: Models of this name need no file, and run on the engine of the same name.
_MOCK = "mock"
_OUTCOMES = {TurnStatus.SUCCESS: "success", TurnStatus.CANCELLED: "cancelled"}
_TIMEOUT, _BUSY = 1003, 3004
_STRINGS_EXIST, _KNOWLEDGE_EXISTS = 7002, 8002
#: There is no server, or none that is of any use.
_CONNECTING = range(1000, 2000)


class TryllAgent:
    """Opens conversations with a server's models, or with a graph that runs there."""

    #: Nothing runs unasked there: tools are only ever asked for.
    capabilities = Capabilities(approval=True, resume=True)

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        *,
        model: str = "",
        graph: GraphDescription | GraphFile | None = None,
        engine: int | None = None,
        token: str = "",
        ssl: SSLContext | None = None,
    ) -> None:
        """`host`: or the address of a WebSocket. `engine`: the real one, unless the model's name begins with `mock`."""
        self.host, self.port = host, port
        self.model = model
        self.file = None if graph is None or isinstance(graph, GraphDescription) else graph
        """A graph with its storages and its model."""
        self.graph = graph if graph is None or isinstance(graph, GraphDescription) else graph.graph
        self._engine = engine
        self._token = token
        self._ssl = ssl

    @classmethod
    def parse(cls, text: str) -> TryllAgent:
        """The agent of `HOST:PORT` or `ws://HOST:PORT`, or of one of them with `/MODEL`.

        Raises:
            ConfigError: it is none of these.
        """
        scheme, between, rest = text.rpartition("://")
        place, _, model = rest.partition("/")
        try:
            address = ServerAddress.parse(f"{scheme}{between}{place}")
        except ValueError:
            raise ConfigError(
                f"`{text}` is not the address of a Tryll server.",
                hint=f"Such as 127.0.0.1:{DEFAULT_PORT}, or ws://127.0.0.1:{DEFAULT_PORT + 1}.",
            ) from None
        return cls(str(address) if address.is_websocket else address.host, address.port, model=model)

    @property
    def name(self) -> str:
        return tryll_name(self.host, self.port)

    def config(self, model: str) -> ConfigureSessionRequest:
        """The engines of a session in which that model answers."""
        engine = self._engine
        if engine is None:
            engine = InferenceEngine.MOCK if model.startswith(_MOCK) else InferenceEngine.LLAMA_CPP
        # Only a graph of somebody's speaks, and it would not if it were not meant.
        voice = InferenceEngine.SHERPA_ONNX if self.graph is not None else InferenceEngine.MOCK
        return ConfigureSessionRequest(
            inference_engine=engine,
            embedding_engine=engine,
            tts_engine=voice,
            allow_auto_model_downloading=True,
            token=self._token,
        )

    async def offered_models(self) -> list[str]:
        """The names of the server's models that could answer.

        Raises:
            ConfigError, AgentTimeout: as `open`.
        """
        config = self.config(self.model)
        try:
            async with Tryll(self.host, self.port, config=config, timeout=CONNECT_SECONDS, ssl=self._ssl) as tryll:
                return language_models(await tryll.list_models())
        except TryllError as error:
            raise unopened(error) from None

    async def open(self, request: OpenRequest) -> TryllConversation:
        """Begin a session.

        Raises:
            ConfigError: there is no server, it speaks another version, or it lets nobody in without a token.
            AgentTimeout: it says nothing.
        """
        model = self.model or str((request.options or {}).get("model") or "")
        model = model or (self.file.default_model if self.file is not None else "")
        config = self.config(model)
        tryll = Tryll(self.host, self.port, config=config, timeout=CONNECT_SECONDS, ssl=self._ssl)
        try:
            await tryll.connect()
        except TryllError as error:
            await tryll.close()
            raise unopened(error) from None
        fetches = config.inference_engine != InferenceEngine.MOCK
        return TryllConversation(tryll, request, model, self.graph, self.file, fetches=fetches)


class TryllConversation(ServerConversation):
    """One dialogue, which is one session of the server."""

    def __init__(
        self,
        tryll: Tryll,
        request: OpenRequest,
        model: str,
        graph: GraphDescription | None,
        file: GraphFile | None = None,
        *,
        fetches: bool = True,
    ) -> None:
        """`fetches`: whether models are fetched that the server has not got yet."""
        # A graph of somebody's has its own instructions: there they go in front of the first message.
        super().__init__(
            request, [*([request.instructions] if graph and request.instructions else []), *request.history]
        )
        self._tryll = tryll
        self._file = file
        self._fetches = fetches
        self._diagnostics = bool((request.options or {}).get("diagnostics"))
        self._model = model
        self._graph = graph
        self._changed: GraphFile | None = None
        """What takes the place of the graph with the next message."""
        self._to_bring: list[StringStorageDescription | EmbeddedStorageDescription] = _storages(file)
        """Storages of the graph that the session has not got yet. They outlive the agent that they were made for."""
        self._brought: list[StringStorageDescription | EmbeddedStorageDescription] = []
        """Those that it has got."""
        self._agent: RemoteAgent | None = None
        self._stale: list[RemoteAgent] = []
        """Agents of models that were given up, to be taken leave of."""
        self._restored = tuple(exchanges(request.journal.records)) if request.resumed else ()
        if self._restored:
            self._context.clear()

    async def _use(self, model: str) -> None:
        """Let another model answer from the next turn on: an agent is made for it that is told what was said.

        Raises:
            Unsupported: it runs on another engine, and those of a session stay.
            ModelError: the server has no such model.
        """
        if model.startswith(_MOCK) == self._fetches:
            raise Unsupported(
                f"`{model}` runs on another engine, and a session of a Tryll server keeps its own.",
                hint=f"Leave, and come back with `--model {model} --resume`.",
            )
        if self._fetches:
            try:
                known = language_models(await self._tryll.list_models())
            except TryllError as error:
                raise unopened(error) from None
            check_known(model, known)
        self._model = model
        if self._agent is not None:
            self._stale.append(self._agent)
            self._agent = None
            self._restored = tuple(exchanges(self._request.journal.records))

    def renew(self, file: GraphFile) -> None:
        """Go on with another graph, from the next message on: an agent of it is made, and told what was said. If it
        cannot be made, the one before goes on."""
        self._changed = file

    async def _renewed(self, before: RemoteAgent, file: GraphFile, tell: TurnStream) -> None:
        known = self._file, self._graph, self._model
        if self._file is not None and self._model == self._file.default_model:
            self._model = file.default_model
        self._file, self._graph = file, file.graph
        self._to_bring = [each for each in _storages(file) if each not in self._brought]
        self._restored = tuple(exchanges(self._request.journal.records))
        try:
            self._agent = await self._made(tell)
        except TryllError as error:
            self._file, self._graph, self._model = known
            self._to_bring = []
            await tell.say(Notice(f"The server cannot use the changed graph, and the one before goes on. {error}"))
            return
        await _part_with(before)

    async def _leave(self) -> None:
        await self._tryll.close()

    async def _work(self, message: UserMessage, tell: TurnStream) -> TurnEnded:
        await self._read_no_files(message, tell)
        try:
            if self._agent is None:
                if self._changed is not None:
                    self._file, self._graph, self._changed = self._changed, self._changed.graph, None
                    self._to_bring = _storages(self._file)
                self._agent = await self._made(tell)
            elif self._changed is not None:
                changed, self._changed = self._changed, None
                await self._renewed(self._agent, changed, tell)
            turn = await self._answered(self._agent, message, tell)
        except TryllError as error:
            await tell.say(Failed(_kind(error.code), str(error), error.code == _BUSY))
            return TurnEnded("error", tell.usage)
        if self._diagnostics and turn.debug:
            await tell.say(Extension(TURN_DIAGNOSTICS, turn.debug))
        if turn.status not in _OUTCOMES:
            await tell.say(Failed("agent", str(TurnFailed(turn))))
            return TurnEnded("error", tell.usage)
        return TurnEnded("cancelled" if turn.cancelled else "success", tell.usage)

    async def _answered(self, agent: RemoteAgent, message: UserMessage, tell: TurnStream) -> Turn:
        async with agent.stream(self._prompt(message), check=False) as reply:
            self._context.clear()
            try:
                while (event := await reply.next_event()) is not None:
                    if isinstance(event, str):
                        await tell.say(TextDelta(appended(event)))
                    elif isinstance(event, Sound):
                        await tell.say(Audio(event.pcm, event.sample_rate, event.channels))
                    elif not isinstance(event, SpeechTiming):
                        await tell.say(told_by_node(event))
            finally:
                reply.leave()
                await self._record(agent, reply)
            turn = reply.turn
        tell.usage = usage_of(turn)
        return turn

    async def _record(self, agent: RemoteAgent, reply: Reply) -> None:
        """Write down what was said, as the server has it: of an answer that was stopped, no more than was heard."""
        kept = reply.text
        try:
            kept = await agent.answer_kept(reply, timeout=KEPT_SECONDS)
        finally:
            if kept:
                self._note(JOURNAL_KEY, [reply.message, kept])

    def _forgotten(self, error: TryllError) -> None:
        if self._stream is not None:
            self._stream.say_now(not_accepted(error.message))

    async def _made(self, tell: TurnStream) -> RemoteAgent:
        def show(progress: DownloadProgress) -> None:
            name, share = progress.model_name, f"{progress.percent:.0f} %"
            knowledge = self._file.knowledge if self._file is not None else ()
            is_read = any(each.name == name for each in knowledge)
            tell.say_now(
                Progress(f"reading the knowledge `{name}`: {share}" if is_read else f"{name}: {share} fetched")
            )

        while self._stale:
            await _part_with(self._stale.pop())
        model = await self._chosen(show)
        await self._bring(show)
        agent = await self._tryll.create_agent(
            self._graph or plain(self._request.instructions),
            default_model=model,
            # They have the sentence that says why a turn failed.
            diagnostics=True,
            max_steps=self._file.max_steps if self._file is not None else 0,
            progress=show,
        )
        agent.on_forgotten(self._forgotten)
        if self._restored and "history" in self._tryll.extensions:
            try:
                await agent.restore(self._restored)
            except TryllError as error:
                await tell.say(not_accepted(error.message))
        elif self._restored:
            await tell.say(Notice("This server cannot restore the earlier conversation, so it starts afresh."))
        return agent

    async def _bring(self, show: Any) -> None:
        """Give the session the storages that it has not got yet.

        A server finishes a storage also if the turn was stopped meanwhile, and a client that heard nothing of it would
        not make it again on a new connection. So that one is made anew: nobody else names any in this session.
        """
        while self._to_bring:
            storage = self._to_bring[0]
            try:
                await self._tryll.bring(storage, progress=show)
            except TryllError as error:
                if error.code == _STRINGS_EXIST:
                    await self._tryll.destroy_storage(storage.name)
                elif error.code == _KNOWLEDGE_EXISTS:
                    await self._tryll.destroy_embedded_storage(storage.name)
                else:
                    raise
                await self._tryll.bring(storage, progress=show)
            del self._to_bring[0]
            same = (type(storage), storage.name)
            self._brought = [each for each in self._brought if (type(each), each.name) != same] + [storage]

    async def _chosen(self, show: Any) -> str:
        """The model that answers. One that the server lists and has not got is fetched.

        Raises:
            ModelError: there is none, and nobody named one.
        """
        models = await self._tryll.list_models()
        name = self._model or pick(models)
        # A graph may name its own. If not, and there is none here, the server says so.
        if not name and self._graph is None:
            raise ModelError("The server has no language model.", hint="Name one with `--model`, or have it add one.")
        knowledge = self._file.knowledge if self._file is not None else ()
        needed = {name, *(each.embedding_model for each in knowledge)}
        if not self._model and self._graph is not None:
            needed.discard(name)
        for model in models if self._fetches else ():
            if model.name in needed and is_missing(model):
                await self._tryll.ensure_model(model.name, show, load=False)
        return name


async def _part_with(agent: RemoteAgent) -> None:
    """Take leave of one that is not needed. If that fails the server has one too many, and nobody here is the worse."""
    try:
        await agent.destroy()
    except TryllError as error:
        logger.warning("an agent that is not needed any more may still be there: %s", error)


def _storages(file: GraphFile | None) -> list[StringStorageDescription | EmbeddedStorageDescription]:
    return [] if file is None else [*file.storages, *file.knowledge]


def plain(instructions: str | None) -> GraphDescription:
    """A graph that lets the model answer, and no more."""
    return GraphDescription(
        (NodeDescription("answer", GenerateParams(system_prompt=instructions, stream=True)),), "answer"
    )


def tryll_name(host: str, port: int) -> str:
    """What the agent of a server is called."""
    return f"tryll:{ServerAddress.of(host, port)}"


def unopened(error: TryllError) -> Fault:
    """Why a conversation cannot begin."""
    if error.code == _TIMEOUT:
        return AgentTimeout(error.message)
    hint = "`trunkline tryll serve` starts a server." if error.code in _CONNECTING else None
    return ConfigError(error.message, hint=hint)


def usage_of(turn: Turn) -> Usage:
    """What a turn used."""
    return Usage(turn.tokens_prompt or None, turn.tokens_generated, turn.tokens_cached or None)


def told_by_node(event: ToolCall | IntentClassified | NodeEvent) -> Extension:
    """What a node of a graph wants to be known."""
    match event:
        case ToolCall():
            called = (("tool_name", event.name), ("arguments_json", event.arguments_json))
            return node_event(event.node, TOOL_CALL, called)
        case IntentClassified():
            known = ((key, getattr(event, key)) for key in ("intent", "record_id", "distance", "top_prob", "margin"))
            return node_event(event.node, INTENT_CLASSIFIED, ((key, str(value)) for key, value in known if value))
        case NodeEvent():
            return node_event(event.node_name, event.event_type, ((pair.key, pair.value) for pair in event.kv_pairs))


def _kind(code: int) -> str:
    """The fault that an error's number amounts to."""
    if code in (_TIMEOUT, _BUSY):
        return "timeout" if code == _TIMEOUT else "busy"
    return {1: "agent", 4: "provider", 5: "remote_protocol", 6: "provider"}.get(code // 1000, "config")
