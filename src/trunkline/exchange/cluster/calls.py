"""What nodes ask of each other, by request and answer over NATS: a command for a session that another one owns.

    trunkline.node.RUN.call    {"do": "command", "session": ..., "by": ..., "command": {...}}

A request is made once. If no answer comes, nobody knows whether it was carried out, and the client is told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from trunkline.base import jsontext, log_context, trace_context
from trunkline.core.fault_kinds import of, of_kind
from trunkline.core.faults import Fault, MayBeDone, StoreUnavailable
from trunkline.exchange.cluster.nodes import ClusterNode
from trunkline.store.database import DatabaseGone
from trunkline.store.jetstream.errors import StreamError, translated
from trunkline.store.jetstream.stream import SessionStream

logger = logging.getLogger(__name__)

#: How long an answer may take: an agent may be started for it.
CALL_SECONDS = 30.0
#: How often is looked meanwhile whether the other node counts as alive.
LOOK_SECONDS = 0.5
#: When to try again while the database does not answer, in seconds.
GONE_SECONDS = 5
#: What a message may hold besides the request.
_ROOM = 4096

#: The header that names the wire by which a client has asked.
_WIRE = "Trunkline-Wire"

Answer = Callable[[Mapping[str, Any]], Awaitable[Any]]


class NodeCalls:
    """Both ends."""

    def __init__(
        self, stream: SessionStream, answer: Answer, is_alive: Callable[[str, str], bool] = lambda node, run: True
    ) -> None:
        """`answer` does what another node asks for; its `Fault` is that node's. `is_alive`: whether a run of a node
        counts as alive: nobody waits for one that does not."""
        self._is_alive = is_alive
        self._stream = stream
        self._answer = answer
        self._subscription: Any = None
        self._under_way: set[asyncio.Task[None]] = set()

    async def start(self, run: str) -> None:
        """Answer what is asked of this run.

        Raises:
            StreamGone, StreamRefused: it cannot be asked now.
        """
        with translated():
            self._subscription = await self._stream.client.subscribe(self._subject(run), cb=self._heard)

    async def close(self) -> None:
        """Answer no more."""
        if self._subscription is not None:
            with suppress(StreamError), translated():
                await self._subscription.unsubscribe()
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way)

    async def ask(self, node: ClusterNode, request: Mapping[str, Any]) -> Any:
        """Have a node do something.

        Raises:
            StoreUnavailable: it is gone, and has done nothing.
            MayBeDone: it does not answer. It may have done it.
            Fault: what it says.
        """
        from nats.errors import Error, NoRespondersError

        data = jsontext.dumps(request)
        if len(data) + _ROOM > self._stream.client.max_payload:
            most = self._stream.client.max_payload
            raise StoreUnavailable(
                f"The session is on node `{node.name}`, and the message is longer than NATS takes ({most} bytes).",
                retryable=False,
                hint=f"Connect to {node.address or node.name}, or allow more with `max_payload` in NATS.",
            )
        try:
            answer = await self._answered(node, data)
        except NoRespondersError:
            raise StoreUnavailable(f"Node `{node.name}` is gone.", retryable=True, hint="Try again soon.") from None
        except (Error, OSError, TimeoutError) as error:
            told = f"Node `{node.name}` does not answer. It may have done what was asked."
            raise MayBeDone(told, retryable=True) from error
        found = jsontext.loads(answer.data)
        if "fault" in found:
            fault = of_kind(found["fault"], found["message"], retryable=found["retryable"])
            fault.retry_after = found.get("retry_after")
            raise fault
        return found.get("value")

    async def _answered(self, node: ClusterNode, data: bytes) -> Any:
        """The answer of a node, as long as it counts as alive.

        Raises:
            TimeoutError: there is none.
        """
        request = self._stream.client.request(self._subject(node.run), data, timeout=CALL_SECONDS, headers=_whence())
        asking = asyncio.ensure_future(request)
        try:
            while not (await asyncio.wait({asking}, timeout=LOOK_SECONDS))[0]:
                if not self._is_alive(node.name, node.run):
                    raise TimeoutError
            if asking.cancelled():
                # By the client library, which has lost its connection.
                raise TimeoutError
            return asking.result()
        finally:
            asking.cancel()

    def _subject(self, run: str) -> str:
        return f"{self._stream.prefix.removesuffix('.session')}.node.{run}.call"

    async def _heard(self, message: Any) -> None:
        task = asyncio.create_task(self._do(message), name="a request of another node")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _do(self, message: Any) -> None:
        whence: Mapping[str, str] = message.headers or {}
        log_context.add(wire=whence.get(_WIRE, "cluster"))
        trace_context.enter(trace_context.read(whence))
        try:
            value = {"value": await self._answer(jsontext.loads(message.data))}
        except DatabaseGone as error:
            logger.warning("the database does not answer: %s", error)
            gone = StoreUnavailable("The database does not answer.", retryable=True, hint="Try again later.")
            gone.retry_after = GONE_SECONDS
            value = _told(gone)
        except Exception as error:
            if not isinstance(error, Fault):
                logger.exception("a request of another node failed")
            value = _told(of(error))
        await message.respond(jsontext.dumps(value))


def _told(fault: Fault) -> dict[str, Any]:
    return {
        "fault": fault.kind,
        "message": str(fault),
        "retryable": fault.retryable,
        "retry_after": fault.retry_after,
    }


def _whence() -> dict[str, str] | None:
    """Where a request comes from, for the log and the traces of the node that it is made to."""
    wire = log_context.known("").get("wire")
    return {**trace_context.headers(), **({_WIRE: str(wire)} if wire else {})} or None
