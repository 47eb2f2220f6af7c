"""Checks of JSON-RPC: ids, errors, notifications; and of every message that came."""

from __future__ import annotations

import asyncio
from typing import Any

from trunkline.conform.expect import same, short
from trunkline.conform.kit import Broken, Judgement, NotApplicable
from trunkline.conform.mcp.link import HttpLink, StdioLink
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.suite import SUITE
from trunkline.conform.mcp.vocabulary import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    is_response,
)
from trunkline.conform.record import Record

#: Ids as clients make them.
IDS: tuple[Any, ...] = (0, 4096, "conform-7", "9")


def messages_of(record: Record) -> list[dict[str, Any]]:
    """What the server said."""
    return [each.data for each in record.entries if each.who == "agent" and isinstance(each.data, dict)]


def _sent(record: Record) -> list[dict[str, Any]]:
    return [each.data for each in record.entries if each.who == "host" and isinstance(each.data, dict)]


def _problem(message: dict[str, Any]) -> str | None:
    if message.get("jsonrpc") != "2.0":
        return f'a message lacks `"jsonrpc": "2.0"`: {short(message)}'
    if "method" in message:
        return None if isinstance(message["method"], str) else f"a method is not a string: {short(message)}"
    if ("result" in message) == ("error" in message):
        return f"a response needs either a result or an error: {short(message)}"
    if "result" in message:
        return None if isinstance(message["result"], dict) else f"a result is not an object: {short(message)}"
    error = message["error"]
    fine = isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
    return None if fine else f"an error needs a number and words: {short(message)}"


@SUITE.judge("mcp.rpc.shape", "MUST", "Base protocol: messages")
def messages_have_their_shape(record: Record) -> Judgement:
    """Every message of the server is one of JSON-RPC 2.0: a request, a notification, a result or an error."""
    found = messages_of(record)
    return Judgement(len(found), next((problem for each in found if (problem := _problem(each))), None))


@SUITE.judge("mcp.rpc.once", "MUST", "Base protocol: responses")
def requests_have_one_answer(record: Record) -> Judgement:
    """The server answers only requests that were made, and each of them once."""
    asked = [str(each["id"]) for each in _sent(record) if "id" in each and "method" in each]
    answered = [str(each["id"]) for each in messages_of(record) if is_response(each) and each.get("id") is not None]
    for id in answered:
        if id not in asked:
            return Judgement(len(answered), f"the answer with the id `{id}` is to no request")
        if answered.count(id) > asked.count(id):
            return Judgement(len(answered), f"the request with the id `{id}` was answered {answered.count(id)} times")
    return Judgement(len(answered))


@SUITE.judge("mcp.line.only", "MUST", "Transports: stdio", optional="the server is not on standard streams")
def output_is_messages_alone(record: Record) -> Judgement:
    """A server on standard streams writes nothing to standard output that is not a message."""
    if record.argv[0].startswith(("http://", "https://")):
        return Judgement(0)
    lines = [each for each in record.entries if each.who == "agent"]
    wrong = next((each.line for each in lines if not isinstance(each.data, dict)), None)
    return Judgement(len(lines), None if wrong is None else f"this line is not a message: {short(wrong)}")


@SUITE.check("mcp.rpc.ids", "MUST", "Base protocol: responses")
async def ids_come_back(stage: Stage) -> None:
    """A response has the id of its request, a number or a string, unchanged."""
    link = await stage.ready()
    for id in IDS:
        link.begin("ping", id=id)
        if not await link.until(lambda id=id: link.answer_to(id) is not None, stage.target.patience):  # type: ignore[misc]  # bound at once
            raise Broken(f"`ping` with the id {short(id)} was not answered under that id")


@SUITE.check("mcp.rpc.unknown-method", "MUST", "JSON-RPC")
async def unknown_methods_are_told(stage: Stage) -> None:
    """An unknown method is answered with the error -32601, and the connection lives on."""
    link = await stage.ready()
    for method in ("conform/no_such_method", "tools/conform", "rpc.conform"):
        answer = await link.ask(method, {}, stage.target.patience)
        same(f"the error of `{method}`", (answer.get("error") or {}).get("code"), METHOD_NOT_FOUND)
    await stage.lives(link, "an unknown method")


