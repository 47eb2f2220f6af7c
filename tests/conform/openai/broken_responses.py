"""Bad habits with Responses, tools, embeddings, errors, keys and hostile input."""

from __future__ import annotations

from typing import Any

from tests.conform.openai.good_server import GoodServer, Refusal, Scope, Send
from tests.conform.openai.habits_of_servers import habit

# Responses


class Responds(GoodServer):
    """Changes its responses."""

    def response(self, id: str, text: str, finish: str = "stop", status: str = "completed") -> dict[str, Any]:
        return self.changed(super().response(id, text, finish, status))

    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        return data


@habit("responses.answer", "responses.message", "responses.input", among=("responses.answer", "responses.message",
       "responses.input", "responses.shape"))  # fmt: skip
class RespondsNothing(GoodServer):
    def output(self, id: str, text: str) -> list[dict[str, Any]]:
        return []


@habit("responses.shape")
class IsACompletion(Responds):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "created_at": str(data["created_at"])}


@habit("responses.shape")
class ItemsHaveNoIds(GoodServer):
    def item(self, id: str, status: str, content: list[Any]) -> dict[str, Any]:
        return {name: value for name, value in super().item(id, status, content).items() if name != "id"}


@habit("responses.message")
class PartsLackAnnotations(GoodServer):
    def part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text}


@habit("responses.usage")
class CountsInOldWords(GoodServer):
    def response_usage(self, text: str) -> Any:
        return self.usage(text)


@habit("responses.input")
class TakesTextsAlone(GoodServer):
    def read_input(self, given: Any) -> str:
        if not isinstance(given, str):
            raise Refusal(400, "`input` is a text.")
        return given


@habit("responses.previous")
class ForgetsWhatItSaid(GoodServer):
    def before(self, request: dict[str, Any]) -> list[str]:
        super().before(request)
        return []


@habit("responses.unknown")
class BeginsAnew(GoodServer):
    def on_unknown_response(self) -> list[str]:
        return []


@habit("responses.max-tokens")
class CompletesWhatItCut(Responds):
    def changed(self, data: dict[str, Any]) -> dict[str, Any]:
        return {**data, "status": "completed", "incomplete_details": None}


@habit("responses.missing")
class NeedsNoInput(GoodServer):
    def on_no_input(self) -> None:
        """Fine."""

    def read_input(self, given: Any) -> str:
        return super().read_input(given or "nothing")


# Their events


