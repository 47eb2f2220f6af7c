"""How somebody logs in to a server, and how that goes on: the SDK's flow, step by step.

The SDK discovers who is to be asked (RFC 9728, RFC 8414), registers us there (RFC 7591) unless we are known, makes the
address to open (with PKCE and the resource, RFC 8707), checks what the browser brings back, and gets the tokens. Here
its requests are made, under the limits of `requests`, and the person is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qs, urlsplit

from trunkline.base import jsontext
from trunkline.base.cutting import cut_between_words
from trunkline.base.printable import printable_line
from trunkline.core.agent import AddMcpServer, OAuthClient
from trunkline.core.faults import Fault
from trunkline.tools.mcp.connection import McpError
from trunkline.tools.mcp.oauth.listener import LoginAnswer, LoginListener, StrayAnswer, read_answer
from trunkline.tools.mcp.oauth.requests import LoginFailed, LoginRequests, check_address, login_requests
from trunkline.tools.mcp.oauth.store import Login
from trunkline.tools.mcp.transport import first_line, leaf, place

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

#: How long somebody may take to log in.
LOGIN_SECONDS = 300.0
#: How long tokens may take to be renewed or given back.
RENEW_SECONDS = 30.0

#: What people see when they are asked whether we may.
CLIENT_NAME = "Trunkline"
#: First without a secret, which no program on somebody's machine can keep; where that is not known, as they like it.
_AUTH_METHODS = ("none", None)

#: The two ways to send one, if there is one.
_BASIC, _POST = "client_secret_basic", "client_secret_post"

_OK, _UNAUTHORIZED, _FORBIDDEN = 200, 401, 403
#: How an authorization server says that a refresh token is of no use any more.
_REFUSALS = (400, 401, 403)
_NOT_FOUND, _GONE, _SERVER_ERROR = 404, 410, 500
#: Of the metadata, what is needed later.
_KEPT_METADATA = {"issuer", "authorization_endpoint", "token_endpoint", "revocation_endpoint"}
_KEPT_RESOURCE = {"resource", "authorization_servers"}
#: Of a stranger's words.
_SAID_CHARS = 300
#: Older than any token: what expired then is to be renewed.
_LONG_AGO = 1.0


class LoginUser(Protocol):
    """Who logs in."""

    async def show(self, url: str, redirect_uri: str) -> None:
        """Show them the address to open. Their browser will come back to `redirect_uri`."""

    async def pasted(self) -> str:
        """The address that their browser ended at, if they tell it. Waits as long as they take, or for ever."""

    def told(self, problem: str) -> None:
        """Tell them that what they have pasted is of no use."""


class NotRenewed(McpError):
    """Whether the login is still good is not known. The text is the rest of a sentence about the server."""


async def log_in(spec: AddMcpServer, person: LoginUser, *, seconds: float = LOGIN_SECONDS) -> Login:
    """Let somebody log in to a server. Nothing is kept.

    Raises:
        LoginFailed: it did not work.
        ConfigError: nobody can listen where the browser comes back to.
    """
    url = spec.url or ""
    known = spec.oauth if isinstance(spec.oauth, OAuthClient) else OAuthClient()
    check_address(url, url)
    async with LoginListener.opened(spec.name, known.redirect_uri) as listener:
        try:
            async with asyncio.timeout(seconds), login_requests(url) as requests, _explained(url):
                login = await _Attempt(spec, known, requests, listener, person).run()
        except TimeoutError:
            failed = LoginFailed(f"was not logged in to within {seconds:g} s")
            listener.tell(f"The login failed: `{spec.name}` {failed}.")
            raise failed from None
        except LoginFailed as failed:
            listener.tell(f"The login failed: `{spec.name}` {failed}.")
            raise
        listener.tell("You are logged in. You can close this page.")
        return login


async def renew(login: Login) -> Login | None:
    """The same login with new tokens; None: it is over, and somebody has to log in again.

    Raises:
        NotRenewed: the authorization server did not say.
    """
    import httpx2

    try:
        provider = _restored(login)
    except ValueError:
        return None
    status = _OK
    request = httpx2.Request("GET", login.url)
    flow = provider.async_auth_flow(request)
    try:
        async with asyncio.timeout(RENEW_SECONDS), login_requests(login.url) as requests:
            outgoing = await anext(flow)
            while outgoing is not request:
                response = await requests.ask(outgoing)
                status = response.status_code
                outgoing = await flow.asend(response)
    except TimeoutError:
        raise NotRenewed(f"could not be asked for a new token within {RENEW_SECONDS:g} s") from None
    except Exception as error:  # whatever strangers' answers make the SDK raise
        raise NotRenewed(f"could not be asked for a new token: {_said(error)}") from None
    finally:
        await flow.aclose()
    tokens = provider.context.current_tokens
    if tokens is not None:
        return login.replace(tokens=_dumped(tokens), expires_at=provider.context.token_expiry_time)
    if status in _REFUSALS:
        return None
    raise NotRenewed(f"could not be asked for a new token (HTTP status {status})")


async def revoke(login: Login) -> bool:
    """Give tokens back, and say whether the authorization server has taken them."""
    import httpx2

    endpoint = login.metadata.get("revocation_endpoint")
    if not endpoint:
        return False
    token = login.tokens.get("refresh_token") or login.tokens.get("access_token") or ""
    try:
        provider = _restored(login)
        provider.context.client_info = await provider.context.storage.get_client_info()
        members = {"token": str(token), "client_id": str(login.client.get("client_id", ""))}
        data, headers = provider.context.prepare_token_auth(members, {})
        # A member without a value counts as left out (RFC 6749), and some servers insist on this one.
        data.setdefault("client_secret", "")
        async with asyncio.timeout(RENEW_SECONDS), login_requests(login.url) as requests:
            request = httpx2.Request("POST", str(endpoint), data=data, headers=headers)
            return (await requests.ask(request)).status_code == _OK
    except Exception:  # it is forgotten here in any case
        return False


class _Attempt:
    """One login."""

    def __init__(
        self,
        spec: AddMcpServer,
        known: OAuthClient,
        requests: LoginRequests,
        listener: LoginListener,
        person: LoginUser,
    ) -> None:
        self._spec = spec
        self._url = spec.url or ""
        self._known = known
        self._requests = requests
        self._listener = listener
        self._person = person
        self._state = ""
        self._provider: OAuthClientProvider | None = None

    async def run(self) -> Login:
        from mcp.client.auth import OAuthRegistrationError

        challenge = await self._challenge()
        problem: OAuthRegistrationError | None = None
        for method in _AUTH_METHODS:
            try:
                return await self._walk(challenge, method)
            except OAuthRegistrationError as error:
                problem = problem or error
        raise LoginFailed(
            f"does not let programs register by themselves ({_said(problem)}); if you have a client id there, give it "
            f"as `client_id` in `[mcp.servers.{self._spec.name}.oauth]`"
        )

    async def _challenge(self) -> httpx2.Response:
        """How the server asks for a login. One that does not, and has one, is asked about it all the same."""
        import httpx2

        request = self._request()
        response = await self._requests.ask(request, head=True)
        status = response.status_code
        if status in (_NOT_FOUND, _GONE) or status >= _SERVER_ERROR:
            raise LoginFailed(f"answered with HTTP status {status}; check its URL and its transport")
        return response if status == _UNAUTHORIZED else httpx2.Response(_UNAUTHORIZED, request=request)

    async def _walk(self, challenge: httpx2.Response, method: str | None) -> Login:
        storage = _Storage(self._client())
        metadata = _metadata(self._listener.redirect_uri, self._known, method)
        provider = self._provider = _provider(self._url, storage, metadata, self)
        request = self._request()
        flow = provider.async_auth_flow(request)
        try:
            # Its first step would be to send the request itself.
            await anext(flow)
            outgoing = await flow.asend(challenge)
            while outgoing is not request:
                outgoing = await flow.asend(await self._requests.ask(outgoing))
        finally:
            await flow.aclose()
        # By now the request has its token.
        status = (await self._requests.ask(request, head=True)).status_code
        if status in (_UNAUTHORIZED, _FORBIDDEN):
            raise LoginFailed(f"does not take the token that was given for it (HTTP status {status})")
        return _login(self._spec, provider)

    def _request(self) -> httpx2.Request:
        """What a connection begins with."""
        import httpx2
        from mcp_types import LATEST_PROTOCOL_VERSION

        headers = dict(self._spec.headers or {})
        if self._spec.transport == "sse":
            return httpx2.Request("GET", self._url, headers={**headers, "accept": "text/event-stream"})
        about = {"name": CLIENT_NAME, "version": "1"}
        asked = {"protocolVersion": LATEST_PROTOCOL_VERSION, "capabilities": {}, "clientInfo": about}
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked}
        headers |= {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        return httpx2.Request("POST", self._url, headers=headers, content=jsontext.dumps(message))

    def _client(self) -> OAuthClientInformationFull | None:
        """Who we are, where that was agreed on beforehand."""
        from mcp.shared.auth import OAuthClientInformationFull

        if not self._known.client_id:
            return None
        method = _BASIC if self._known.client_secret else "none"
        return OAuthClientInformationFull(
            client_id=self._known.client_id,
            client_secret=self._known.client_secret,
            token_endpoint_auth_method=method,
        )

    # What the SDK asks of us on its way.

    async def redirect(self, url: str) -> None:
        """Somebody has to open this address."""
        self._check()
        check_address(url, self._url)
        self._state = parse_qs(urlsplit(url).query)["state"][0]
        self._listener.expect(self._state)
        await self._person.show(url, self._listener.redirect_uri)

    async def callback(self) -> AuthorizationCodeResult:
        """What their browser has brought back."""
        from mcp.shared.auth import AuthorizationCodeResult

        ways = {asyncio.create_task(self._listener.answer()), asyncio.create_task(self._pasted())}
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            answer = done.pop().result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)

    async def _pasted(self) -> LoginAnswer:
        while True:
            text = (await self._person.pasted()).strip()
            if not text:
                continue
            try:
                return read_answer(text.partition("?")[2] or text, self._state)
            except StrayAnswer:
                self._person.told("That is not the address to which the browser was sent back. Paste all of it.")

    def _check(self) -> None:
        """Look at what the authorization server says of itself before anybody is sent there."""
        context = self._provider.context if self._provider is not None else None
        found = context.oauth_metadata if context is not None else None
        if context is None or found is None:
            return
        for endpoint in (found.token_endpoint, found.revocation_endpoint):
            if endpoint is not None:
                check_address(str(endpoint), self._url)
        if found.code_challenge_methods_supported is not None and "S256" not in found.code_challenge_methods_supported:
            raise LoginFailed("has an authorization server without PKCE (`S256`), to which codes could be stolen")
        methods, client = found.token_endpoint_auth_methods_supported, context.client_info
        if self._known.client_secret and client is not None and methods and _BASIC not in methods:
            client.token_endpoint_auth_method = _POST


class _Storage:
    """What the SDK is given, and gives, during one login or one renewal."""

    def __init__(self, client: OAuthClientInformationFull | None, tokens: OAuthToken | None = None) -> None:
        self._client = client
        self._tokens = tokens

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


def _provider(
    url: str, storage: _Storage, metadata: OAuthClientMetadata, attempt: _Attempt | None = None
) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider

    if attempt is None:
        return OAuthClientProvider(url, metadata, storage)
    return OAuthClientProvider(url, metadata, storage, attempt.redirect, attempt.callback)


def _metadata(redirect_uri: str, known: OAuthClient, method: str | None = None) -> OAuthClientMetadata:
    """What we say of ourselves."""
    from mcp.shared.auth import OAuthClientMetadata

    scope = " ".join(known.scopes)

    class WithScopes(OAuthClientMetadata):
        """What somebody has configured stands: the SDK would take all that the server offers."""

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, (scope or value) if name == "scope" else value)

    return WithScopes.model_validate(
        {
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect_uri],
            "token_endpoint_auth_method": method,
            "scope": scope or None,
        }
    )


def _login(spec: AddMcpServer, provider: OAuthClientProvider) -> Login:
    context = provider.context
    if context.current_tokens is None or context.client_info is None:
        raise LoginFailed("gave no token")
    metadata, resource = context.oauth_metadata, context.protected_resource_metadata
    return Login(
        spec.name,
        spec.url or "",
        _dumped(context.current_tokens),
        _dumped(context.client_info),
        {} if metadata is None else metadata.model_dump(mode="json", include=_KEPT_METADATA, exclude_none=True),
        None if resource is None else resource.model_dump(mode="json", include=_KEPT_RESOURCE),
        context.token_expiry_time,
    )


def _restored(login: Login) -> OAuthClientProvider:
    """The SDK with all that it would know in the process in which somebody has logged in.

    Raises:
        ValueError: the login is not one that we have kept.
    """
    from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata

    client, tokens = OAuthClientInformationFull.model_validate(login.client), OAuthToken.model_validate(login.tokens)
    # No browser comes back anywhere.
    provider = _provider(login.url, _Storage(client, tokens), _metadata("http://127.0.0.1/", OAuthClient()))
    context = provider.context
    context.token_expiry_time = _LONG_AGO
    if login.metadata:
        context.oauth_metadata = OAuthMetadata.model_validate(login.metadata)
        context.auth_server_url = str(context.oauth_metadata.issuer)
    if login.resource is not None:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(login.resource)
    return provider


def _dumped(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = value.model_dump(mode="json", exclude_none=True)
    return found


@asynccontextmanager
async def _explained(url: str) -> AsyncIterator[None]:
    """Whatever goes wrong within is a login that failed."""
    import httpx2

    try:
        yield
    except (LoginFailed, Fault):
        raise
    except httpx2.HTTPError as error:
        raise LoginFailed(f"cannot be logged in to: {_said(error)}") from None
    except Exception as error:  # whatever strangers' answers make the SDK raise
        raise LoginFailed(f"cannot be logged in to at {place(url)}: {_said(error)}") from None


def _said(error: BaseException | None) -> str:
    return "" if error is None else printable_line(cut_between_words(first_line(leaf(error)), _SAID_CHARS))
