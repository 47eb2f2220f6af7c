"""The requests about storages and models, and the odd ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from trunkline.core.graph.hosting import EmbeddedStorageDescription, StringStorageDescription
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.errors import TryllError

if TYPE_CHECKING:
    from trunkline.wires.tryll.host import HostedModels
    from trunkline.wires.tryll.serve.connection import ServerConnection
    from trunkline.wires.tryll.serve.session import ClientSession

#: Between two reports of progress.
_REPORT_SECONDS = 0.1
#: What is quicker than this is not worth a report, unless it was asked for.
_QUICK_SECONDS = 0.5


class Reporter:
    """Tells the client how far a request is, now and then. One that is behind is not told."""

    def __init__(self, connection: ServerConnection, request_id: int, *, quick: float = 0.0) -> None:
        self._connection = connection
        self._request_id = request_id
        self._quick_until = connection.server.loop.time() + quick
        self._next = 0.0

    def __call__(self, name: str, done: int, total: int) -> None:
        now = self._connection.server.loop.time()
        if self._connection.behind or now < self._quick_until or (now < self._next and done != total):
            return
        self._next = now + _REPORT_SECONDS
        percent = min(100.0, 100.0 * done / total) if total else 0.0
        self._connection.say(m.DownloadProgress(self._request_id, name, done, total, percent))


# Storages.


def _create_strings(session: ClientSession, request: m.CreateStringStorageRequest, size: int) -> None:
    async def create(request: m.CreateStringStorageRequest) -> None:
        host = session.configured()
        given = StringStorageDescription(request.name, request.strings, request.file_path, request.kind, request.keys)
        made, taken = await session.keep(partial(host.create_strings, given), request, 7003)
        session.until_gone(made, taken)
        session.say(m.CreateStringStorageResponse(request.request_id, request.name))

    session.in_order(create, request, size)


def _destroy_strings(session: ClientSession, request: m.DestroyStringStorageRequest, size: int) -> None:
    async def destroy(request: m.DestroyStringStorageRequest) -> None:
        session.configured().destroy_strings(request.name)
        session.say(m.Ack(request.request_id))

    session.in_order(destroy, request, size)


def _create_embedded(session: ClientSession, request: m.CreateEmbeddedStringStorageRequest, size: int) -> None:
    async def create(request: m.CreateEmbeddedStringStorageRequest) -> None:
        host = session.configured()
        reporter = Reporter(session.connection, request.request_id, quick=_QUICK_SECONDS)
        given = EmbeddedStorageDescription(
            request.name,
            request.config_path,
            request.strings,
            request.embedding_model,
            request.records_json,
            request.memory_path,
        )
        made, taken = await session.keep(partial(host.create_embedded, given, reporter), request, 8003)
        # What it is made of, once it is, is more than its description, or less.
        size = made.size or taken
        try:
            session.kept.take(size - taken, 8003)
        except TryllError:
            session.kept.give_back(taken)
            host.destroy_embedded(request.name)
            raise
        session.until_gone(made, size)
        count, dimensions = made.record_count, made.dimensions
        session.say(m.CreateEmbeddedStringStorageResponse(request.request_id, request.name, count, dimensions))

    session.in_order(create, request, size)


def _destroy_embedded(session: ClientSession, request: m.DestroyEmbeddedStringStorageRequest, size: int) -> None:
    async def destroy(request: m.DestroyEmbeddedStringStorageRequest) -> None:
        session.configured().destroy_embedded(request.name)
        session.say(m.Ack(request.request_id))

    session.in_order(destroy, request, size)


# Models. They belong to nobody: only loading one needs engines to be chosen.


def _list_models(session: ClientSession, request: m.ListModelsRequest, size: int) -> None:
    async def list_models(request: m.ListModelsRequest) -> None:
        models = await session.server.list_models()
        while session.connection.behind:
            await session.connection.waiter()
        session.say(m.ListModelsResponse(request.request_id, models))

    session.trusted()
    session.beside(list_models, request, size)
    # A list is a hundred times as long as the question.
    session.pause()


def _download(session: ClientSession, request: m.DownloadModelRequest, size: int) -> None:
    async def download(request: m.DownloadModelRequest) -> None:
        await session.server.host.models.download(request.model_name, Reporter(session.connection, request.request_id))
        session.say(m.DownloadComplete(request.request_id, request.model_name, True))

    session.trusted()
    session.beside(download, request, size)


def _load(session: ClientSession, request: m.LoadModelRequest, size: int) -> None:
    async def load(request: m.LoadModelRequest) -> None:
        await session.server.host.models.load(request.model_name)
        session.say(m.LoadModelResponse(request.request_id, request.model_name))

    session.configured()
    session.beside(load, request, size)


def _done_to_a_model(work: Callable[[HostedModels, str], Awaitable[None]]) -> Callable[[ClientSession, Any, int], None]:
    """A request that does something to a model by its name, for those who may, and is acknowledged."""

    def handle(session: ClientSession, request: m.UnloadModelRequest | m.DeleteModelRequest, size: int) -> None:
        async def done(request: m.UnloadModelRequest | m.DeleteModelRequest) -> None:
            await work(session.server.host.models, request.model_name)
            session.say(m.Ack(request.request_id))

        session.trusted()
        session.beside(done, request, size)

    return handle


# The odd ones.


def _health(session: ClientSession, request: m.HealthRequest, size: int) -> None:
    found = session.server.health(request.request_id)
    if not session.is_trusted:
        # That it is alive is for everybody to know, and what it does is not.
        found = m.HealthResponse(request.request_id, found.status)
    session.say(found)


def _debug(session: ClientSession, request: m.DebugCommandRequest, size: int) -> None:
    raise TryllError(5005)


#: What is done for each kind of request, and the number for a failure that nobody foresaw.
REQUESTS: dict[type[m.Message], tuple[Callable[[ClientSession, Any, int], None], int]] = {
    m.CreateStringStorageRequest: (_create_strings, 7003),
    m.DestroyStringStorageRequest: (_destroy_strings, 7003),
    m.CreateEmbeddedStringStorageRequest: (_create_embedded, 8003),
    m.DestroyEmbeddedStringStorageRequest: (_destroy_embedded, 8003),
    m.ListModelsRequest: (_list_models, 6001),
    m.DownloadModelRequest: (_download, 6001),
    m.LoadModelRequest: (_load, 6002),
    m.UnloadModelRequest: (_done_to_a_model(lambda models, name: models.unload(name)), 6002),
    m.DeleteModelRequest: (_done_to_a_model(lambda models, name: models.delete(name)), 6002),
    m.HealthRequest: (_health, 5001),
    m.DebugCommandRequest: (_debug, 5005),
}
