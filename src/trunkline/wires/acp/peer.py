"""One end of a connection: requests in both directions over one output, whatever carries the bytes.

Input comes as bytes (`feed`) or as whole messages (`receive`); output goes to a `LineOutput`, one message in each
`write`, so that a transport which frames messages can tell them apart. Requests of the peer are begun in the order in
which they come and answered in any; its notifications are handled at once, in their place among the requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any, Protocol

from trunkline.base.lines import LineOutput
from trunkline.core import fault_kinds
from trunkline.core.faults import AgentBusy, AgentFailed, Fault
from trunkline.wires.acp import codec
from trunkline.wires.acp.codec import JsonRpcError, RpcAnswer, RpcBroken, RpcId, RpcMessage, RpcNotification, RpcRequest
from trunkline.wires.acp.messages_base import AcpNotification, AcpRequest, AcpResult

logger = logging.getLogger(__name__)

#: Requests of the peer that may be open at one time: an editor has a handful of sessions, each with one prompt.
MAX_ANSWERING = 1000
#: Requests to the peer that may be open at one time.
MAX_ASKED = 1000


class PeerHandler(Protocol):
    """What this end does with what the other one asks and tells."""

    def asked(self, request: AcpRequest) -> Awaitable[AcpResult]:
        """Answer a request. What is done before this returns is done in order; the rest takes the time it takes.

        The awaitable may raise a `Fault`, which is the answer then. It is cancelled if the peer takes the request back.
        """

    def told(self, notification: AcpNotification) -> None:
        """Take note of a notification."""

    def broken(self, error: JsonRpcError) -> None:
        """The peer has sent what is no message; it was answered if `complains` says so."""


class AcpPeer:
    """One end of a connection."""

    def __init__(
        self,
        output: LineOutput,
        handler: PeerHandler,
        *,
        requests: Mapping[str, type[AcpRequest]],
        notifications: Mapping[str, type[AcpNotification]],
        complains: bool = True,
        max_line: int = codec.MAX_LINE,
    ) -> None:
        """`requests` and `notifications` are what the other end may say, by method.

        `complains`: whether what is no message is answered, as a server does; programs in the field print other things
        to their standard output, too.
        """
        self._output = output
        self._handler = handler
        self._requests = requests
        self._notifications = notifications
        self._complains = complains
        self._reader = codec.RpcReader(max_line)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._next_id = 0
        self._answering: dict[RpcId, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ended: Fault | None = None

    # What the other end sends.

    def feed(self, data: bytes) -> None:
        """Bytes of a stream of lines."""
        for message in self._reader.feed(data):
            self.take(message)

    def receive(self, message: bytes) -> None:
        """One whole message."""
        self.take(codec.decode(message))

    def take(self, message: RpcMessage) -> None:
        """One whole message that was decoded already."""
        if self._ended is not None:
            return
        match message:
            case RpcRequest():
                self._begin(message)
            case RpcNotification():
                self._note(message)
            case RpcAnswer():
                self._match(message)
            case RpcBroken(error=error, id=id):
                if self._complains:
                    self.write(codec.encode_error(id, error))
                    self.flush()
                self._handler.broken(error)

    def end(self, fault: Fault | None = None) -> None:
        """The other end sends no more: nothing that it was asked will be answered. What it asked for still is.

        A last line may lack its line feed. `fault` is what those get who wait for an answer.
        """
        if self._ended is not None:
            return
        for message in self._reader.finish():
            self.take(message)
        self._ended = fault or AgentFailed("The other end has closed the connection.")
        for answered in self._asked.values():
            if not answered.done():
                answered.set_exception(self._ended)
                # Whoever asked may be gone by now: then nobody has to hear of it.
                answered.exception()
        self._asked.clear()

    async def close(self) -> None:
        """Give up what is being answered. Idempotent."""
        self.end()
        # What was begun just now has its first step behind it then.
        await asyncio.sleep(0)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def answered(self) -> None:
        """Wait until all that was asked so far is answered."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    @property
    def has_ended(self) -> bool:
        """Whether the other end sends no more."""
        return self._ended is not None

    @property
    def is_answering(self) -> bool:
        """Whether something that was asked is not answered yet."""
        return bool(self._tasks)

    # What this end sends.

    async def ask(self, request: AcpRequest) -> Any:
        """Have the other end do something; gives the request's `result`. Cancelled, it takes the request back.

        Raises:
            JsonRpcError: the other end refused.
            RemoteProtocolError: it answered something else.
            AgentFailed: it is gone.
            AgentBusy: it has not answered too many others yet.
        """
        if self._ended is not None:
            raise self._ended
        if len(self._asked) >= MAX_ASKED:
            raise AgentBusy(f"{MAX_ASKED} requests are waiting for the other end: this one was not sent.")
        number, self._next_id = self._next_id, self._next_id + 1
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.write(codec.encode_request(number, request))
        self._asked[number] = answered
        self.flush()
        try:
            result = await answered
        except asyncio.CancelledError:
            if self._asked.pop(number, None) is not None:
                self.write(codec.encode_cancel(number))
                self.flush()
            raise
        return codec.decode_result(request.result, result, request.method)

    def tell(self, notification: AcpNotification) -> None:
        """Tell the other end something."""
        self.write(codec.encode_notification(notification))
        self.flush()

    def write(self, line: bytes) -> None:
        """Hold one encoded message until `flush`."""
        self._output.write(line)

    def flush(self) -> None:
        """Send what is held."""
        self._output.flush()

    @property
    def congested(self) -> bool:
        """Whether the other end is so far behind that no more should be said."""
        return self._output.congested

    async def drain(self) -> None:
        """Wait until it is not congested."""
        await self._output.drain()

    # Inside.

    def _begin(self, message: RpcRequest) -> None:
        kind = self._requests.get(message.method)
        try:
            if kind is None:
                raise codec.unknown_method(message.method)
            if len(self._tasks) >= MAX_ANSWERING:
                raise AgentBusy(f"{MAX_ANSWERING} requests are open: this one was not taken.")
            answering = self._handler.asked(codec.decode_params(kind, message.params))
        except Fault as fault:
            self._refuse(message.id, fault)
            return
        except Exception as error:
            logger.exception("`%s` could not be begun", message.method)
            self._refuse(message.id, fault_kinds.of(error))
            return
        self._start(self._answer(message, answering), message)

    def _start(self, work: Coroutine[Any, Any, None], message: RpcRequest) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"answer {message.method}")
        self._tasks.add(task)
        self._answering[message.id] = task
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: RpcRequest, answering: Awaitable[AcpResult]) -> None:
        try:
            line = codec.encode_result(message.id, await answering)
        except asyncio.CancelledError:
            line = codec.encode_error(message.id, JsonRpcError(codec.REQUEST_CANCELLED, "The request was cancelled"))
        except Fault as fault:
            line = codec.encode_error(message.id, fault)
        except Exception as error:
            logger.exception("`%s` could not be answered", message.method)
            line = codec.encode_error(message.id, fault_kinds.of(error))
        if self._answering.get(message.id) is asyncio.current_task():
            del self._answering[message.id]
        self.write(line)
        self.flush()

    def _refuse(self, id: RpcId, fault: Fault) -> None:
        self.write(codec.encode_error(id, fault))
        self.flush()

    def _note(self, message: RpcNotification) -> None:
        if message.method == codec.CANCEL_REQUEST:
            self._cancel(message.params)
            return
        kind = self._notifications.get(message.method)
        if kind is None:
            logger.debug("A notification of an unknown method was left aside")
            return
        try:
            self._handler.told(codec.decode_params(kind, message.params))
        except Fault as fault:
            # There is no answer to a notification, not even that it was a bad one.
            logger.warning("%s", fault)
        except Exception:
            logger.exception("`%s` could not be taken note of", message.method)

    def _cancel(self, params: Any) -> None:
        wanted = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(wanted, str | int) and not isinstance(wanted, bool) and wanted in self._answering:
            # After its first step, which a task that was cancelled before would never do: and nobody would answer.
            asyncio.get_running_loop().call_soon(self._answering[wanted].cancel)

    def _match(self, message: RpcAnswer) -> None:
        if type(message.id) is not int:
            return
        answered = self._asked.pop(message.id, None)
        if answered is None or answered.done():
            return
        if message.error is not None:
            answered.set_exception(message.error)
        else:
            answered.set_result(message.result)
