"""The faces of an exchange. What serves one is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trunkline.exchange.api.faces import Face, FaceApp
from trunkline.exchange.exchange import Exchange
from trunkline.wires import jsonrpc
from trunkline.wires.openai.errors import refusal as openai_refusal

_FIRST_OF_SERVERS = 500


def json_rpc(status: int, message: str) -> Mapping[str, Any]:
    """A refusal for clients that speak JSON-RPC: an answer to no request in particular."""
    code = jsonrpc.INTERNAL_ERROR if status >= _FIRST_OF_SERVERS else jsonrpc.INVALID_REQUEST
    return {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}


def _openai(exchange: Exchange) -> FaceApp:
    from trunkline.exchange.api.openai import OpenAIFace

    return OpenAIFace(exchange)


def _mcp(exchange: Exchange) -> FaceApp:
    from trunkline.exchange.api.mcp import McpFace

    return McpFace(exchange)


def _acp(exchange: Exchange) -> FaceApp:
    from trunkline.exchange.api.acp import acp_application

    return acp_application(exchange)


FACES = (
    Face("/v1", "openai", openai_refusal, _openai),
    Face("/mcp", "mcp", json_rpc, _mcp),
    Face("/acp", "acp", json_rpc, _acp),
)