class Tells(GoodServer):
    """Changes its events."""

    def events_of(self, id: str, text: str) -> list[dict[str, Any]]:
        return self.retold(super().events_of(id, text))

    def retold(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return events


@habit("events.order", "events.response")
class BeginsWithTheItem(Tells):
    def retold(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [events[2], events[0], *events[3:]]


@habit("events.order", "events.items", "events.text", "events.response")
class NeverCompletes(Tells):
    def retold(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return events[:-1]


@habit("events.names")
class HasNamelessEvents(GoodServer):
    def named_event(self, event: dict[str, Any]) -> bytes:
        return self.event(event)


@habit("events.numbers")
class DoesNotCount(Tells):
    def named_event(self, event: dict[str, Any]) -> bytes:
        return super().named_event({**event, "sequence_number": 0})


@habit("events.items")
class ItemsChangeTheirIds(Tells):
    def retold(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**each, "item_id": "msg_other"} if "item_id" in each else each for each in events]


@habit("events.items", among=("events.items", "events.order", "events.numbers"))
class ItemsAreNotAdded(Tells):
    def retold(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [each for each in events if each["type"] != "response.output_item.added"]


@habit("events.parts")
class PartsAreNotAdded(Tells):
    def retold(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [each for each in events if each["type"] != "response.content_part.added"]


@habit("events.text")
class SaysSomethingElseInTheEnd(Tells):
    def retold(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**each, "text": "bye"} if each["type"] == "response.output_text.done" else each for each in events]


@habit("events.response")
class EndsAsAnother(Tells):
    def retold(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [*events[:-1], {**events[-1], "response": {**events[-1]["response"], "id": "resp_other"}}]


# Tools


@habit("tools.taken", "tools.call", "tools.result", "tools.stream", among=("tools.*",))
class FailsWithTools(GoodServer):
    def check_options(self, request: dict[str, Any]) -> None:
        if "tools" in request:
            raise Refusal(500, "Out of order.")
        super().check_options(request)


@habit("tools.call")
class ArgumentsAreObjects(GoodServer):
    def completion(
        self, request: dict[str, Any], text: str, finish: str, calls: list[dict[str, Any]]
    ) -> dict[str, Any]:
        for call in calls:
            call["function"]["arguments"] = {"city": "Paris"}
        return super().completion(request, text, finish, calls)


@habit("tools.result")
class TakesNoResults(GoodServer):
    def read_message(self, message: Any) -> str:
        if message.get("role") == "tool":
            raise Refusal(400, "There is no such role.")
        return super().read_message(message)


@habit("tools.stream")
class PiecesHaveNoIndex(GoodServer):
    def call_deltas(self, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"tool_calls": [{k: v for k, v in each["tool_calls"][0].items() if k != "index"}]}
                for each in super().call_deltas(calls)]  # fmt: skip


# Embeddings


@habit("embeddings.shape")
class EmbedsTexts(GoodServer):
    def packed(self, vector: list[float], request: dict[str, Any]) -> Any:
        if isinstance(request["input"], str) and "encoding_format" not in request:
            return "a vector"
        return super().packed(vector, request)


@habit("embeddings.many")
class EmbedsTheFirst(GoodServer):
    def embed(self, request: dict[str, Any]) -> dict[str, Any]:
        found = super().embed(request)
        return {**found, "data": found["data"][:1]}


@habit("embeddings.base64")
class PacksNothing(GoodServer):
    def packed(self, vector: list[float], request: dict[str, Any]) -> Any:
        return vector


# Errors


ERRORS = ("error.shape", "error.json", "error.object", "error.model", "error.model-status", "error.no-model",
          "error.messages", "error.empty", "error.types", "error.options", "error.role", "error.path",
          "error.members")  # fmt: skip


@habit(*ERRORS)
class ErrorsAreTexts(GoodServer):
    async def refuse(self, send: Send, refusal: Refusal) -> None:
        await self.start(send, refusal.status, b"text/plain")
        await send({"type": "http.response.body", "body": refusal.message.encode()})


@habit("error.shape", among=("error.shape", "error.members", "error.json"))
class ErrorsHaveNoType(GoodServer):
    async def refuse(self, send: Send, refusal: Refusal) -> None:
        error = {"message": refusal.message, "param": None, "code": None}
        await self.json(send, {"error": error}, refusal.status)


@habit("error.members")
class ErrorsHaveNoCode(GoodServer):
    async def refuse(self, send: Send, refusal: Refusal) -> None:
        error = {"message": refusal.message, "type": "invalid_request_error"}
        await self.json(send, {"error": error}, refusal.status)


@habit("error.status", "error.json", among=("error.status", "error.json"))
class ErrorsAreFine(GoodServer):
    async def refuse(self, send: Send, refusal: Refusal) -> None:
        await self.json(send, {"error": {"message": refusal.message, "type": "x"}}, 200)


@habit("error.json")
class BrokenJsonIs500(GoodServer):
    def on_broken(self, body: bytes) -> dict[str, Any]:
        raise Refusal(500 if body else 400, "Out of order.")


@habit("error.object")
class TakesLists(GoodServer):
    def on_no_object(self, found: Any) -> dict[str, Any]:
        raise Refusal(500, "Out of order.")


@habit("error.model", "error.model-status")
class HasEveryModel(GoodServer):
    def check_model(self, request: dict[str, Any]) -> None:
        if "model" not in request:
            self.on_no_model()


@habit("error.model-status")
class UnknownModelsAre400(GoodServer):
    def on_unknown_model(self, name: str) -> dict[str, Any]:
        raise Refusal(400, "There is no such model.")


@habit("error.no-model")
class HasADefaultModel(GoodServer):
    def on_no_model(self) -> None:
        """Fine."""


@habit("error.messages")
class NeedsNoMessages(GoodServer):
    def on_no_messages(self) -> list[str]:
        return ["hello"]


@habit("error.empty")
class AnswersNothing(GoodServer):
    def on_empty(self) -> list[str]:
        return ["hello"]


@habit("error.types")
class WrongTypesAre422(GoodServer):
    def on_wrong_messages(self) -> list[str]:
        raise Refusal(422, "Unprocessable.")


@habit("error.options")
class TakesAnyOption(GoodServer):
    def check_options(self, request: dict[str, Any]) -> None:
        request.pop("temperature", None)
        super().check_options(request)


@habit("error.role")
class KnowsEveryRole(GoodServer):
    def on_unknown_role(self) -> None:
        """Fine."""

    def read_chat(self, request: dict[str, Any]) -> list[str]:
        return super().read_chat(request) or ["hello"]


@habit("error.path")
class HasEveryPath(GoodServer):
    async def on_no_route(self, method: str, path: str, send: Send) -> None:
        if method == "POST":
            await self.json(send, {})
        else:
            await super().on_no_route(method, path, send)


@habit("error.method")
class FailsWithOtherMethods(GoodServer):
    async def on_no_route(self, method: str, path: str, send: Send) -> None:
        raise Refusal(500 if method == "GET" else 404, "Out of order.")


# Keys


@habit("auth.none", "auth.wrong", "auth.models", among=("auth.none", "auth.wrong", "auth.models"))
class RefusesWith403(GoodServer):
    def on_wrong_key(self, given: str) -> None:
        raise Refusal(403, "No.")


@habit("auth.wrong", "auth.models")
class TakesAnyKey(GoodServer):
    def on_wrong_key(self, given: str) -> None:
        if not given:
            super().on_wrong_key(given)


@habit("auth.models")
class ShowsItsModelsToAll(GoodServer):
    def check_key(self, scope: Scope, path: str) -> None:
        if path != "/models":
            super().check_key(scope, path)


@habit("auth.kept")
class RepeatsTheKey(GoodServer):
    def on_wrong_key(self, given: str) -> None:
        raise Refusal(401, f"{given} is not a key.")


# Hostile input


@habit("bad.deep", "bad.utf8", "bad.numbers", among=("bad.deep", "bad.utf8", "bad.numbers", "bad.surrogate"))
class BrokenInputIsItsOwnFault(GoodServer):
    def on_broken(self, body: bytes) -> dict[str, Any]:
        raise Refusal(500, "Out of order.")


@habit("bad.surrogate")
class SpeaksUtf8Only(GoodServer):
    def answer(self, text: str, count: int, request: dict[str, Any]) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Refusal(500, "Out of order.") from None
        return super().answer(text, count, request)


@habit("bad.numbers")
class TakesNegativeNumbers(GoodServer):
    def on_negative(self) -> None:
        """Fine."""


@habit("bad.huge")
class ChokesOnHugeBodies(GoodServer):
    def on_huge(self) -> None:
        raise Refusal(500, "Out of memory.")


@habit("bad.half", among=("bad.half",))
class IsHurtByHalves(GoodServer):
    def __init__(self) -> None:
        super().__init__()
        self.is_hurt = False

    def on_hang_up(self) -> None:
        self.is_hurt = True

    def check_key(self, scope: Scope, path: str) -> None:
        super().check_key(scope, path)
        if self.is_hurt:
            raise Refusal(503, "Out of order.")
