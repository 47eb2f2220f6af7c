"""The embedded chain as a service: JSON-RPC over HTTP on the loopback interface.

    chain = EmbeddedChain()
    address = await chain.deploy(artefact("Vault").bytecode)
    await chain.run(stop, reachable)

The chain is in memory and begins anew with every process; within one it goes on from run to run. It is worked by one
thread, and only imported when it is first used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from trunkline.base import asgi
from trunkline.base.asgi_answers import Refused
from trunkline.base.asgi_body import bounded_body
from trunkline.base.extras import adding
from trunkline.base.hosts import REFUSED, Hosts
from trunkline.core.faults import ConfigError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from trunkline.demo.chain.evm import Evm

#: The largest transaction has an eighth of that.
MOST_BODY_BYTES = 1024 * 1024
#: How long it may take to arrive, over the loopback.
BODY_SECONDS = 20.0

#: What Sepolia's id is: contracts that say "Sepolia" are at home here.
CHAIN_ID = 11155111

_T = TypeVar("_T")
_JSON = "application/json"
_OWN = Hosts()


class EmbeddedChain:
    """A chain of our own. With port 0, the system chooses one."""

    name = "chain"

    def __init__(self, port: int = 0, *, chain_id: int = CHAIN_ID) -> None:
        self._port = port
        self._chain_id = chain_id
        self._evm: Evm | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedded-chain")

    @property
    def url(self) -> str:
        """The address for JSON-RPC; true as soon as `run` has said that it can be reached."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def where(self) -> str:
        """The address."""
        return self.url

    @property
    def about(self) -> str:
        return "a chain in memory, with a contract to test, for Ethereum's tools (JSON-RPC)"

    @property
    def trial(self) -> str:
        """A command that asks for the number of the last block."""
        asked = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}'
        return f"curl -s -H 'content-type: application/json' -d '{asked}' {self.url}"

    async def deploy(self, bytecode: str) -> str:
        """Put a contract on the chain, and give its address. May be called before `run`.

        Raises:
            ConfigError: the `chain` extra is missing.
        """
        return await self._work(lambda evm: evm.deploy(bytecode))

    async def run(self, stop: asyncio.Event, reachable: Callable[[], None]) -> None:
        """Serve until `stop` is set.

        Raises:
            ConfigError: the port is taken, or an extra is missing.
        """
        await self._work(lambda evm: evm.head)

        def begun(_: str, port: int) -> None:
            self._port = port
            reachable()

        try:
            await asgi.serve(self._application(), "127.0.0.1", self._port, stop, begun)
        except asgi.CannotListen as error:
            raise ConfigError(
                f"The embedded chain cannot listen on port {self._port}: {error.strerror}.", hint="Choose another one."
            ) from None

    def close(self) -> None:
        """End the thread, after what it is doing. The chain is gone then."""
        self._thread.shutdown(cancel_futures=True)

    async def _work(self, act: Callable[[Evm], _T]) -> _T:
        """Do something with the chain, in its thread."""

        def work() -> _T:
            if self._evm is None:
                self._evm = _new(self._chain_id)
            return act(self._evm)

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _application(self) -> Starlette:
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(routes=[Route("/", self._answer, methods=["POST"])])

    async def _answer(self, request: Request) -> Response:
        from starlette.responses import PlainTextResponse, Response

        from trunkline.demo.chain.methods import reply

        if not _OWN.allow_scope(request.scope):
            return PlainTextResponse(REFUSED, 403)
        # Else any page in a browser of this machine could ask: for this type a browser first asks whether it may.
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
            return PlainTextResponse(f"The content type must be {_JSON}.", 415)
        try:
            body = await bounded_body(request, MOST_BODY_BYTES, BODY_SECONDS)
        except Refused as refused:
            return PlainTextResponse(f"{refused.message}.", refused.status, refused.headers)
        data = await self._work(lambda evm: reply(evm, body))
        return Response(data, media_type=_JSON)


def _new(chain_id: int) -> Evm:
    try:
        from trunkline.demo.chain.evm import Evm
    except ImportError:
        raise ConfigError("The embedded chain needs the `chain` extra.", hint=adding("chain")) from None
    return Evm(chain_id)
