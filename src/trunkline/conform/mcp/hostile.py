"""Checks of input that no client should send: the connection lives on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from trunkline.base import jsontext
from trunkline.base.values import Value
from trunkline.conform.kit import Check, Tier
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.suite import SUITE
from trunkline.conform.mcp.vocabulary import Json

#: Deeper than any call, and than many parsers' stacks.
DEPTH = 100_000
#: A text that somebody may well paste, and that some readers of lines do not expect.
LONG_BYTES = 2 * 1024 * 1024


class HostileMessage(Value):
    """A line that no client should send."""

    name: str
    tier: Tier
    what: str
    data: bytes


def _call(arguments: object) -> bytes:
    message: Json = {"jsonrpc": "2.0", "id": 501, "method": "tools/call"}
    return jsontext.dumps({**message, "params": {"name": "conform_no_such_tool", "arguments": arguments}})


HOSTILE: tuple[HostileMessage, ...] = (
    HostileMessage("malformed", "MUST", "malformed JSON", b'{"jsonrpc":"2.0","id":'),
    HostileMessage("garbage", "MUST", "a line that is not JSON at all", b"hello \xe2\x82\xac"),
    HostileMessage("not-object", "SHOULD", "JSON that is not an object", b'"x"'),
    HostileMessage("utf8", "SHOULD", "invalid UTF-8", b'{"jsonrpc":"2.0","method":"\xff\xfe"}'),
    HostileMessage("deep", "SHOULD", "very deeply nested JSON", b"[" * DEPTH + b"]" * DEPTH),
    HostileMessage("response", "MUST", "the answer to a request that was never made",
                   b'{"jsonrpc":"2.0","id":991,"result":{}}'),
    HostileMessage("members", "SHOULD", "a message with members of wrong types",
                   b'{"jsonrpc":"2.0","id":{},"method":[],"params":7}'),
    HostileMessage("types", "MUST", "a call whose arguments are not an object", _call([1, 2])),
    HostileMessage("surrogate", "SHOULD", "a call with a lone surrogate", _call({"text": "a\ud800b"})),
    HostileMessage("long", "SHOULD", "a call of 2 MiB", _call({"text": "x" * LONG_BYTES})),
)  # fmt: skip


def _survived(hostile: HostileMessage) -> Callable[[Stage], Awaitable[None]]:
    async def scene(stage: Stage) -> None:
        link = await stage.ready()
        # The record knows of the request, if it is one; what it says would only fill the report.
        link.record.add("host", hostile.data[:200], {"id": 501, "method": hostile.name})
        link.write(hostile.data + b"\n")
        await stage.lives(link, hostile.what)

    return scene


for _each in HOSTILE:
    _text = f"The connection lives on after {_each.what}."
    SUITE.add(Check(f"mcp.bad.{_each.name}", _each.tier, "Base protocol", _text), _survived(_each))
