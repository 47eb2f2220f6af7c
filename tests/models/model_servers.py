"""Stand-ins for an Ollama and a llama-server: what they answer when they are asked what they have; and for a server of
one model, as a graph has several of.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.provider import Part, Reply, Request, StubProvider
from tests.support.provider_streams import openai_sse, openai_text
from trunkline.models import model_server
from trunkline.models.model_server import ModelServer

#: Nobody listens on this one: it is reserved, and needs privileges.
NOBODY = "http://127.0.0.1:1"

EMBEDDER = {"name": "nomic-embed-text:latest", "details": {"families": ["nomic-bert"]}}
VECTORS = {"name": "vectors:latest", "details": {"families": ["bert"]}}
GEMMA = {"name": "gemma2:2b", "details": {"families": ["gemma2"]}}
QWEN = {"name": "qwen3:8b", "details": {"families": ["qwen3"]}}


def json_reply(value: Any, status: int = 200) -> Reply:
    return Reply([json.dumps(value).encode()], status=status, headers={"content-type": "application/json"})


def ollama(*models: Any, **abilities: list[str]) -> StubProvider:
    """An Ollama with these models; `abilities` by the part of a name before the colon."""

    def answer(request: Request) -> Reply:
        if request.target == "/api/tags":
            return json_reply({"models": list(models)})
        if request.target == "/api/show":
            return json_reply({"capabilities": abilities.get(request.json["model"].partition(":")[0], [])})
        return json_reply({"error": "not found"}, 404)

    return StubProvider(answer)


def llama_server(health: Any, models: Any) -> StubProvider:
    def answer(request: Request) -> Reply:
        return json_reply({"/health": health, "/v1/models": models}.get(request.target))

    return StubProvider(answer)


class Gpu(StubProvider):
    """A model server: what it says of its health, and what it answers otherwise."""

    def __init__(self, name: str) -> None:
        super().__init__(self._answer)
        self.name = name
        self.health: dict[str, int] = {"/health": 200}
        """By the path, the status; 404 for others."""
        self.chat: Callable[[Request], Reply] = self._says_who_it_is

    def _answer(self, request: Request) -> Reply:
        if request.method == "GET":
            return json_reply({}, self.health.get(request.target, 404))
        return self.chat(request)

    def _says_who_it_is(self, request: Request) -> Reply:
        return Reply([openai_sse(openai_text(self.name))])

    def says(self, *parts: Part, status: int = 200) -> None:
        """All further answers."""
        self.chat = lambda _: Reply(parts, status=status)

    def refuses(self, status: int, message: str = "no", **error: Any) -> None:
        """Refuse all that is asked from here on."""
        self.chat = lambda _: json_reply({"error": {"message": message, **error}}, status)

    @property
    def asked_for(self) -> list[Request]:
        """What was asked of it, without the probes."""
        return [request for request in self.requests if request.method == "POST"]

    @property
    def probed(self) -> list[str]:
        return [request.target for request in self.requests if request.method == "GET"]

    @property
    def server(self) -> ModelServer:
        """What is known of it, as the server of the model `big`."""
        return model_server.known(f"{self.url}/v1", "big")
