"""A server through our wire code that offers what the scenarios of the protocol's own conformance suite name.

It shows that the wire carries whatever MCP has, not only what our agents need of it: pictures, sound, logging,
sampling, subscriptions, streams that end and are taken up again.
"""

from __future__ import annotations

import asyncio
import base64
import json
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import SamplingMessage, TextContent

from tests.support.mcp_face import FaceKeeper
from trunkline.base import asgi
from trunkline.core import faults
from trunkline.wires.mcp.http import McpHttp
from trunkline.wires.mcp.messages import Json
from trunkline.wires.mcp.offer import Caller, Handler, Offer
from trunkline.wires.mcp.serve import Client, SdkCaller

#: A red pixel, and a moment of silence.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
SILENCE = base64.b64encode(
    b"RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00"
    b"data\x02\x00\x00\x00\x00\x00"
).decode()

#: Between two signs of life, so that a client can tell them apart.
MOMENT = 0.05

Tool = Callable[[SdkCaller, Mapping[str, Any]], Awaitable[Json]]


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def content(*blocks: Json) -> Json:
    return {"content": list(blocks)}


IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def resource(uri: str, kind: str, words: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


async def _text(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    return content(text("This is a simple text response for testing."))


async def _image(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    return content(IMAGE)


async def _audio(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    return content({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"})


async def _embedded(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    return content(resource("test://embedded-resource", "text/plain", "This is an embedded resource content."))


async def _mixed(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    data = json.dumps({"test": "data", "value": 123})
    mixed = resource("test://mixed-content-resource", "application/json", data)
    return content(text("Multiple content types test:"), IMAGE, mixed)


async def _logging(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await caller.context.session.send_log_message("info", words, related_request_id=caller.context.request_id)
        await asyncio.sleep(MOMENT)
    return content(text("It was logged."))


async def _failing(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    raise faults.ToolError("This tool intentionally returns an error for testing")


async def _progress(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    for done in (0, 50, 100):
        await caller.context.session.report_progress(done, 100)
        await asyncio.sleep(MOMENT)
    return content(text("It has progressed."))


async def _sampling(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    prompt = SamplingMessage(role="user", content=TextContent(type="text", text=arguments["prompt"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        said = await caller.context.session.create_message(
            [prompt], max_tokens=100, related_request_id=caller.context.request_id
        )
    return content(text(f"LLM response: {getattr(said.content, 'text', '')}"))


def _asking(message: str, properties: Json, required: list[str]) -> Tool:
    async def ask(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
        form = {"type": "object", "properties": properties, "required": required}
        answer = await caller.ask(arguments.get("message", message), form)
        if answer is None:
            raise faults.Unsupported("This client cannot be asked.")
        return content(text(f"Elicitation completed: {json.dumps(answer)}"))

    return ask


async def _reconnecting(caller: SdkCaller, arguments: Mapping[str, Any]) -> Json:
    if caller.context.close_sse_stream is not None:
        await caller.context.close_sse_stream()
    await asyncio.sleep(MOMENT)
    return content(text("The stream was taken up again."))


_NAMED = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
_PLAIN = ["option1", "option2", "option3"]
_ANYTHING: Json = {"type": "object"}

TOOLS: Mapping[str, tuple[Json, Tool]] = {
    "test_simple_text": (_ANYTHING, _text),
    "test_image_content": (_ANYTHING, _image),
    "test_audio_content": (_ANYTHING, _audio),
    "test_embedded_resource": (_ANYTHING, _embedded),
    "test_multiple_content_types": (_ANYTHING, _mixed),
    "test_tool_with_logging": (_ANYTHING, _logging),
    "test_error_handling": (_ANYTHING, _failing),
    "test_tool_with_progress": (_ANYTHING, _progress),
    "test_sampling": ({"type": "object", "properties": {"prompt": {"type": "string"}}}, _sampling),
    "test_elicitation": (
        {"type": "object", "properties": {"message": {"type": "string"}}},
        _asking("", {"username": {"type": "string"}, "email": {"type": "string"}}, ["username", "email"]),
    ),
    "test_elicitation_sep1034_defaults": (
        _ANYTHING,
        _asking(
            "Check these",
            {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": True},
            },
            [],
        ),
    ),
    "test_elicitation_sep1330_enums": (
        _ANYTHING,
        _asking(
            "Choose",
            {
                "untitledSingle": {"type": "string", "enum": _PLAIN},
                "titledSingle": {"type": "string", "oneOf": _NAMED},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _PLAIN}},
                "titledMulti": {"type": "array", "items": {"anyOf": _NAMED}},
            },
            [],
        ),
    ),
    "test_reconnection": (_ANYTHING, _reconnecting),
    "json_schema_2020_12_tool": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}}}},
            "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
            "additionalProperties": False,
        },
        _text,
    ),
}

PROMPTS: Mapping[str, Callable[[Mapping[str, str]], list[Json]]] = {
    "test_simple_prompt": lambda given: [text("This is a simple prompt for testing.")],
    "test_prompt_with_arguments": lambda given: [
        text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
    ],
    "test_prompt_with_embedded_resource": lambda given: [
        resource(given["resourceUri"], "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."),
    ],
    "test_prompt_with_image": lambda given: [IMAGE, text("Please analyze the image above.")],
}
_ARGUMENTS = {
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
}


class FixtureOffer:
    """What the scenarios name."""

    name = "fixture"
    instructions = "For tests."

    def __init__(self) -> None:
        self.handlers: Mapping[str, Handler] = {
            "tools/list": self._tools,
            "tools/call": self._call,
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "resources/read": self._read,
            "resources/subscribe": self._noted,
            "resources/unsubscribe": self._noted,
            "prompts/list": self._prompts,
            "prompts/get": self._prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._noted,
        }

    async def _tools(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        return {
            "tools": [
                {"name": name, "description": f"For the scenario of {name}", "inputSchema": schema}
                for name, (schema, _) in TOOLS.items()
            ]
        }

    async def _call(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        if params["name"] not in TOOLS:
            raise faults.RemoteProtocolError(f"Unknown tool: {params['name']}")
        return await TOOLS[params["name"]][1](cast("SdkCaller", caller), params.get("arguments") or {})

    async def _resources(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        kinds = {"static-text": "text/plain", "static-binary": "image/png", "watched-resource": "text/plain"}
        return {
            "resources": [
                {"uri": f"test://{name}", "name": name, "description": name, "mimeType": kind}
                for name, kind in kinds.items()
            ]
        }

    async def _templates(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        return {"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "data"}]}

    async def _read(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        uri = params["uri"]
        if uri == "test://static-binary":
            found: Json = {"mimeType": "image/png", "blob": PIXEL}
        elif uri.startswith("test://template/"):
            data = {"id": uri.split("/")[3], "templateTest": True}
            found = {"mimeType": "application/json", "text": json.dumps(data)}
        elif uri in ("test://static-text", "test://watched-resource"):
            found = {"mimeType": "text/plain", "text": "This is the content of the static text resource."}
        else:
            raise faults.SessionNotFound(f"There is no resource `{uri}`.")
        return {"contents": [{"uri": uri, **found}]}

    async def _noted(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        return {}

    async def _prompts(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        return {
            "prompts": [
                {
                    "name": name,
                    "description": name,
                    "arguments": [
                        {"name": each, "description": each, "required": True} for each in _ARGUMENTS.get(name, ())
                    ],
                }
                for name in PROMPTS
            ]
        }

    async def _prompt(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        if params["name"] not in PROMPTS:
            raise faults.RemoteProtocolError(f"Unknown prompt: {params['name']}")
        blocks = PROMPTS[params["name"]](params.get("arguments") or {})
        return {"messages": [{"role": "user", "content": block} for block in blocks]}

    async def _complete(self, caller: Caller, params: Mapping[str, Any]) -> Json:
        return {"completion": {"values": ["paris", "park"], "total": 2, "hasMore": False}}


class ServedFace:
    """A face on loopback: its URL, and whose requests it takes them for."""

    def __init__(self, keeper: FaceKeeper) -> None:
        self.keeper = keeper
        self.who = "tester"
        self.url = ""


@asynccontextmanager
async def served_face(offer: Offer, keeper: FaceKeeper | None = None) -> AsyncIterator[ServedFace]:
    """What is offered, over HTTP as long as the block lasts. A header `X-Who` says who asks."""
    served = ServedFace(keeper or FaceKeeper())
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=["127.0.0.1:*", "localhost:*"],
        allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
    )
    face = McpHttp(offer, security)
    await face.start()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        who = dict(scope["headers"]).get(b"x-who", b"tester").decode()
        await face(scope, receive, send, Client(served.keeper, who))

    stop, ready = asyncio.Event(), asyncio.Event()

    def reachable(host: str, port: int) -> None:
        served.url = f"http://{host}:{port}/mcp"
        ready.set()

    serving = asyncio.create_task(asgi.serve(app, "127.0.0.1", 0, stop, reachable))
    try:
        await ready.wait()
        yield served
    finally:
        await face.close()
        stop.set()
        await serving
