"""Stand-ins for an Ollama and a llama-server: what they answer when they are asked what they have."""

from __future__ import annotations

import json
from typing import Any

from tests.support.provider import Reply, Request, StubProvider

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
