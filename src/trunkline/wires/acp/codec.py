"""JSON-RPC 2.0 in lines, and back. Sans-IO: no files, processes, clocks or tasks.

`RpcReader` is fed bytes and gives what they complete, in order; `decode` takes one message that came by itself, as in a
frame of a WebSocket. What is not a message is a `RpcBroken`, with the answer that JSON-RPC has for it. What an answer
to a request or a member of `params` means is for `messages`; here they are parsed JSON.
"""

from __future__ import annotations

from typing import Any

from trunkline.base import jsontext, shapes
from trunkline.base.jsontext import quote, quote_ascii
from trunkline.base.values import Value
from trunkline.core.fault_table import form_of, told
from trunkline.core.faults import Fault, LocalProtocolError, RemoteProtocolError
from trunkline.wires import jsonrpc
from trunkline.wires.acp.messages_base import AcpNotification, AcpRequest, AcpResult
from trunkline.wires.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

#: The longest line that is read, in bytes: room for a picture of twelve megabytes, and no way to exhaust memory.
MAX_LINE = 16 * 1024 * 1024

#: The longest id of a request, in characters. It is repeated in the answer.
MAX_ID = 1024

#: How much of a method's name is repeated in an error.
_SHOWN_CHARS = 80

AUTH_REQUIRED = -32000
REQUEST_CANCELLED = -32800

#: The notification by which either end takes a request back.
CANCEL_REQUEST = "$/cancel_request"

RpcId = str | int | float | None


