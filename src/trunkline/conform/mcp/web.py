"""Checks of streamable HTTP: statuses, sessions, and who may ask."""

from __future__ import annotations

from trunkline.base import jsontext
from trunkline.conform.expect import expect, same
from trunkline.conform.kit import NotApplicable
from trunkline.conform.mcp.link import HttpLink
from trunkline.conform.mcp.stage import Stage
from trunkline.conform.mcp.suite import SUITE
from trunkline.conform.mcp.vocabulary import NO_VERSION

_PING = jsontext.dumps({"jsonrpc": "2.0", "id": 301, "method": "ping"})
_NOTE = jsontext.dumps({"jsonrpc": "2.0", "method": "notifications/conform"})
_OK, _ACCEPTED, _BAD, _FORBIDDEN, _NOT_FOUND, _NOT_ALLOWED = 200, 202, 400, 403, 404, 405


async def _web(stage: Stage) -> HttpLink:
    link = await stage.ready()
    if not isinstance(link, HttpLink):
        raise NotApplicable("the server is a command, not at a URL")
    return link


async def _in_session(stage: Stage) -> HttpLink:
    link = await _web(stage)
    if link.session is None:
        raise NotApplicable("the server has no sessions")
    return link


@SUITE.check("mcp.http.accepted", "MUST", "Transports: streamable HTTP")
async def notifications_are_accepted(stage: Stage) -> None:
    """A notification gets the status 202 and no body."""
    link = await _web(stage)
    response = await link.request("POST", _NOTE)
    same("the status", response.status_code, _ACCEPTED)
    same("the body", response.content, b"")


@SUITE.check("mcp.http.kind", "MUST", "Transports: streamable HTTP")
async def answers_are_json_or_events(stage: Stage) -> None:
    """A request gets JSON or a stream of events."""
    link = await _web(stage)
    response = await link.request("POST", _PING)
    same("the status", response.status_code, _OK)
    kind = response.headers.get("content-type", "").partition(";")[0]
    expect(kind in ("application/json", "text/event-stream"), f"the answer is of the type `{kind}`")


@SUITE.check("mcp.http.get", "MUST", "Transports: streamable HTTP")
async def get_is_a_stream_or_not_allowed(stage: Stage) -> None:
    """GET gets a stream of events, or the status 405."""
    link = await _web(stage)
    response = await link.request("GET", accept="text/event-stream")
    kind = response.headers.get("content-type", "").partition(";")[0]
    fine = response.status_code == _NOT_ALLOWED or (response.status_code == _OK and kind == "text/event-stream")
    expect(fine, f"GET got the status {response.status_code} and the type `{kind}`")


@SUITE.check("mcp.http.origin", "MUST", "Transports: security warning")
async def origins_are_checked(stage: Stage) -> None:
    """A request with the origin of a stranger's page is refused."""
    link = await _web(stage)
    response = await link.request("POST", _PING, origin="http://conform.invalid")
    same("the status", response.status_code, _FORBIDDEN)


@SUITE.check("mcp.http.version", "MUST", "Transports: protocol version header")
async def unknown_versions_are_refused(stage: Stage) -> None:
    """A request whose header names a protocol version that never existed gets the status 400."""
    link = await _web(stage)
    response = await link.request("POST", _PING, mcp_protocol_version=NO_VERSION)
    same("the status", response.status_code, _BAD)


@SUITE.check("mcp.http.session-needed", "SHOULD", "Transports: session management")
async def sessions_are_needed(stage: Stage) -> None:
    """Where there are sessions, a request without one gets the status 400."""
    link = await _in_session(stage)
    response = await link.request("POST", _PING, mcp_session_id=None)
    same("the status", response.status_code, _BAD)


@SUITE.check("mcp.http.session-unknown", "MUST", "Transports: session management")
async def unknown_sessions_are_not_found(stage: Stage) -> None:
    """A request with the id of a session that there is not gets the status 404."""
    link = await _in_session(stage)
    response = await link.request("POST", _PING, mcp_session_id="0" * 32)
    same("the status", response.status_code, _NOT_FOUND)


@SUITE.check("mcp.http.session-ended", "MUST", "Transports: session management")
async def ended_sessions_are_not_found(stage: Stage) -> None:
    """After a session was ended with DELETE, requests with its id get the status 404; or DELETE gets 405."""
    link = await _in_session(stage)
    ended = await link.request("DELETE")
    if ended.status_code == _NOT_ALLOWED:
        return
    expect(_OK <= ended.status_code < 300, f"DELETE got the status {ended.status_code}")
    response = await link.request("POST", _PING)
    same("the status after it", response.status_code, _NOT_FOUND)
