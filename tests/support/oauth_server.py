"""An MCP server that wants a login, and the authorization server that it names: both the SDK's own, on two ports.

    with oauth_world() as world:
        world.url           # of the MCP server; its tools are `whoami` and `add`
        world.denies = True

What it does is told by its attributes, and what was done to it can be read there. People log in by `visit`, which does
what a browser would.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import httpx
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    IdentityAssertionParams,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette
from starlette.types import ASGIApp

from tests.support.mcp_http_server import wait_for_port
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port

SCOPES = ["read", "write"]


class OAuthWorld:
    """The authorization server's memory, and its orders. It is what the SDK asks."""

    def __init__(self, mcp_port: int, auth_port: int, transport: Literal["streamable-http", "sse"]) -> None:
        self.issuer = f"http://127.0.0.1:{auth_port}"
        self.url = f"http://127.0.0.1:{mcp_port}/" + ("sse" if transport == "sse" else "mcp")
        self.denies = False
        self.refuses_refresh = False
        self.registers = True
        self.refuses_public_clients = False
        self.expires_in = 3600
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.asked: list[AuthorizationParams] = []
        self.renewals = 0
        self.revoked: list[str] = []
        self.issued: list[str] = []
        """All tokens that were ever given out."""
        self._held, self._held_up = threading.Event(), threading.Event()
        self._held.set()
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}

    def know(self, client_id: str, redirect_uri: str, secret: str | None = None) -> None:
        """Somebody has registered this client by hand."""
        self.clients[client_id] = OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[AnyUrl(redirect_uri)],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            scope=" ".join(SCOPES),
        )

    def forget_access(self) -> None:
        """From now on no access token counts that was given out so far."""
        self._access.clear()

    def take_scopes(self) -> None:
        """From now on the tokens that were given out are for nothing."""
        for token in self._access.values():
            token.scopes = []

    @contextmanager
    def holding_renewals(self) -> Iterator[threading.Event]:
        """Within the block, tokens are renewed and not given out yet. Gives what is set when somebody waits for one."""
        self._held, asked = threading.Event(), threading.Event()
        self._held_up = asked
        try:
            yield asked
        finally:
            self._held.set()

    # What the SDK asks.

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        if not self.registers:
            raise RegistrationError("invalid_client_metadata", "nobody may register here")
        if self.refuses_public_clients and client_info.token_endpoint_auth_method == "none":
            raise RegistrationError("invalid_client_metadata", "there must be a secret")
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.asked.append(params)
        if self.denies:
            raise AuthorizeError("access_denied", "not <today>")
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 600,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._given(authorization_code.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refuses_refresh:
            raise TokenError("invalid_grant", "it was taken back")
        self.renewals += 1
        # Each is good for once.
        del self._refresh[refresh_token.token]
        given = self._given(refresh_token.client_id, scopes, refresh_token.resource)
        self._held_up.set()
        await asyncio.to_thread(self._held.wait, PATIENCE_SECONDS)
        return given

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._access.get(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        found = self._access.get(token)
        return found if found is None or (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.revoked.append(token.token)
        self._refresh.pop(token.token, None)
        self._access.clear()

    async def exchange_identity_assertion(
        self, client: OAuthClientInformationFull, params: IdentityAssertionParams
    ) -> OAuthToken:
        raise TokenError("unsupported_grant_type")

    def _given(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_hex(20)}", f"refresh-{secrets.token_hex(20)}"
        over = int(time.time()) + self.expires_in
        self._access[access] = AccessToken(
            token=access, client_id=client_id, scopes=scopes, expires_at=over, resource=resource
        )
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        self.issued += [access, refresh]
        return OAuthToken(
            access_token=access, expires_in=self.expires_in, scope=" ".join(scopes), refresh_token=refresh
        )


@contextmanager
def oauth_world(transport: Literal["streamable-http", "sse"] = "streamable-http") -> Iterator[OAuthWorld]:
    """Both servers, as long as the block lasts."""
    mcp_port, auth_port = free_port(), free_port()
    world = OAuthWorld(mcp_port, auth_port, transport)
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES)
    routes = create_auth_routes(
        world, AnyHttpUrl(world.issuer), client_registration_options=registration,
        revocation_options=RevocationOptions(enabled=True),
    )  # fmt: skip
    with ExitStack() as stack:
        stack.enter_context(_serving(Starlette(routes=[*routes]), auth_port))
        stack.enter_context(_serving(_mcp_app(world, transport), mcp_port))
        yield world


def _mcp_app(world: OAuthWorld, transport: str) -> ASGIApp:
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(world.issuer),
        resource_server_url=AnyHttpUrl(world.url),
        required_scopes=["read"],
        validate_token_resource=True,
    )
    server = MCPServer("behind a login", log_level="CRITICAL", auth=settings, token_verifier=world)

    @server.tool()
    def whoami() -> str:
        """Tells who is logged in, and what they may do."""
        token = get_access_token()
        return "nobody" if token is None else " ".join(token.scopes)

    @server.tool()
    def add(a: int, b: int) -> str:
        """Adds two numbers."""
        return str(a + b)

    return server.sse_app() if transport == "sse" else server.streamable_http_app()


@contextmanager
def _serving(app: ASGIApp, port: int) -> Iterator[None]:
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_for_port(port)
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


async def visit(url: str, **more: Any) -> httpx.Response:
    """What a browser does with an address: it goes where it is sent, and shows the page there."""
    async with httpx.AsyncClient(follow_redirects=True, timeout=PATIENCE_SECONDS) as browser:
        return await browser.get(url, **more)