class JsonRpcError(RemoteProtocolError):
    """An error by JSON-RPC's own numbers: one to be answered, or one that the peer has answered."""

    def __init__(self, code: int, message: str, data: Any = None, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.data = data


class RpcRequest(Value):
    """To be answered under its id."""

    id: RpcId
    method: str
    params: Any = None


class RpcNotification(Value):
    """Not to be answered."""

    method: str
    params: Any = None


class RpcAnswer(Value):
    """The answer to a request: `result`, unless there is an `error`."""

    id: RpcId
    result: Any = None
    error: JsonRpcError | None = None


class RpcBroken(Value):
    """Not a message. `id` is that of the request which it may have been meant to be."""

    error: JsonRpcError
    id: RpcId = None


RpcMessage = RpcRequest | RpcNotification | RpcAnswer | RpcBroken


class RpcReader:
    """Reads the lines of a peer."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._lines = jsonrpc.ObjectLines(max_line)

    def feed(self, data: bytes) -> list[RpcMessage]:
        """Take some bytes and give what they complete. Whatever a line is, the next one is a new start."""
        return [_message(each) for each in self._lines.feed(data)]

    def finish(self) -> list[RpcMessage]:
        """The peer has closed the stream: a last line may lack its line feed."""
        return [_message(each) for each in self._lines.finish()]


def too_long(size: int, limit: int = MAX_LINE) -> RpcMessage:
    """A message over the limit."""
    return _message(jsonrpc.too_long(size, limit))


def decode(line: bytes) -> RpcMessage:
    """One message."""
    return _message(jsonrpc.parse(line))


def _message(data: dict[str, Any] | jsonrpc.NoObject) -> RpcMessage:
    if isinstance(data, jsonrpc.NoObject):
        return _broken(data.code, data.message)
    found = data.get("id")
    if not _is_id(found):
        return _broken(INVALID_REQUEST, f"`id` must be a string of at most {MAX_ID} characters, a number or null")
    if "method" not in data and ("result" in data or "error" in data):
        return RpcAnswer(found, data.get("result"), _error_of(data["error"]) if data.get("error") is not None else None)
    if data.get("jsonrpc") != "2.0":
        return _broken(INVALID_REQUEST, '`jsonrpc` must be "2.0"', found)
    method = data.get("method")
    if not isinstance(method, str):
        return _broken(INVALID_REQUEST, "`method` is missing" if method is None else "`method` must be a string", found)
    params = data.get("params")
    if "id" in data:
        return RpcRequest(found, method, params)
    return RpcNotification(method, params)


def decode_params(kind: type[AcpRequest] | type[AcpNotification], params: Any) -> Any:
    """What a request or a notification says: a `kind`.

    Raises:
        JsonRpcError: that is not what its method takes.
    """
    try:
        return shapes.decode(kind, {} if params is None else params)
    except shapes.ShapeError as error:
        where = f"`{error.path}` {error.problem}" if error.path else f"`params` {error.problem}"
        raise JsonRpcError(INVALID_PARAMS, f"Invalid `{kind.method}`: {where}") from None


def decode_result(kind: type[AcpResult], result: Any, method: str) -> Any:
    """What an answer says: a `kind`. Many agents and clients say `null` where there is nothing to say.

    Raises:
        RemoteProtocolError: that is not how the method is answered.
    """
    try:
        return shapes.decode(kind, {} if result is None else result)
    except shapes.ShapeError as error:
        raise RemoteProtocolError(f"The answer to `{method}` is not one: {error}") from None


def unknown_method(method: str) -> JsonRpcError:
    """There is no such method."""
    shown = method[:_SHOWN_CHARS]
    return JsonRpcError(METHOD_NOT_FOUND, f"Unknown method: {shown}", {"method": shown})


def encode_request(id: int, request: AcpRequest) -> bytes:
    """The line of a request."""
    return _line({"jsonrpc": "2.0", "id": id, "method": request.method, "params": shapes.encode(request)})


def encode_notification(notification: AcpNotification) -> bytes:
    """The line of a notification."""
    return _line({"jsonrpc": "2.0", "method": notification.method, "params": shapes.encode(notification)})


def encode_cancel(id: int) -> bytes:
    """The line that takes a request of ours back."""
    return _line({"jsonrpc": "2.0", "method": CANCEL_REQUEST, "params": {"requestId": id}})


def encode_result(id: RpcId, result: AcpResult) -> bytes:
    """The line of an answer."""
    return _line({"jsonrpc": "2.0", "id": id, "result": shapes.encode(result)})


def encode_error(id: RpcId, fault: Fault) -> bytes:
    """The line of a failure: by its own number, or by the one that its kind has."""
    if isinstance(fault, JsonRpcError):
        code, data = fault.code, fault.data
    else:
        code, data = form_of(fault.kind).jsonrpc, {"kind": fault.kind, "retryable": fault.retryable}
    error: dict[str, Any] = {"code": code, "message": told(fault.kind, str(fault))}
    if data is not None:
        error["data"] = data
    return _line({"jsonrpc": "2.0", "id": id, "error": error})


def text_line(kind: str, session: str, text: str, message: str | None = None) -> bytes:
    """The line of an `agent_message_chunk` or a thought, which come by the thousand: no object, no dictionary.

    `message` is an id of ours, which needs no escaping; a session's may have been chosen by a client.
    """
    named = "" if message is None else f',"messageId":"{message}"'
    head = f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":{quote(session)},"update":{{'
    head += f'"sessionUpdate":"{kind}","content":{{"type":"text","text":'
    try:
        return f"{head}{quote(text)}}}{named}}}}}}}\n".encode()
    except UnicodeEncodeError:
        return f"{head}{quote_ascii(text)}}}{named}}}}}}}\n".encode()


def _line(message: dict[str, Any]) -> bytes:
    try:
        return jsontext.dumps(message) + b"\n"
    except TypeError as error:
        name = message.get("method", "an answer")
        raise LocalProtocolError(f"`{name}` cannot be written: {error}") from None


def _broken(code: int, problem: str, id: RpcId = None) -> RpcBroken:
    return RpcBroken(JsonRpcError(code, problem), id)


def _is_id(found: Any) -> bool:
    if isinstance(found, str):
        return len(found) <= MAX_ID
    return found is None or (isinstance(found, int | float) and not isinstance(found, bool))


def _error_of(said: Any) -> JsonRpcError:
    """The error that a peer tells, whatever it left out."""
    if not isinstance(said, dict):
        return JsonRpcError(INTERNAL_ERROR, str(said))
    code, message = said.get("code"), said.get("message")
    return JsonRpcError(
        code if type(code) is int else INTERNAL_ERROR,
        message if isinstance(message, str) and message else "The other end gave no reason.",
        said.get("data"),
    )
