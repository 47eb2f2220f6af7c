"""The client's end of the Tryll wire, for asyncio. `sync` has the same for code that waits.

    async with Tryll("127.0.0.1", 9100) as tryll:  # or `Tryll("ws://127.0.0.1:9101")`
        await tryll.ensure_model("smollm2-135m", progress=print)
        agent = await tryll.create_agent(graph, default_model="smollm2-135m")
        turn = await agent.ask("Hello")
        print(turn.text)

- Several things may be asked at once; the turns of one agent come one after the other.
- What the server refuses raises `TryllError` with its number and its text. A turn that fails raises `TurnFailed`.
- Every wait has a limit. All of them are limits of silence: as long as the server shows progress, it is waited for.
- When the connection is lost, whatever waits raises 1002 and is not sent again: it may have been done. What is asked
  next connects anew, and makes the session again, with its conversations if the server takes them: see `replay`.
  After another version of the protocol (5004) or a frame that no peer may announce (5003) that is the end: every call
  raises the same error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from ssl import SSLContext
from typing import Any, Self, TypeVar

from trunkline.core.graph.hosting import EmbeddedStorageDescription, StringStorageDescription
from trunkline.wires.tryll.drive.address import ServerAddress
from trunkline.wires.tryll.drive.agent import RemoteAgent
from trunkline.wires.tryll.drive.connection import ClientConnection, Progress
from trunkline.wires.tryll.drive.needs import is_unknown
from trunkline.wires.tryll.drive.replay import (
    MODEL_SECONDS,
    PASSING,
    REQUEST_SECONDS,
    Reconnect,
    SessionReplay,
    versioned,
)
from trunkline.wires.tryll.drive.voice import RemoteVoice
from trunkline.wires.tryll.errors import TryllError
from trunkline.wires.tryll.messages import (
    Ack,
    ConfigureSessionRequest,
    ConfigureSessionResponse,
    CreateAgentRequest,
    CreateEmbeddedStringStorageRequest,
    CreateEmbeddedStringStorageResponse,
    CreateStringStorageRequest,
    CreateStringStorageResponse,
    DeleteModelRequest,
    DestroyEmbeddedStringStorageRequest,
    DestroyStringStorageRequest,
    DownloadComplete,
    DownloadModelRequest,
    FromClient,
    FromServer,
    GraphDescription,
    HealthRequest,
    HealthResponse,
    ListModelsRequest,
    ListModelsResponse,
    LoadModelRequest,
    LoadModelResponse,
    ModelInfo,
    ModelStatus,
    NodeParams,
    StringStorageKind,
    UnloadModelRequest,
)

CONNECT_SECONDS = 30.0
#: How often it is looked whether a download that somebody else began is done.
LOOK_SECONDS = 1.0

#: After these no new connection is tried: the next one would be no better.
_FINAL = (5003, 5004)

R = TypeVar("R", bound=FromServer)


class Tryll:
    """A session on a server. Belongs to the event loop that uses it."""

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
        """Nothing is connected yet.

        Args:
            host: a name, or the address of a WebSocket, such as `ws://127.0.0.1:9101`, which says the port, too.
            config: the engines, and so on; all Mock unless given.
            reconnect: None: a lost connection stays lost.
            timeout: how long the server may take to begin a session.

        Raises:
            ValueError: the address of a WebSocket is none.
        """
        self.address = ServerAddress.of(host, port)
        self.host, self.port = self.address.host, self.address.port
        self._ledger = SessionReplay(versioned(config or ConfigureSessionRequest()))
        self._reconnect = reconnect
        self._timeout = timeout
        self._ssl = ssl
        self._numbers = count(1)
        self._link: ClientConnection | None = None
        self._connecting = asyncio.Lock()
        self._opening: asyncio.Timeout | None = None
        """Lets whoever closes the client end what makes a connection."""
        self._final: TryllError | None = None

    # The session.

    async def connect(self) -> Self:
        """Connect and configure, once. Later calls see to it that the connection is there.

        Raises:
            TryllError: 1001, 1003, there is no server; 5004, it speaks another version; or what it says.
        """
        await self.live()
        return self

    async def close(self) -> None:
        """End the session: the server lets go of all that it had. All who wait hear 1002. Idempotent."""
        self._final = TryllError(1002, "This client is closed.")
        if self._opening is not None:
            self._opening.reschedule(asyncio.get_running_loop().time())
            self._opening = None
        if self._link is not None:
            await self._link.close()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def session_id(self) -> int:
        """What the server calls the session; 0 without a connection."""
        ready = self._link.ready if self._link is not None and self._link.lost is None else None
        return ready.session_id if ready is not None else 0

    @property
    def extensions(self) -> tuple[str, ...]:
        """What the server can do beyond the documented protocol."""
        return self._link.extensions if self._link is not None else ()

    async def configure(self, config: ConfigureSessionRequest, *, timeout: float = REQUEST_SECONDS) -> None:
        """Configure anew: holds for agents and storages that are made from now on."""
        config = versioned(config)
        await self._one(config, ConfigureSessionResponse, timeout)
        self._ledger.configured(config)

    async def health(self, *, timeout: float = REQUEST_SECONDS) -> HealthResponse:
        """How the server is.

        Raises:
            TryllError: 5002, it cannot say.
        """
        if "health" not in (await self.live()).extensions:
            raise TryllError(5002, "This server cannot say how it is.")
        return await self._one(HealthRequest(), HealthResponse, timeout)

    # Agents.

    async def create_agent(
        self,
        graph: GraphDescription,
        *,
        default_model: str = "",
        diagnostics: bool = False,
        max_steps: int = 0,
        progress: Progress | None = None,
        timeout: float | None = None,
    ) -> RemoteAgent:
        """Make an agent of a graph. `progress` hears of models that are downloaded for it.

        Raises:
            TryllError: 3003, 3007 to 3011, the graph cannot work; 6xxx, a model cannot be had.
        """
        link = await self.live()
        agent = RemoteAgent(self, CreateAgentRequest(0, graph, default_model, diagnostics, max_steps))
        await agent.create(link, timeout if timeout is not None else self._ledger.making_seconds, progress)
        self._ledger.created(agent)
        return agent

    async def voice_input(self, model: str = "", **options: Any) -> RemoteVoice:
        """Make a voice input. The options are those of `RemoteVoice.made`, which also tells what it raises."""
        voice = await RemoteVoice.made(self, model, **options)
        self._ledger.created(voice)
        return voice

    # Storages.

    async def create_storage(
        self,
        name: str,
        strings: Sequence[str] | Mapping[str, str] = (),
        *,
        file_path: str = "",
        kind: int | None = None,
        keys: Sequence[str] = (),
        timeout: float = REQUEST_SECONDS,
    ) -> None:
        """Name some strings: a list, a mapping, values with `keys` of any `kind`, or a file on the server.

        A file is of the `kind` that its name tells (`.txt`, `.json`, `.mm.json`), unless another one is named.

        Raises:
            TryllError: 7xxx, or 3009 and 3010 for a file.
        """
        if isinstance(strings, Mapping):
            keys, strings = tuple(strings), tuple(strings.values())
        if kind is None:
            told = StringStorageKind.of_file(file_path) if file_path else None
            kind = told if told is not None else StringStorageKind.MAP if keys else StringStorageKind.LIST
        request = CreateStringStorageRequest(0, name, tuple(strings), file_path, kind, tuple(keys))
        await self._one(request, CreateStringStorageResponse, timeout)
        self._ledger.stored(CreateStringStorageResponse, name, request)

    async def destroy_storage(self, name: str, *, timeout: float = REQUEST_SECONDS) -> None:
        """Forget some strings."""
        request = DestroyStringStorageRequest(name=name)
        await self._one(request, Ack, timeout)
        self._ledger.dropped(CreateStringStorageResponse, name, request)

    async def create_embedded_storage(
        self,
        name: str,
        strings: Sequence[str] = (),
        *,
        embedding_model: str = "",
        config_path: str = "",
        records_json: str = "",
        memory_path: str = "",
        progress: Progress | None = None,
        timeout: float = MODEL_SECONDS,
    ) -> CreateEmbeddedStringStorageResponse:
        """Name some strings that are found by their meaning: given here, alone or as records with fields, or by a file
        on the server. `records_json` is a JSON object with `records` and `fields`, written as in such files.
        `memory_path` is a file of the server in which agents keep what they write down.

        Raises:
            TryllError: 8xxx, 6xxx, or 3009 and 3010 for a file; 5002, the server takes no records, or has no memories.
        """
        if records_json and is_unknown("records_json", (await self.live()).extensions):
            raise TryllError(5002, "This server does not accept records with fields.")
        if memory_path and is_unknown("memory_path", (await self.live()).extensions):
            raise TryllError(5002, "This server keeps no memories.")
        request = CreateEmbeddedStringStorageRequest(
            0, name, config_path, tuple(strings), embedding_model, records_json, memory_path
        )
        made = await self._one(request, CreateEmbeddedStringStorageResponse, timeout, progress)
        self._ledger.stored(CreateEmbeddedStringStorageResponse, name, request)
        return made

    async def bring(
        self,
        *storages: StringStorageDescription | EmbeddedStorageDescription,
        progress: Progress | None = None,
    ) -> None:
        """Make the storages that a graph's file brings along, one after the other.

        Raises:
            TryllError: as `create_storage` and `create_embedded_storage`.
        """
        for each in storages:
            if isinstance(each, StringStorageDescription):
                await self.create_storage(
                    each.name, each.strings, file_path=each.file_path, kind=each.kind, keys=each.keys
                )
            else:
                await self.create_embedded_storage(
                    each.name,
                    each.strings,
                    embedding_model=each.embedding_model,
                    config_path=each.config_path,
                    records_json=each.records_json,
                    memory_path=each.memory_path,
                    progress=progress,
                )

    async def destroy_embedded_storage(self, name: str, *, timeout: float = REQUEST_SECONDS) -> None:
        """Forget them."""
        request = DestroyEmbeddedStringStorageRequest(name=name)
        await self._one(request, Ack, timeout)
        self._ledger.dropped(CreateEmbeddedStringStorageResponse, name, request)

    # Models.

    async def list_models(self, *, timeout: float = REQUEST_SECONDS) -> tuple[ModelInfo, ...]:
        """The catalog."""
        parts = await (await self.live()).request(ListModelsRequest(), ListModelsResponse, timeout)
        return tuple(model for part in parts for model in part.models)

    async def download_model(
        self, name: str, progress: Progress | None = None, *, timeout: float = MODEL_SECONDS
    ) -> None:
        """Let the server fetch a model.

        Raises:
            TryllError: 6001 to 6004.
        """
        done = await self._one(DownloadModelRequest(model_name=name), DownloadComplete, timeout, progress)
        if not done.success:
            raise TryllError(6001, done.error_message)

    async def load_model(self, name: str, *, timeout: float = MODEL_SECONDS) -> None:
        """Let the server load a model, and keep it loaded."""
        await self._one(LoadModelRequest(model_name=name), LoadModelResponse, timeout)

    async def unload_model(self, name: str, *, timeout: float = REQUEST_SECONDS) -> None:
        """Keep a model loaded no longer."""
        await self._one(UnloadModelRequest(model_name=name), Ack, timeout)

    async def delete_model(self, name: str, *, timeout: float = REQUEST_SECONDS) -> None:
        """Remove what a download has brought."""
        await self._one(DeleteModelRequest(model_name=name), Ack, timeout)

    async def ensure_model(
        self, name: str, progress: Progress | None = None, *, load: bool = True, timeout: float = MODEL_SECONDS
    ) -> ModelInfo:
        """See to it that a model is there, and loaded: fetch it, or wait while another client does.

        Raises:
            TryllError: 6xxx, it cannot be had.
        """
        model = await self._model(name)
        while model.status in (ModelStatus.ABSENT, ModelStatus.DOWNLOADING):
            try:
                await self.download_model(name, progress, timeout=timeout)
            except TryllError as error:
                if error.code != 6004:
                    raise
                # That client's progress is told to it alone.
                await asyncio.sleep(LOOK_SECONDS)
            else:
                model = await self._model(name)
                break
            model = await self._model(name)
        if load and model.status != ModelStatus.LOADED:
            await self.load_model(name, timeout=timeout)
            model = await self._model(name)
        return model

    # For its agents.

    async def live(self) -> ClientConnection:
        """The connection; a new one, where everything is there again, if it was lost.

        Raises:
            TryllError: as `connect`.
        """
        if self._link is not None and self._link.lost is None:
            return self._link
        async with self._connecting:
            if self._link is not None and self._link.lost is None:
                return self._link
            lost = self._link.lost if self._link is not None else None
            self._lost(lost)
            self._check()
            if lost is not None and self._reconnect is None:
                raise lost
            try:
                async with asyncio.timeout(None) as self._opening:
                    link = await self._opened(again=lost is not None)
            except TimeoutError:
                # The client was closed meanwhile.
                self._check()
                raise
            finally:
                self._opening = None
            self._link = link
            return link

    def changed(self, agent: RemoteAgent, node: str, params: NodeParams) -> None:
        """A node of an agent has other parameters."""
        self._ledger.changed(agent, node, params)

    def release(self, made: RemoteAgent | RemoteVoice) -> None:
        """An agent or a voice input is not to be made again."""
        self._ledger.released(made)

    def _check(self) -> None:
        if self._final is not None:
            raise TryllError(self._final.code, self._final.message)

    async def _opened(self, *, again: bool) -> ClientConnection:
        pauses = self._reconnect.pauses() if again and self._reconnect is not None else iter(())
        while True:
            try:
                return await self._open()
            except TryllError as error:
                pause = next(pauses, None)
                if self._final is not None or error.code not in PASSING or pause is None:
                    raise
            await asyncio.sleep(pause)

    async def _open(self) -> ClientConnection:
        """A connection, configured, with the session's storages and agents."""
        try:
            link = await ClientConnection.open(
                self.address, numbers=self._numbers, timeout=self._timeout, ssl=self._ssl
            )
        except TryllError as error:
            self._lost(error)
            raise
        try:
            await self._ledger.replay(link)
        except BaseException:
            self._lost(link.lost)
            await link.close()
            raise
        return link

    def _lost(self, error: TryllError | None) -> None:
        """A connection is lost. What we could not send ourselves, which is 5003 too, ends none."""
        if self._final is None and error is not None and error.code in _FINAL:
            self._final = error

    async def _one(self, message: FromClient, expected: type[R], timeout: float, progress: Progress | None = None) -> R:
        return (await (await self.live()).request(message, expected, timeout, progress))[-1]

    async def _model(self, name: str) -> ModelInfo:
        for model in await self.list_models():
            if model.name == name:
                return model
        raise TryllError(6002, f"The server has no model `{name}`.")
