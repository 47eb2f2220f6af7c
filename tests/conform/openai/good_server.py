"""A server that does everything right as OpenAI's clients see it. Bad habits are subclasses of it."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MODEL = "good"
KEY = "sk-test-0123456789abcdef"
#: The most bytes of a body.
MAX_BODY = 16 * 1024 * 1024
ROLES = ("system", "developer", "user", "assistant", "tool")

_numbers = itertools.count(1)


class Refusal(Exception):
    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code


class HungUp(Exception):
    """The client has."""


class GoodServer:
    needs_key = True
    offers_responses = True
    offers_tools = True

    def __init__(self) -> None:
        self.responses: dict[str, list[str]] = {}
        """What was said up to each."""

    # One request.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = "/" + scope["path"].split("/v1/", 1)[-1]
        try:
            self.check_key(scope, path)
            body = await self.body(receive)
            await self.route(scope["method"], path, body, send)
        except Refusal as refusal:
            await self.refuse(send, refusal)
        except HungUp:
            self.on_hang_up()

    def on_hang_up(self) -> None:
        """For habits."""

    def check_key(self, scope: Scope, path: str) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        if self.needs_key and given != f"Bearer {KEY}":
            self.on_wrong_key(given)

    def on_wrong_key(self, given: str) -> None:
        raise Refusal(401, "The key is not right.", code="invalid_api_key")

    async def body(self, receive: Receive) -> bytes:
        data = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HungUp
            data += message.get("body", b"")
            if not message.get("more_body"):
                break
        # Only now: what is said before everything was read may be lost on the way.
        if len(data) > MAX_BODY:
            self.on_huge()
        return bytes(data)

    def on_huge(self) -> None:
        raise Refusal(413, "Too large.")

    async def route(self, method: str, path: str, body: bytes, send: Send) -> None:
        if (method, path) == ("GET", "/models"):
            await self.json(send, {"object": "list", "data": [self.model(), self.model("other")]})
        elif method == "GET" and path.startswith("/models/"):
            await self.json(send, self.one(path.removeprefix("/models/")))
        elif (method, path) == ("POST", "/chat/completions"):
            await self.chat(self.request(body), send)
        elif (method, path) == ("POST", "/responses") and self.offers_responses:
            await self.respond(self.request(body), send)
        elif (method, path) == ("POST", "/embeddings"):
            await self.json(send, self.embed(self.request(body)))
        else:
            await self.on_no_route(method, path, send)

    async def on_no_route(self, method: str, path: str, send: Send) -> None:
        raise Refusal(405 if path == "/chat/completions" else 404, "No such thing.")

    def request(self, body: bytes) -> dict[str, Any]:
        try:
            found = json.loads(body.decode("utf-8"), parse_float=self.number, parse_int=self.number)
        except (ValueError, RecursionError):
            return self.on_broken(body)
        if not isinstance(found, dict):
            return self.on_no_object(found)
        return found

    def number(self, text: str) -> Any:
        if len(text) > 300 or "e" in text:
            raise ValueError(text)
        return float(text) if "." in text else int(text)

    def on_broken(self, body: bytes) -> dict[str, Any]:
        raise Refusal(400, "That is not JSON.")

    def on_no_object(self, found: Any) -> dict[str, Any]:
        raise Refusal(400, "That is not an object.")

    # Models.

    def model(self, name: str = MODEL) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "test"}

    def one(self, name: str) -> dict[str, Any]:
        if name not in (MODEL, "other"):
            return self.on_unknown_model(name)
        return self.model(name)

    def on_unknown_model(self, name: str) -> dict[str, Any]:
        raise Refusal(404, f"There is no model `{name}`.", "model", "model_not_found")

    def check_model(self, request: dict[str, Any]) -> None:
        if "model" not in request:
            self.on_no_model()
        elif request["model"] not in (MODEL, "other"):
            self.on_unknown_model(str(request["model"]))

    def on_no_model(self) -> None:
        raise Refusal(400, "`model` is missing.", "model")

    # Chat.

    async def chat(self, request: dict[str, Any], send: Send) -> None:
        said = self.read_chat(request)
        text = self.answer(said[-1], len(said), request)
        calls = self.calls(said[-1], request)
        text, finish = self.cut(text, request, request.get("max_tokens") or request.get("max_completion_tokens"))
        if request.get("stream"):
            await self.stream(send, self.chunks(request, text, finish, calls))
        else:
            await self.json(send, self.completion(request, text, finish, calls))

    def read_chat(self, request: dict[str, Any]) -> list[str]:
        self.check_model(request)
        messages = request.get("messages")
        if messages is None and "messages" not in request:
            return self.on_no_messages()
        if not isinstance(messages, list):
            return self.on_wrong_messages()
        if not messages:
            return self.on_empty()
        said = [self.read_message(each) for each in messages]
        self.check_options(request)
        return [text for message, text in zip(messages, said, strict=True) if message.get("role") in ("user", "tool")]

    def on_no_messages(self) -> list[str]:
        raise Refusal(400, "`messages` is missing.", "messages")

    def on_wrong_messages(self) -> list[str]:
        raise Refusal(400, "`messages` is not a list.", "messages")

    def on_empty(self) -> list[str]:
        raise Refusal(400, "`messages` is empty.", "messages")

    def read_message(self, message: Any) -> str:
        if not isinstance(message, dict) or "role" not in message:
            raise Refusal(400, "A message is none.", "messages")
        if message["role"] not in ROLES:
            self.on_unknown_role()
        return self.read_content(message.get("content"))

    def on_unknown_role(self) -> None:
        raise Refusal(400, "There is no such role.", "messages")

    def read_content(self, content: Any) -> str:
        if isinstance(content, list):
            return self.read_parts(content)
        if content is not None and not isinstance(content, str):
            raise Refusal(400, "A content is none.", "messages")
        return content or ""

    def read_parts(self, parts: list[Any]) -> str:
        return "".join(part["text"] for part in parts)

    def check_options(self, request: dict[str, Any]) -> None:
        kinds: dict[str, Any] = {"stream": bool, "temperature": int | float, "max_tokens": int, "stop": str | list}
        for name, kind in kinds.items():
            if request.get(name) is not None and not isinstance(request[name], kind):
                raise Refusal(400, f"`{name}` is not of its type.", name)
        if (request.get("max_tokens") or 1) < 1:
            self.on_negative()
        if (request.get("n") or 1) > 1:
            self.on_several()
        if request.get("tools") and not self.offers_tools:
            raise Refusal(400, "No tools here.", "tools")

    def on_negative(self) -> None:
        raise Refusal(400, "Too few.", "max_tokens")

    def on_several(self) -> None:
        raise Refusal(400, "One at a time.", "n")

    # What the model says.

    def answer(self, text: str, count: int, request: dict[str, Any]) -> str:
        if found := re.findall("(?s)<<(.*?)>>", text):
            return str(found[-1])
        if "from 1 to 2000" in text:
            return "\n".join(map(str, range(1, 200)))
        if "How many messages" in text:
            return str(count)
        if "JSON object" in text:
            return self.json_text(request.get("response_format") or {})
        return "hello"

    def json_text(self, form: dict[str, Any]) -> str:
        return '{"answer": 42}'

    def calls(self, text: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        if "weather" not in text or not request.get("tools"):
            return []
        function = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
        return [{"id": f"call_{next(_numbers)}", "type": "function", "function": function}]

    def cut(self, text: str, request: dict[str, Any], limit: int | None) -> tuple[str, str]:
        stops = request.get("stop") or []
        places = [text.find(each) for each in ([stops] if isinstance(stops, str) else stops)]
        if found := [place for place in places if place >= 0]:
            return text[: min(found)], "stop"
        if limit and len(text) > 4 * limit:
            return text[: 4 * limit], "length"
        return text, "stop"

    # Completions.

    def head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{next(_numbers)}", "object": kind, "created": int(time.time()), "model": MODEL}

    def usage(self, text: str) -> Any:
        return {"prompt_tokens": 7, "completion_tokens": len(text) // 4 + 1, "total_tokens": len(text) // 4 + 8}

    def completion(
        self, request: dict[str, Any], text: str, finish: str, calls: list[dict[str, Any]]
    ) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message, finish = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return {**self.head("chat.completion"), "choices": [choice], "usage": self.usage(text)}

    async def chunks(
        self, request: dict[str, Any], text: str, finish: str, calls: list[dict[str, Any]]
    ) -> AsyncIterator[bytes]:
        head = self.head("chat.completion.chunk")
        deltas = [self.first_delta(), *({"content": piece} for piece in self.pieces(text))]
        if calls:
            deltas, finish = [self.first_delta(), *self.call_deltas(calls)], "tool_calls"
        for delta in deltas:
            yield self.event(self.chunk(head, delta, None))
            await self.pause()
        yield self.event(self.chunk(head, {}, finish))
        if (request.get("stream_options") or {}).get("include_usage"):
            yield self.event(self.usage_chunk(head, text))
        yield self.done()

    def first_delta(self) -> dict[str, Any]:
        return {"role": "assistant", "content": ""}

    def call_deltas(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        begun = [{**calls[0], "index": 0, "function": {**calls[0]["function"], "arguments": ""}}]
        pieces = [{"index": 0, "function": {"arguments": each}} for each in ('{"city":', ' "Paris"}')]
        return [{"tool_calls": begun}, *({"tool_calls": [piece]} for piece in pieces)]

    def pieces(self, text: str) -> list[str]:
        return [text[start : start + 5] for start in range(0, len(text), 5)]

    def chunk(self, head: dict[str, Any], delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]}

    def usage_chunk(self, head: dict[str, Any], text: str) -> dict[str, Any]:
        return {**head, "choices": [], "usage": self.usage(text)}

    def done(self) -> bytes:
        return b"data: [DONE]\n\n"

    async def pause(self) -> None:
        await asyncio.sleep(0)

    # Responses.

    async def respond(self, request: dict[str, Any], send: Send) -> None:
        self.check_model(request)
        if "input" not in request:
            self.on_no_input()
        said = [*self.before(request), self.read_input(request.get("input"))]
        text, finish = self.cut(self.answer(said[-1], len(said), request), {}, request.get("max_output_tokens"))
        id = f"resp_{next(_numbers)}"
        self.responses[id] = said
        if request.get("stream"):
            await self.stream(send, self.response_events(id, text))
        else:
            await self.json(send, self.response(id, text, finish))

    def on_no_input(self) -> None:
        raise Refusal(400, "`input` is missing.", "input")

    def before(self, request: dict[str, Any]) -> list[str]:
        previous = request.get("previous_response_id")
        if previous is not None and previous not in self.responses:
            return self.on_unknown_response()
        return self.responses[previous] if previous else []

    def on_unknown_response(self) -> list[str]:
        raise Refusal(400, "There is no such response.", "previous_response_id", "previous_response_not_found")

    def read_input(self, given: Any) -> str:
        return given if isinstance(given, str) else self.read_content(given[-1]["content"])

    def response(self, id: str, text: str, finish: str = "stop", status: str = "completed") -> dict[str, Any]:
        found = {
            "id": id, "object": "response", "created_at": int(time.time()), "status": status, "model": MODEL,
            "output": self.output(id, text) if status == "completed" else [], "error": None,
            "incomplete_details": None, "usage": self.response_usage(text) if status == "completed" else None,
        }  # fmt: skip
        if finish == "length":
            found |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        return found

    def response_usage(self, text: str) -> Any:
        return {"input_tokens": 7, "output_tokens": len(text) // 4 + 1, "total_tokens": len(text) // 4 + 8}

    def output(self, id: str, text: str) -> list[dict[str, Any]]:
        return [self.item(id, "completed", [self.part(text)])]

    def item(self, id: str, status: str, content: list[Any]) -> dict[str, Any]:
        return {"type": "message", "id": f"msg_{id}", "status": status, "role": "assistant", "content": content}

    def part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": []}

    def events_of(self, id: str, text: str) -> list[dict[str, Any]]:
        place = {"item_id": f"msg_{id}", "output_index": 0, "content_index": 0}
        started = self.response(id, text, status="in_progress")
        return [
            {"type": "response.created", "response": started},
            {"type": "response.in_progress", "response": started},
            {"type": "response.output_item.added", "output_index": 0, "item": self.item(id, "in_progress", [])},
            {"type": "response.content_part.added", **place, "part": self.part("")},
            *({"type": "response.output_text.delta", **place, "delta": each} for each in self.pieces(text)),
            {"type": "response.output_text.done", **place, "text": text},
            {"type": "response.content_part.done", **place, "part": self.part(text)},
            {"type": "response.output_item.done", "output_index": 0,
             "item": self.item(id, "completed", [self.part(text)])},
            {"type": "response.completed", "response": self.response(id, text)},
        ]  # fmt: skip

    async def response_events(self, id: str, text: str) -> AsyncIterator[bytes]:
        for number, event in enumerate(self.events_of(id, text)):
            yield self.named_event({**event, "sequence_number": number})

    def named_event(self, event: dict[str, Any]) -> bytes:
        return b"event: " + str(event["type"]).encode() + b"\n" + self.event(event)

    # Embeddings.

    def embed(self, request: dict[str, Any]) -> dict[str, Any]:
        self.check_model(request)
        texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
        data = [
            {"object": "embedding", "index": index, "embedding": self.packed(self.vector(text), request)}
            for index, text in enumerate(texts)
        ]
        return {"object": "list", "data": data, "model": MODEL, "usage": {"prompt_tokens": 1, "total_tokens": 1}}

    def vector(self, text: str) -> list[float]:
        return [float(len(text)), 0.5, 0.25]

    def packed(self, vector: list[float], request: dict[str, Any]) -> Any:
        if request.get("encoding_format") != "base64":
            return vector
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()

    # Answers.

    def event(self, data: dict[str, Any]) -> bytes:
        return b"data: " + self.encode(data) + b"\n\n"

    def encode(self, data: Any) -> bytes:
        return json.dumps(data).encode()

    async def refuse(self, send: Send, refusal: Refusal) -> None:
        kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
        error = {"message": refusal.message, "type": kind, "param": refusal.param, "code": refusal.code}
        await self.json(send, {"error": error}, refusal.status)

    async def json(self, send: Send, data: Any, status: int = 200, kind: bytes = b"application/json") -> None:
        await self.start(send, status, kind)
        await send({"type": "http.response.body", "body": self.encode(data)})

    async def start(self, send: Send, status: int, kind: bytes) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})

    async def stream(self, send: Send, events: AsyncIterator[bytes]) -> None:
        await self.start(send, 200, self.stream_type())
        async for event in events:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def stream_type(self) -> bytes:
        return b"text/event-stream; charset=utf-8"
