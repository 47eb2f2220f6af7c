"""The client's end of the Tryll wire, for code that waits. See `drive` for what it does and when it raises.

    with SyncTryll("127.0.0.1", 9100) as tryll:
        agent = tryll.create_agent(graph, default_model="smollm2-135m")
        for piece in agent.stream("Hello"):
            print(piece, end="")

The connection has a thread of its own. Methods may be called from several threads. Listeners run in the connection's
thread: they must be quick, and calling the client from there raises `RuntimeError`, because it could never return.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from ssl import SSLContext
from types import TracebackType
from typing import Any, Self

from trunkline.core.graph.hosting import EmbeddedStorageDescription, StringStorageDescription
from trunkline.wires.tryll.drive import (
    CONNECT_SECONDS,
    MODEL_SECONDS,
    REQUEST_SECONDS,
    TURN_SECONDS,
    IntentClassified,
    Progress,
    Reconnect,
    RemoteAgent,
    RemoteVoice,
    Reply,
    Sound,
    SpeechTiming,
    ToolCall,
    Tryll,
    Turn,
)
from trunkline.wires.tryll.drive.thread import LoopThread
from trunkline.wires.tryll.drive.voice import TRANSCRIPT_SECONDS
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    ConfigureSessionRequest,
    CreateEmbeddedStringStorageResponse,
    GraphDescription,
    HealthResponse,
    HistoryEntry,
    ModelInfo,
    NodeEvent,
    NodeParams,
    WireTranscriptUpdate,
)


class SyncReply:
    """The answer to one message, piece by piece. Leaving it early stops the turn, if the server can."""

    def __init__(self, thread: LoopThread, reply: Reply) -> None:
        self._thread = thread
        self._reply = reply

    @property
    def turn(self) -> Turn:
        """The result; `RuntimeError` before the end."""
        return self._reply.turn

    def result(self) -> Turn:
        """Read to the end."""
        return self._thread.run(self._reply.result())

    def events(self) -> Iterator[str | ToolCall | IntentClassified | NodeEvent | Sound | SpeechTiming]:
        """The pieces of the answer, and what nodes tell and say in between, and when."""
        try:
            while (event := self._thread.run(self._reply.next_event())) is not None:
                yield event
        finally:
            self.close()

    def __iter__(self) -> Iterator[str]:
        for event in self.events():
            if isinstance(event, str):
                yield event

    def close(self) -> None:
        """Read no further."""
        self._thread.call(self._reply.leave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SyncAgent:
    """An agent of a session. Made by `SyncTryll.create_agent`."""

    def __init__(self, thread: LoopThread, agent: RemoteAgent) -> None:
        self._thread = thread
        self._agent = agent

    @property
    def id(self) -> int:
        """What the server calls it; another number after each loss of the connection."""
        return self._agent.id

    def ask(self, text: str, *, timeout: float = TURN_SECONDS, check: bool = True) -> Turn:
        """Send a message and wait for the end of its turn."""
        return self._thread.run(self._agent.ask(text, timeout=timeout, check=check))

    def stream(self, text: str, *, timeout: float = TURN_SECONDS, check: bool = True) -> SyncReply:
        """The same, piece by piece."""
        return SyncReply(self._thread, self._agent.stream(text, timeout=timeout, check=check))

    def cancel(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """Stop the turn that is running, from another thread than the one that waits for it."""
        self._thread.run(self._agent.cancel(timeout=timeout))

    def change(self, node: str, params: NodeParams, *, timeout: float = REQUEST_SECONDS) -> None:
        """Give a node other parameters: all of them."""
        self._thread.run(self._agent.change(node, params, timeout=timeout))

    def change_some(self, node: str, *, timeout: float = REQUEST_SECONDS, **changes: Any) -> None:
        """Give a node other values for some parameters."""
        self._thread.run(self._agent.change_some(node, timeout=timeout, **changes))

    def history(self, *, timeout: float = REQUEST_SECONDS) -> tuple[HistoryEntry, ...]:
        """The conversation so far."""
        return self._thread.run(self._agent.history(timeout=timeout))

    def restore(self, entries: Sequence[HistoryEntry], *, timeout: float = REQUEST_SECONDS) -> None:
        """Go on from another conversation."""
        self._thread.run(self._agent.restore(entries, timeout=timeout))

    def destroy(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """End it, and a turn of it."""
        self._thread.finish(self._agent.destroy(timeout=timeout))

    def on_tool_call(self, listener: Callable[[ToolCall], object] | None) -> None:
        """Hear which tools the model wants."""
        self._agent.on_tool_call(listener)

    def on_intent_classified(self, listener: Callable[[IntentClassified], object] | None) -> None:
        """Hear what the user wants."""
        self._agent.on_intent_classified(listener)

    def on(self, event_type: str, listener: Callable[[Any], object] | None) -> None:
        """Hear the events of a type."""
        self._agent.on(event_type, listener)

    def on_node_event(self, listener: Callable[[NodeEvent], object] | None) -> None:
        """Hear all events whose type nobody else listens to."""
        self._agent.on_node_event(listener)

    def on_forgotten(self, listener: Callable[[TryllError], object] | None) -> None:
        """Hear why a server did not take the conversation back after a lost connection."""
        self._agent.on_forgotten(listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


class SyncVoice:
    """A voice input of a session. Made by `SyncTryll.voice_input`; see `RemoteVoice`."""

    def __init__(self, thread: LoopThread, voice: RemoteVoice) -> None:
        self._thread = thread
        self._voice = voice

    def begin(self, *, agent: SyncAgent | None = None, **options: Any) -> None:
        """Listen from now on. The options are those of `RemoteVoice.begin`."""
        self._thread.run(self._voice.begin(agent=agent._agent if agent is not None else None, **options))

    def send(self, pcm: bytes) -> None:
        """Let the server hear some sound."""
        self._thread.run(self._voice.send(pcm))

    def end(self, *, timeout: float = TRANSCRIPT_SECONDS) -> str:
        """Take what was heard."""
        return self._thread.run(self._voice.end(timeout=timeout))

    def transcript(self, *, timeout: float | None = None) -> str:
        """Wait for the end of the utterance, and take what was heard."""
        return self._thread.run(self._voice.transcript(timeout=timeout))

    def cancel(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """Forget what was heard."""
        self._thread.run(self._voice.cancel(timeout=timeout))

    @property
    def reply(self) -> SyncReply | None:
        """The agent's answer to what was said last; None if it was not told, or not yet."""
        reply = self._voice.reply
        return SyncReply(self._thread, reply) if reply is not None else None

    def updates(self) -> Iterator[WireTranscriptUpdate]:
        """What is understood of the utterance, up to its end."""
        updates = self._voice.updates()
        while (update := self._thread.run(_next(updates))) is not None:
            yield update

    def on_update(self, listener: Callable[[WireTranscriptUpdate], object] | None) -> None:
        """Hear what is understood, as it comes."""
        self._voice.on_update(listener)

    def destroy(self, *, timeout: float = REQUEST_SECONDS) -> None:
        """End it, and an utterance."""
        self._thread.finish(self._voice.destroy(timeout=timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


async def _next(updates: AsyncIterator[WireTranscriptUpdate]) -> WireTranscriptUpdate | None:
    return await anext(updates, None)


class SyncTryll:
    """A session on a server. Connects when it is created."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9100,
        *,
        config: ConfigureSessionRequest | None = None,
        reconnect: Reconnect | None = Reconnect(),  # noqa: B008  # frozen
        timeout: float = CONNECT_SECONDS,
        ssl: SSLContext | None = None,
    ) -> None:
        self._thread = LoopThread()
        try:
            self._tryll = self._thread.run(_made(host, port, config, reconnect, timeout, ssl))
        except BaseException:
            self._thread.stop()
            raise
        self._thread.at_end = self._tryll.close

    def close(self) -> None:
        """End the session. Whoever waits for something in another thread hears 1002. Idempotent.

        Raises:
            RuntimeError: a listener called it.
        """
        if self._thread.is_here:
            raise RuntimeError("a listener cannot close the client, whose thread it runs in")
        self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def session_id(self) -> int:
        """What the server calls the session; 0 without a connection."""
        return self._tryll.session_id

    @property
    def extensions(self) -> tuple[str, ...]:
        """What the server can do beyond the documented protocol."""
        return self._tryll.extensions

    def configure(self, config: ConfigureSessionRequest, *, timeout: float = REQUEST_SECONDS) -> None:
        """Configure anew."""
        self._thread.run(self._tryll.configure(config, timeout=timeout))

    def health(self, *, timeout: float = REQUEST_SECONDS) -> HealthResponse:
        """How the server is."""
        return self._thread.run(self._tryll.health(timeout=timeout))

    def create_agent(self, graph: GraphDescription, **options: Any) -> SyncAgent:
        """Make an agent of a graph. The options are those of `Tryll.create_agent`."""
        return SyncAgent(self._thread, self._thread.run(self._tryll.create_agent(graph, **options)))

    def voice_input(self, model: str = "", **options: Any) -> SyncVoice:
        """Make a voice input. The options are those of `Tryll.voice_input`."""
        return SyncVoice(self._thread, self._thread.run(self._tryll.voice_input(model, **options)))

    def create_storage(self, name: str, strings: Sequence[str] | Mapping[str, str] = (), **options: Any) -> None:
        """Name some strings. The options are those of `Tryll.create_storage`."""
        self._thread.run(self._tryll.create_storage(name, strings, **options))

    def destroy_storage(self, name: str, *, timeout: float = REQUEST_SECONDS) -> None:
        """Forget some strings."""
        self._thread.run(self._tryll.destroy_storage(name, timeout=timeout))

    def create_embedded_storage(
        self, name: str, strings: Sequence[str] = (), **options: Any
    ) -> CreateEmbeddedStringStorageResponse:
        """Name some strings that are found by their meaning. The options are those of the asynchronous client."""
        return self._thread.run(self._tryll.create_embedded_storage(name, strings, **options))

    def bring(
        self,
        *storages: StringStorageDescription | EmbeddedStorageDescription,
        progress: Progress | None = None,
    ) -> None:
        """Make the storages that a graph's file brings along."""
        self._thread.run(self._tryll.bring(*storages, progress=progress))

    def destroy_embedded_storage(self, name: str, *, timeout: float = REQUEST_SECONDS) -> None:
        """Forget them."""
        self._thread.run(self._tryll.destroy_embedded_storage(name, timeout=timeout))

    def list_models(self, *, timeout: float = REQUEST_SECONDS) -> tuple[ModelInfo, ...]:
        """The catalog."""
        return self._thread.run(self._tryll.list_models(timeout=timeout))

    def download_model(self, name: str, progress: Progress | None = None, *, timeout: float = MODEL_SECONDS) -> None:
        """Let the server fetch a model."""
        self._thread.run(self._tryll.download_model(name, progress, timeout=timeout))

    def load_model(self, name: str, *, timeout: float = MODEL_SECONDS) -> None:
        """Let the server load a model, and keep it loaded."""
        self._thread.run(self._tryll.load_model(name, timeout=timeout))

    def unload_model(self, name: str, *, timeout: float = REQUEST_SECONDS) -> None:
        """Keep a model loaded no longer."""
        self._thread.run(self._tryll.unload_model(name, timeout=timeout))

    def delete_model(self, name: str, *, timeout: float = REQUEST_SECONDS) -> None:
        """Remove what a download has brought."""
        self._thread.run(self._tryll.delete_model(name, timeout=timeout))

    def ensure_model(
        self, name: str, progress: Progress | None = None, *, load: bool = True, timeout: float = MODEL_SECONDS
    ) -> ModelInfo:
        """See to it that a model is there, and loaded."""
        return self._thread.run(self._tryll.ensure_model(name, progress, load=load, timeout=timeout))


async def _made(
    host: str,
    port: int,
    config: ConfigureSessionRequest | None,
    reconnect: Reconnect | None,
    timeout: float,
    ssl: SSLContext | None,
) -> Tryll:
    # In its thread: what it is made of belongs to the event loop.
    tryll = Tryll(host, port, config=config, reconnect=reconnect, timeout=timeout, ssl=ssl)
    return await tryll.connect()
