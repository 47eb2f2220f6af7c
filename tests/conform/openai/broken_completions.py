"""Bad habits with models, completions and their streams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from tests.conform.openai.good_server import MODEL, GoodServer, Refusal, Send
from tests.conform.openai.habits_of_servers import habit

# Models


@habit("models.list", among=("models.list", "models.members"))
class ModelsAreNamesOnly(GoodServer):
    def model(self, name: str = MODEL) -> dict[str, Any]:
        return {**super().model(name), "object": "agent"}


@habit("models.list", "models.members", among=("models.list", "models.members"))
class ModelsWereMadeInTexts(GoodServer):
    def model(self, name: str = MODEL) -> dict[str, Any]:
        return {**super().model(name), "created": "2024"}


@habit("models.members")
class ModelsHaveNoOwner(GoodServer):
    def model(self, name: str = MODEL) -> dict[str, Any]:
        return {"id": name, "object": "model"}


@habit("models.named")
class HidesItsModel(GoodServer):
    async def json(self, send: Send, data: Any, status: int = 200, kind: bytes = b"application/json") -> None:
        if data.get("object") == "list" and data["data"][0]["object"] == "model":
            data["data"] = data["data"][1:]
        await super().json(send, data, status, kind)


@habit("models.one", "models.unknown")
class GivesAnotherModel(GoodServer):
    def one(self, name: str) -> dict[str, Any]:
        return self.model("other")


@habit("models.unknown")
class InventsModels(GoodServer):
    def one(self, name: str) -> dict[str, Any]:
        return self.model(name)


# Completions


WHOLE = ("chat.answer", "chat.shape", "chat.created", "chat.finish", "chat.ids", "chat.counted", "chat.history",
         "chat.remembers", "chat.parts", "chat.unicode", "chat.options")  # fmt: skip


@habit(*WHOLE, among=WHOLE)
class AlwaysFails(GoodServer):
    def read_chat(self, request: dict[str, Any]) -> list[str]:
        raise Refusal(500, "Out of order.")


class Completes(GoodServer):
    """Changes its completions."""

    def completion(
        self, request: dict[str, Any], text: str, finish: str, calls: list[dict[str, Any]]
    ) -> dict[str, Any]:
        return self.changed(super().completion(request, text, finish, calls))

    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        return data


@habit("chat.answer")
class IsTheUser(Completes):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        data["choices"][0]["message"]["role"] = "user"
        return data


@habit("chat.answer")
class AnswersInText(GoodServer):
    async def json(self, send: Send, data: Any, status: int = 200, kind: bytes = b"application/json") -> None:
        await super().json(send, data, status, b"text/plain")


@habit("chat.shape")
class HasNoObject(Completes):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        del data["object"]
        return data


@habit("chat.created")
class CreatedIsAText(Completes):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "created": str(data["created"])}


@habit("chat.created")
class CreatedInMilliseconds(Completes):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "created": data["created"] * 1000}


@habit("chat.finish")
class NeverFinishes(Completes):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        data["choices"][0]["finish_reason"] = None
        return data


@habit("chat.finish", "chat.reasons")
class FinishesInItsOwnWords(Completes):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        data["choices"][0]["finish_reason"] = "end_turn"
        return data


@habit("chat.usage")
class CannotAdd(GoodServer):
    def usage(self, text: str) -> Any:
        return {**super().usage(text), "total_tokens": 1}


@habit("chat.counted")
class CountsNothing(Completes):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "usage": None}


@habit("chat.ids")
class HasOneId(Completes):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "id": "chatcmpl-1"}


@habit("chat.history")
class KnowsNoDevelopers(GoodServer):
    def read_message(self, message: Any) -> str:
        if message.get("role") == "developer":
            raise Refusal(400, "There is no such role.")
        return super().read_message(message)


@habit("chat.remembers")
class HearsTheLastOnly(GoodServer):
    def answer(self, text: str, count: int, request: dict[str, Any]) -> str:
        return super().answer(text, 1, request)


@habit("chat.parts")
class TakesTextsOnly(GoodServer):
    def read_parts(self, parts: list[Any]) -> str:
        raise Refusal(400, "A content is a text.")


@habit("chat.unicode")
class KnowsAsciiOnly(GoodServer):
    def answer(self, text: str, count: int, request: dict[str, Any]) -> str:
        return super().answer(text, count, request).encode("ascii", "replace").decode()


@habit("chat.options")
class KnowsFewOptions(GoodServer):
    def check_options(self, request: dict[str, Any]) -> None:
        if "temperature" in request:
            raise Refusal(400, "There is no `temperature`.")
        super().check_options(request)


# Limits


@habit("limit.stop", "limit.stops", "limit.stop-stream", "limit.max-tokens", "limit.max-completion", "limit.max-stream")
class KnowsNoLimits(GoodServer):
    def cut(self, text: str, request: dict[str, Any], limit: int | None) -> tuple[str, str]:
        return text, "stop"


@habit("limit.stop")
class StopsAtListsOnly(GoodServer):
    def cut(self, text: str, request: dict[str, Any], limit: int | None) -> tuple[str, str]:
        stop = request.get("stop")
        return super().cut(text, {**request, "stop": None if isinstance(stop, str) else stop}, limit)


@habit("limit.stops", "limit.stop-stream")
class StopsAtTextsOnly(GoodServer):
    def cut(self, text: str, request: dict[str, Any], limit: int | None) -> tuple[str, str]:
        stop = request.get("stop")
        return super().cut(text, {**request, "stop": stop if isinstance(stop, str) else None}, limit)


@habit("limit.stop-stream", "limit.max-stream")
class StreamsEverything(GoodServer):
    def cut(self, text: str, request: dict[str, Any], limit: int | None) -> tuple[str, str]:
        return (text, "stop") if request.get("stream") else super().cut(text, request, limit)


@habit("limit.max-tokens", "limit.max-completion", "limit.max-stream")
class CutsAndCallsItAnEnd(GoodServer):
    def cut(self, text: str, request: dict[str, Any], limit: int | None) -> tuple[str, str]:
        return super().cut(text, request, limit)[0], "stop"


@habit("limit.max-completion")
class KnowsTheOldName(GoodServer):
    def read_chat(self, request: dict[str, Any]) -> list[str]:
        request.pop("max_completion_tokens", None)
        return super().read_chat(request)


@habit("limit.n")
class GivesOneOfTwo(GoodServer):
    def on_several(self) -> None:
        """One will do."""


@habit("limit.json", "limit.schema")
class TalksAboutJson(GoodServer):
    def json_text(self, form: dict[str, Any]) -> str:
        return "Here you are: {}"


@habit("limit.schema")
class FollowsNoSchema(GoodServer):
    def json_text(self, form: dict[str, Any]) -> str:
        return '{"answer": "forty-two"}'


# Streams


@habit("stream.type", among=("stream.type", "stream.refused"))
class StreamsText(GoodServer):
    def stream_type(self) -> bytes:
        return b"text/plain"


@habit("stream.text", among=("stream.text", "stream.done", "stream.shape"))
class StreamsNoText(GoodServer):
    def pieces(self, text: str) -> list[str]:
        return []


@habit("stream.done")
class NeverIsDone(GoodServer):
    def done(self) -> bytes:
        return b": bye\n\n"


class Chunks(GoodServer):
    """Changes its chunks."""

    def chunk(self, head: dict[str, Any], delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
        return self.changed(super().chunk(head, delta, finish))

    def changed(self, chunk: dict[str, Any]) -> dict[str, Any]:
        return chunk


@habit("stream.shape")
class ChunksAreCompletions(Chunks):
    def changed(self, chunk: dict[str, Any]) -> dict[str, Any]:
        return {**chunk, "object": "chat.completion"}


@habit("stream.shape")
class ChunksWereMadeInTexts(GoodServer):
    def head(self, kind: str) -> dict[str, Any]:
        return {**super().head(kind), "created": str(int(time.time()))}


@habit("stream.ids", among=("stream.ids", "stream.shape", "stream.done"))
class IdsChange(Chunks):
    def changed(self, chunk: dict[str, Any]) -> dict[str, Any]:
        return {**chunk, "id": f"{chunk['id']}-{time.monotonic_ns()}"}


@habit("stream.role")
class HasNoRole(GoodServer):
    def first_delta(self) -> dict[str, Any]:
        return {"content": ""}


@habit("stream.finish")
class StreamsNeverFinish(Chunks):
    def changed(self, chunk: dict[str, Any]) -> dict[str, Any]:
        chunk["choices"][0]["finish_reason"] = None
        return chunk


@habit("stream.finish")
class FinishesWithEveryChunk(Chunks):
    def changed(self, chunk: dict[str, Any]) -> dict[str, Any]:
        chunk["choices"][0]["finish_reason"] = "stop"
        return chunk


@habit("stream.usage")
class TellsNoUsage(GoodServer):
    async def chunks(
        self, request: dict[str, Any], text: str, finish: str, calls: list[dict[str, Any]]
    ) -> AsyncIterator[bytes]:
        async for each in super().chunks({**request, "stream_options": None}, text, finish, calls):
            yield each


@habit("stream.usage", among=("stream.usage", "stream.no-usage", "stream.done"))
class UsageHasAChoice(GoodServer):
    def usage_chunk(self, head: dict[str, Any], text: str) -> dict[str, Any]:
        return {**self.chunk(head, {}, None), "usage": self.usage(text)}


@habit("stream.no-usage")
class AlwaysTellsUsage(GoodServer):
    async def chunks(
        self, request: dict[str, Any], text: str, finish: str, calls: list[dict[str, Any]]
    ) -> AsyncIterator[bytes]:
        async for each in super().chunks({**request, "stream_options": {"include_usage": True}}, text, finish, calls):
            yield each


@habit("stream.lines")
class EndsLinesTwice(GoodServer):
    def event(self, data: dict[str, Any]) -> bytes:
        return super().event(data).replace(b"\n", b"\r\n")


@habit("stream.lines")
class LeavesTheLastLine(GoodServer):
    def done(self) -> bytes:
        return b"data: [DONE]"


@habit("stream.pieces", among=("stream.pieces", "stream.text"))
class StreamsAtOnce(GoodServer):
    def pieces(self, text: str) -> list[str]:
        return [text]


@habit("stream.refused")
class StreamsItsErrors(GoodServer):
    async def chat(self, request: dict[str, Any], send: Send) -> None:
        if request.get("stream") and "messages" not in request:
            await self.stream(send, self.failed())
        else:
            await super().chat(request, send)

    async def failed(self) -> AsyncIterator[bytes]:
        yield self.event({"error": {"message": "`messages` is missing.", "type": "invalid_request_error"}})


@habit("stream.several", among=("stream.several", "stream.ids", "stream.done"))
class StreamsHaveOneId(GoodServer):
    def head(self, kind: str) -> dict[str, Any]:
        return {**super().head(kind), "id": "chatcmpl-1"}


@habit("stream.left", among=("stream.left",))
class IsHurtWhenClientsLeave(GoodServer):
    def __init__(self) -> None:
        super().__init__()
        self.is_hurt = False

    async def stream(self, send: Send, events: AsyncIterator[bytes]) -> None:
        self.is_hurt = True
        await super().stream(send, events)

    async def pause(self) -> None:
        await asyncio.sleep(0.01)

    def read_chat(self, request: dict[str, Any]) -> list[str]:
        if self.is_hurt and not request.get("stream"):
            raise Refusal(503, "Out of order.")
        return super().read_chat(request)
