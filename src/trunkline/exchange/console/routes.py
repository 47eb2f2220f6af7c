"""The routes of the console: its pages, their files, and the way in and out."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from trunkline.base import pages
from trunkline.base.asgi_answers import Refused
from trunkline.base.asgi_body import bounded_body
from trunkline.base.programs import PROGRAM, own_command_here
from trunkline.core.faults import Fault
from trunkline.exchange.api.auth import SIGN_IN, STATIC, browser_secret, come_again, cookie_name, person, wants_page
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.api.errors import ApiRefused, http, of_fault
from trunkline.exchange.browsers import UNUSED_MS
from trunkline.exchange.console import agents, approvals, conversation, graphs, home, models, sessions, settings, usage
from trunkline.exchange.console.page import HEADERS, ConsolePage, environment, rendered
from trunkline.exchange.exchange import Exchange

#: The modules with pages.
_PARTS = (home, sessions, conversation, approvals, agents, graphs, models, usage, settings)

#: The longest form that is sent without being signed in: a token.
MAX_FORM, FORM_SECONDS = 16 * 1024, 30

NOT_FOUND = 404
SIGN_OUT = "/sign-out"
USED_LINK = "This link was used already, or is too old. Get another as is said below."
WRONG_TOKEN = "This is not the token of anybody here."  # noqa: S105  (about one)


def routes(exchange: Exchange) -> list[BaseRoute]:
    """All of them, for the application of an exchange."""
    found = [page for part in _PARTS for page in part.PAGES]
    return [
        *(Route(page.path, _answering(exchange, page)) for page in found),
        Route(SIGN_IN, _signing_in(exchange), methods=["GET", "POST"]),
        Route(SIGN_OUT, _signing_out(exchange), methods=["POST"]),
        Mount(STATIC, pages.static("trunkline.exchange.console")),
    ]


def _answering(exchange: Exchange, page: ConsolePage) -> Callable[[Request], Awaitable[Response]]:
    async def answering(request: Request) -> Response:
        found = person(request.scope)
        if found is None:
            raise AssertionError("whoever is unknown was led to the door")
        call = ApiCall(exchange, request, found)
        try:
            call.person.check(page.least)
            values = await page.handler(call)
        except Fault as fault:
            return problem(call, of_fault(fault))
        except ApiRefused as refusal:
            return problem(call, refusal)
        return values if isinstance(values, Response) else rendered(call, page.template, values)

    return answering


def problem(call: ApiCall, refusal: ApiRefused) -> Response:
    """A page that says why there is nothing to see."""
    return rendered(call, "problem.html", {"status": refusal.status, "message": refusal.message}, refusal.status)


def handler(exchange: Exchange) -> Callable[[Request, HTTPException], Awaitable[Response]]:
    """What answers a request that there is no route for: somebody at a browser sees a page."""

    async def missing(request: Request, failure: HTTPException) -> Response:
        found = person(request.scope)
        if failure.status_code != NOT_FOUND or found is None or not wants_page(request.scope):
            return await http(request, failure)
        told = f"Nothing is at `{request.url.path[:200]}`."
        return problem(ApiCall(exchange, request, found), ApiRefused(NOT_FOUND, told))

    return missing


# The way in and out.


def _signing_in(exchange: Exchange) -> Callable[[Request], Awaitable[Response]]:
    async def signing_in(request: Request) -> Response:
        code = request.query_params.get("code", "")
        if request.method == "POST":
            secret = await exchange.browsers.by_token(await _token(request))
            return _let_in(request, secret) if secret else _door(exchange, request, WRONG_TOKEN, 403)
        if request.method == "HEAD" or "prefetch" in request.headers.get("sec-purpose", ""):
            return _door(exchange, request)
        if code and person(request.scope) is not None:
            # Whoever is in already keeps the link for another browser.
            return RedirectResponse(_target(request), 303, HEADERS)
        if not code:
            return _door(exchange, request)
        secret = await exchange.browsers.by_code(code)
        return _let_in(request, secret) if secret else _door(exchange, request, USED_LINK, 403)

    return signing_in


def _signing_out(exchange: Exchange) -> Callable[[Request], Awaitable[Response]]:
    async def signing_out(request: Request) -> Response:
        if (secret := browser_secret(request.scope)) is not None:
            await exchange.browsers.sign_out(secret)
        response = RedirectResponse(SIGN_IN, 303, HEADERS)
        response.delete_cookie(cookie_name(request.scope), httponly=True, samesite="strict")
        return response

    return signing_out


def _let_in(request: Request, secret: str) -> Response:
    is_foreign = request.headers.get("sec-fetch-site") == "cross-site"
    response = come_again(_target(request)) if is_foreign else RedirectResponse(_target(request), 303, HEADERS)
    response.set_cookie(
        cookie_name(request.scope),
        secret,
        max_age=UNUSED_MS // 1000,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


def _door(exchange: Exchange, request: Request, problem: str = "", status: int = 200) -> Response:
    program = own_command_here(exchange.environ)
    if program.startswith(os.sep):
        # Which folders this machine has is nothing for strangers.
        program = PROGRAM
    values: Mapping[str, Any] = {
        "problem": problem, "to": quote(_target(request)), "program": program, "is_near": program != PROGRAM
    }  # fmt: skip
    return Response(environment().get_template("sign_in.html").render(values), status, HEADERS, "text/html")


def _target(request: Request) -> str:
    """The page of ours that somebody was on the way to."""
    found = request.query_params.get("to", "")
    is_ours = found.startswith("/") and not found.startswith(("//", "/\\")) and found.isprintable() and found.isascii()
    return found if is_ours and found.partition("?")[0] not in (SIGN_IN, SIGN_OUT) else "/"


async def _token(request: Request) -> str:
    try:
        body = await bounded_body(request, MAX_FORM, FORM_SECONDS)
        return parse_qs(body.decode(), max_num_fields=10).get("token", [""])[0].strip()
    except (Refused, ValueError):
        return ""
