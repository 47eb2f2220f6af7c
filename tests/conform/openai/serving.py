"""All servers of the tests on one socket, each under its name: `http://127.0.0.1:PORT/NAME/v1`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.conform.openai import broken_completions, broken_responses
from tests.conform.openai.good_server import KEY, MODEL, GoodServer, Receive, Scope, Send
from tests.conform.openai.habits_of_servers import HABITS
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import asgi
from trunkline.conform.kit import CheckResult
from trunkline.conform.openai.asking import ServerMemory, Target
from trunkline.conform.openai.stage import Stage
from trunkline.conform.openai.suite import SUITE

#: Those that registered their habits by being imported.
MODULES = (broken_completions, broken_responses)


class OffersLittle(GoodServer):
    """Chats, and nothing else: neither keys nor Responses, tools, embeddings."""

    needs_key = False
    offers_responses = False
    offers_tools = False

    async def route(self, method: str, path: str, body: bytes, send: Send) -> None:
        if path == "/embeddings":
            await self.on_no_route(method, path, send)
        else:
            await super().route(method, path, body, send)


class KnowsFewRoutes(OffersLittle):
    """The same, on a framework whose own pages say what there is not."""

    async def on_no_route(self, method: str, path: str, send: Send) -> None:
        await self.start(send, 404, b"text/plain")
        await send({"type": "http.response.body", "body": b"Not Found"})


SERVERS: dict[str, type[GoodServer]] = {
    "KnowsFewRoutes": KnowsFewRoutes,
    "GoodServer": GoodServer,
    "OffersLittle": OffersLittle,
    **{name: each.made for name, each in HABITS.items()},
}


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """The address."""
    made: dict[str, GoodServer] = {}
    stop, ready = asyncio.Event(), asyncio.Event()
    places: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].split("/")[1]
        server = made.setdefault(name, SERVERS[name]())
        await server(scope, receive, send)

    def reachable(host: str, port: int) -> None:
        places.append(f"http://{host}:{port}")
        ready.set()

    served = asyncio.create_task(asgi.serve(app, "127.0.0.1", 0, stop, reachable))
    await asyncio.wait_for(ready.wait(), PATIENCE_SECONDS)
    try:
        yield places[0]
    finally:
        stop.set()
        await asyncio.wait_for(served, PATIENCE_SECONDS)


async def results_of(address: str, name: str, *patterns: str, key: str = KEY, jobs: int = 4) -> list[CheckResult]:
    """What the kit finds about a server."""
    target = Target(f"{address}/{name}/v1", MODEL, key, timeout=PATIENCE_SECONDS)
    memory = ServerMemory()
    results, _ = await SUITE.run(SUITE.select(patterns), lambda check: Stage(target, memory, check), jobs=jobs)
    return results
