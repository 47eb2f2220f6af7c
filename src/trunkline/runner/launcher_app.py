"""The launcher's HTTP API, for the pages of one origin and for programs of this machine.

Every request passes, in this order: the host it was sent to, the origin of the page that sent it, the secret (for
`/runner/`), the route, the body. So a page of another origin learns nothing, not even which routes there are.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from trunkline.base import asgi_answers, hosts, jsontext
from trunkline.base.asgi_answers import Refused
from trunkline.base.asgi_body import bounded_body
from trunkline.core.fault_table import form_of
from trunkline.core.faults import Fault
from trunkline.runner import watching
from trunkline.runner.cycle import CycleReport
from trunkline.runner.fleet import STANDING_BY, AlreadyRunning, Fleet, NotInFleet, NotStarted

logger = logging.getLogger(__name__)

#: Configurations with prompts and scripts are far smaller.
MAX_BODY = 4 * 1024 * 1024
#: How long a body may take to arrive, over the loopback.
BODY_SECONDS = 20.0
#: Entries of a log in an answer, unless more are asked for.
DEFAULT_LOG = 50
#: How long a preflight's answer counts.
_PREFLIGHT_SECONDS = "600"

_SECRET = "x-runner-secret"  # noqa: S105 - the name of a header
_METHODS = "GET,POST,OPTIONS"
_HEADERS = "content-type,authorization,x-runner-secret"

Body = Mapping[str, Any]
Route = Callable[["LauncherApp", Request], Awaitable[Body]]


class LauncherApp:
    """The API as an ASGI application."""

    def __init__(self, fleet: Fleet, *, secret: str, origin: str, host: str) -> None:
        self._fleet = fleet
        self._secret = secret.encode("utf-8", "surrogateescape")
        self._origin = origin.rstrip("/")
        self._hosts = hosts.Hosts((host,))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ClientDisconnect:
            return
        except Exception as error:  # whoever asks gets an answer, also from a defect of ours
            logger.error("a request could not be answered: %s", type(error).__name__)
            logger.debug("the request failed", exc_info=True)
            response = asgi_answers.error(500, f"The launcher could not answer: {type(error).__name__}")
        if request.headers.get("origin"):
            # Which page it was for is the browser's to enforce.
            response.headers["access-control-allow-origin"] = self._origin
        response.headers["vary"] = "origin"
        response.headers["cache-control"] = "no-store"
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        """Before anything is done, whether it may be."""
        origin, path = request.headers.get("origin"), request.scope["path"]
        if not self._hosts.allow_scope(request.scope):
            return asgi_answers.error(403, hosts.REFUSED)
        if origin is not None and origin.rstrip("/") != self._origin:
            return asgi_answers.error(403, "Origin not allowed")
        if request.method == "OPTIONS":
            return self._preflight()
        if path.startswith("/runner/") and not self._has_secret(request):
            return asgi_answers.error(401, "Unauthorized")
        route = ROUTES.get((request.method, path))
        return asgi_answers.error(404, "Not found") if route is None else await self._routed(route, request)

    async def _routed(self, route: Route, request: Request) -> Response:
        try:
            return asgi_answers.answer(await route(self, request))
        except Refused as refused:
            return asgi_answers.error(refused.status, refused.message, refused.headers)
        except AlreadyRunning as error:
            return asgi_answers.error(409, str(error))
        except NotStarted as error:
            return asgi_answers.error(503, str(error))
        except NotInFleet as error:
            if not str(error):
                return asgi_answers.error(400, "agentId is required")
            return asgi_answers.error(404, f"No agent `{str(error)[:80]}` is running here")
        except Fault as error:
            return asgi_answers.error(form_of(error.kind).http, str(error))
        except OSError as error:
            logger.error("a request could not be answered: %s", error)
            return asgi_answers.error(503, f"The state could not be kept: {error.strerror or type(error).__name__}")

    def _preflight(self) -> Response:
        return Response(
            status_code=204,
            headers={
                "access-control-allow-origin": self._origin,
                "access-control-allow-methods": _METHODS,
                "access-control-allow-headers": _HEADERS,
                "access-control-allow-private-network": "true",
                "access-control-max-age": _PREFLIGHT_SECONDS,
            },
        )

    def _has_secret(self, request: Request) -> bool:
        given = request.headers.get(_SECRET, "").encode("latin-1", "replace")
        return hmac.compare_digest(given, self._secret)

    # The routes

    async def health(self, request: Request) -> Body:
        return {"ok": True, "service": "runner-launcher"}

    async def status(self, request: Request) -> Body:
        return {"ok": True, "status": await self._status(request.query_params.get("agentId"))}

    async def start(self, request: Request) -> Body:
        agent_id = await self._fleet.start(_config(await _body(request)))
        status = await self._status(agent_id)
        stands_by = status["state"] == STANDING_BY
        message = "Another launcher runs it, and this one stands by" if stands_by else "Runner started"
        return {"ok": True, "message": message, "status": status}

    async def stop(self, request: Request) -> Body:
        agent_id = _agent_id(await _body(request))
        await self._fleet.stop(agent_id)
        message = "Runner stopped" if agent_id else "All runners stopped"
        return {"ok": True, "message": message, "status": await self._status(agent_id)}

    async def configure(self, request: Request) -> Body:
        body = await _body(request)
        change = body.get("config")
        if not isinstance(change, Mapping):
            raise Refused(400, "Runner config is required")
        agent_id = _agent_id(body) or _agent_id(change)
        await self._fleet.configure(agent_id, change)
        return {"ok": True, "message": "Runner configured", "status": await self._status(agent_id)}

    async def run_once(self, request: Request) -> Body:
        body = await _body(request)
        given = _config(body) if "config" in body or "runnerToken" in body else None
        agent_id = _agent_id(given or body)
        report = await self._fleet.run_once(agent_id, given)
        return {"ok": True, "result": _result(report), "status": await self._status(agent_id)}

    async def log(self, request: Request) -> Body:
        agent_id = request.query_params.get("agentId") or await self._chosen()
        limit = request.query_params.get("limit", str(DEFAULT_LOG))
        if not limit.isdecimal():
            raise Refused(400, "`limit` must be a number")
        entries = await watching.log(self._fleet, agent_id, int(limit[:6]))
        return {"ok": True, "agentId": agent_id, "entries": entries}

    async def approvals(self, request: Request) -> Body:
        return {"ok": True, "approvals": await watching.approvals(self._fleet)}

    async def approve(self, request: Request) -> Body:
        body = await _body(request)
        id, approve = body.get("id"), body.get("approve")
        if not isinstance(id, str) or not isinstance(approve, bool):
            raise Refused(400, "`id` (a string) and `approve` (true or false) are required")
        agent_id = _agent_id(body)
        if agent_id is not None and not id.startswith(f"{agent_id}/"):
            id = f"{agent_id}/{id}"
        await watching.decide(self._fleet, id, approve)
        return {"ok": True, "id": id, "approve": approve}

    async def _status(self, agent_id: str | None = None) -> Body:
        return await watching.status(self._fleet, agent_id or None)

    async def _chosen(self) -> str:
        """The agent that is meant when none is named."""
        chosen = (await self._status())["selectedAgentId"]
        if not isinstance(chosen, str):
            raise Refused(400, "agentId is required")
        return chosen


ROUTES: dict[tuple[str, str], Route] = {
    ("GET", "/health"): LauncherApp.health,
    ("GET", "/runner/status"): LauncherApp.status,
    ("POST", "/runner/start"): LauncherApp.start,
    ("POST", "/runner/stop"): LauncherApp.stop,
    ("POST", "/runner/config"): LauncherApp.configure,
    ("POST", "/runner/run-once"): LauncherApp.run_once,
    ("GET", "/runner/log"): LauncherApp.log,
    ("GET", "/runner/approvals"): LauncherApp.approvals,
    ("POST", "/runner/approve"): LauncherApp.approve,
}


async def _body(request: Request) -> Body:
    data = await bounded_body(request, MAX_BODY, BODY_SECONDS)
    if not data.strip():
        return {}
    try:
        body = jsontext.loads(data)
    except ValueError as error:
        raise Refused(400, f"Invalid JSON body: {error}") from None
    if not isinstance(body, Mapping):
        raise Refused(400, "The body must be a JSON object")
    return body


def _config(body: Body) -> Body:
    config = body.get("config", body)
    if not isinstance(config, Mapping):
        raise Refused(400, "Runner config is required")
    return config


def _agent_id(body: Body) -> str | None:
    found = body.get("agentId")
    return found if isinstance(found, str) and found else None


def _result(report: CycleReport) -> Body:
    if report.skipped:
        return {"skipped": True, "reason": report.error}
    return {"ok": report.error is None, "actionCount": len(report.results), **report.line()}