@SUITE.check("mcp.rpc.notification", "MUST", "Base protocol: notifications")
async def notifications_are_not_answered(stage: Stage) -> None:
    """A notification, known or unknown, is not answered, and the connection lives on."""
    link = await stage.ready()
    link.notify("notifications/conform_no_such_thing", {"a": 1})
    link.notify("notifications/cancelled", {"requestId": "conform-never", "reason": "a test"})
    await asyncio.sleep(stage.target.quiet)
    answers = [each for each in link.heard if is_response(each) and each.get("id") != 1]
    if answers:
        raise Broken(f"a notification was answered with {short(answers[0])}")
    await stage.lives(link, "notifications")


@SUITE.check("mcp.rpc.params", "MUST", "JSON-RPC")
async def missing_parameters_are_told(stage: Stage) -> None:
    """A request that lacks a required parameter is answered with an error, and the connection lives on."""
    link = await stage.ready()
    capabilities = link.info.get("capabilities") or {}
    lacking = {"tools": "tools/call", "resources": "resources/read", "prompts": "prompts/get"}
    tried = [method for capability, method in lacking.items() if capability in capabilities]
    if not tried:
        raise NotApplicable("the server offers neither tools, resources nor prompts")
    for method in tried:
        answer = await link.ask(method, {}, stage.target.patience)
        if "error" not in answer:
            raise Broken(f"`{method}` without parameters was answered with {short(answer)}, not with an error")
    await stage.lives(link, "missing parameters")


@SUITE.check("mcp.rpc.params-code", "SHOULD", "JSON-RPC")
async def missing_parameters_have_their_code(stage: Stage) -> None:
    """`tools/call` without the name of a tool is answered with the error -32602."""
    link = await stage.ready()
    stage.offers(link, "tools")
    answer = await link.ask("tools/call", {"arguments": {}}, stage.target.patience)
    same("the error", (answer.get("error") or {}).get("code"), INVALID_PARAMS)


async def _told(stage: Stage, data: bytes, code: int, what: str) -> None:
    link = await stage.ready()
    if isinstance(link, HttpLink):
        response = await link.request("POST", data)
        if not 400 <= response.status_code < 500:
            raise Broken(f"{what} got the status {response.status_code}, not one of 400 to 499")
        return
    since = len(link.heard)
    # It has an id, so that an answer to it is no surprise.
    link.record.add("host", data[:4096], {"id": 77, "method": ""})
    link.write(data + b"\n")
    await link.until(lambda: any("error" in each for each in link.heard[since:]), stage.target.patience)
    codes = [each["error"].get("code") for each in link.heard[since:] if isinstance(each.get("error"), dict)]
    if code not in codes:
        told = f"answered with the errors {short(codes)}" if codes else "not answered with an error"
        raise Broken(f"{what} was {told}; {code} is expected")


@SUITE.check("mcp.rpc.parse-error", "SHOULD", "JSON-RPC")
async def broken_json_is_told(stage: Stage) -> None:
    """What is not JSON is answered with the error -32700; over HTTP, with a status from 400 to 499."""
    await _told(stage, b'{"jsonrpc":"2.0","id":', PARSE_ERROR, "broken JSON")


@SUITE.check("mcp.rpc.invalid-request", "SHOULD", "JSON-RPC")
async def invalid_requests_are_told(stage: Stage) -> None:
    """JSON that is not a message is answered with the error -32600; over HTTP, with a status from 400 to 499."""
    await _told(stage, b'{"jsonrpc":"2.0","id":77,"conform":true}', INVALID_REQUEST, "an object without a method")


@SUITE.check("mcp.rpc.parallel", "MUST", "Base protocol")
async def requests_are_answered_together(stage: Stage) -> None:
    """Many requests at once are all answered."""
    link = await stage.ready()
    ids = [link.begin("ping") for _ in range(32)]
    for id in ids:
        await link.answer(id, stage.target.timeout, "one of 32 pings at once")


@SUITE.check("mcp.line.one", "MUST", "Transports: stdio")
async def a_message_is_a_line(stage: Stage) -> None:
    """On standard streams, two messages in one write, and one in two, are read as they are."""
    link = await stage.ready()
    if not isinstance(link, StdioLink):
        raise NotApplicable("the server is not on standard streams")
    link.write(b'{"jsonrpc":"2.0","id":201,"method":"ping"}\n{"jsonrpc":"2.0","id":202,"met')
    await asyncio.sleep(stage.target.quiet / 4)
    link.write(b'hod":"ping"}\r\n')
    for id in (201, 202):
        link.record.add("host", b"ping", {"id": id, "method": "ping"})
        await link.answer(id, stage.target.patience, f"the message with the id {id}")
