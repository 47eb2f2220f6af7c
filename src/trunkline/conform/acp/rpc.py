"""Checks of JSON-RPC: ids, errors, notifications. After each wrong request the connection lives on."""

from __future__ import annotations

from typing import Any

from trunkline.conform.acp.scenes import lives, new_params, opened, ready, refused, word
from trunkline.conform.acp.stage import Stage
from trunkline.conform.acp.subject import AcpSubject, is_response
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.acp.vocabulary import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from trunkline.conform.expect import short
from trunkline.conform.kit import Broken

#: Ids as clients make them.
IDS: tuple[Any, ...] = (0, 4096, "conform-7", "")


@SUITE.check("acp.rpc.ids", "MUST", "JSON-RPC")
async def ids_come_back(stage: Stage) -> None:
    """A response has the id of its request, a number or a string, unchanged."""
    agent = await ready(stage)
    for id in IDS:
        agent.send({"jsonrpc": "2.0", "id": id, "method": "session/new", "params": new_params(stage)})
        since = len(agent.heard)
        if not await agent.until(lambda id=id: agent.answer_to(id) is not None, stage.target.timeout):  # type: ignore[misc]  # bound at once
            found = [each.get("id") for each in agent.heard[since:] if is_response(each)]
            raise Broken(f"`session/new` with the id {short(id)} was answered with the ids {short(found)}")


@SUITE.check("acp.rpc.unknown-method", "MUST", "JSON-RPC")
async def unknown_methods_are_told(stage: Stage) -> None:
    """An unknown method is answered with the error -32601, and the connection lives on."""
    agent = await ready(stage)
    for method in ("conform/no_such_method", "session/conform_no_such_method", "rpc.conform"):
        refused(await agent.ask(method, {}, stage.target.patience), "(unknown)", METHOD_NOT_FOUND)
    await lives(stage, agent, "an unknown method")


@SUITE.check("acp.rpc.extension", "SHOULD", "Extensibility")
async def unknown_extensions_are_told(stage: Stage) -> None:
    """A method of an extension (`_name`) that the agent does not know is answered with the error -32601."""
    agent = await ready(stage)
    reply = await agent.ask("_conform.example/no_such_method", {"a": 1}, stage.target.patience)
    refused(reply, "(unknown)", METHOD_NOT_FOUND)
    await lives(stage, agent, "an unknown extension")


@SUITE.check("acp.rpc.notification", "MUST", "JSON-RPC")
async def notifications_are_not_answered(stage: Stage) -> None:
    """A notification, known or unknown, is not answered, and the connection lives on."""
    agent = await ready(stage)
    since = len(agent.heard)
    agent.notify("conform/no_such_notification", {})
    agent.notify("_conform.example/no_such_notification", {})
    agent.notify("session/cancel", {"sessionId": word()})
    await agent.listen(stage.target.quiet)
    answers = [each for each in agent.heard[since:] if is_response(each)]
    if answers:
        raise Broken(f"a notification was answered with {short(answers[0])}, not with silence")
    await lives(stage, agent, "notifications")


async def _mistaken(stage: Stage, agent: AcpSubject, why: str, method: str, params: Any) -> None:
    refused(await agent.ask(method, params, stage.target.patience), why, INVALID_PARAMS)


@SUITE.check("acp.rpc.params", "MUST", "JSON-RPC")
async def missing_parameters_are_told(stage: Stage) -> None:
    """A request that lacks a required parameter is answered with the error -32602, and the connection lives on."""
    agent, session = await opened(stage)
    await _mistaken(stage, agent, "without `cwd`", "session/new", {"mcpServers": []})
    await _mistaken(stage, agent, "without `prompt`", "session/prompt", {"sessionId": session})
    await _mistaken(stage, agent, "without `sessionId`", "session/prompt", {"prompt": []})
    await lives(stage, agent, "requests that lack a parameter")


@SUITE.check("acp.rpc.types", "MUST", "JSON-RPC")
async def wrong_types_are_told(stage: Stage) -> None:
    """A parameter of a wrong type is answered with the error -32602, and the connection lives on."""
    agent, session = await opened(stage)
    await _mistaken(stage, agent, "with a number as `cwd`", "session/new", {"cwd": 5, "mcpServers": []})
    prompt = [{"type": "text", "text": "x"}]
    await _mistaken(stage, agent, "with a list as `sessionId`", "session/prompt", {"sessionId": [], "prompt": prompt})
    params = {"sessionId": session, "prompt": "a text that is not a list of blocks"}
    await _mistaken(stage, agent, "with a text as `prompt`", "session/prompt", params)
    await lives(stage, agent, "parameters of wrong types")


async def _told(stage: Stage, line: bytes, what: str, code: int) -> None:
    """A line gets one error with that code and, where it has none of its own, the id null."""
    agent = await ready(stage)
    since = len(agent.heard)
    agent.write(line + b"\n")

    def answers() -> list[Any]:
        return [each for each in agent.heard[since:] if is_response(each)]

    await agent.until(lambda: bool(answers()), stage.target.patience)
    if not answers():
        raise Broken(f"{what} was not answered {await agent.how_long(stage.target.patience)}; {code} is expected")
    error = answers()[0].get("error")
    found = error.get("code") if isinstance(error, dict) else None
    if found != code:
        raise Broken(f"{what} was answered with {short(answers()[0])}, not with the error {code}")
    if answers()[0].get("id") is not None:
        raise Broken(f"{what} was answered with {short(answers()[0])}, not with the id null")
    await lives(stage, agent, what)


@SUITE.check("acp.rpc.parse", "SHOULD", "JSON-RPC")
async def broken_json_is_told(stage: Stage) -> None:
    """A line that is not JSON is answered with the error -32700 and the id null, and the connection lives on."""
    await _told(stage, b'{"jsonrpc":"2.0","id":77,"method":', "a line that is not JSON", PARSE_ERROR)


@SUITE.check("acp.rpc.invalid", "SHOULD", "JSON-RPC")
async def what_is_no_request_is_told(stage: Stage) -> None:
    """JSON that is not a request is answered with the error -32600 and the id null, and the connection lives on."""
    await _told(stage, b"5", "the number 5", INVALID_REQUEST)
    await _told(stage, b'{"jsonrpc":"2.0","method":5}', "a message whose `method` is a number", INVALID_REQUEST)
