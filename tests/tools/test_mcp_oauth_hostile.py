"""Servers that say of themselves what they should not: nobody is sent anywhere, and nothing is told to strangers."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.support.oauth_user import TestUser, logged_in
from trunkline.base import browser
from trunkline.base.redact import Redactor
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.oauth.bearer import BearerAuth
from trunkline.tools.mcp.oauth.flow import NotRenewed, renew
from trunkline.tools.mcp.oauth.requests import LoginFailed, is_safe
from trunkline.tools.mcp.oauth.store import Login, LoginStore

Answer = tuple[int, dict[str, str], bytes]
JSON = {"content-type": "application/json"}
TOKENS = {"access_token": "access-0123456789", "refresh_token": "refresh-0123456789", "token_type": "Bearer"}


class Hostile:
    """A server that is its own authorization server. What it says can be changed, path by path."""

    def __init__(self) -> None:
        self.url = ""
        self.paths: dict[str, Callable[[], Answer]] = {}
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.resource: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.tokens: bytes = json.dumps(TOKENS).encode()

    def begin(self, origin: str) -> None:
        self.url = f"{origin}/mcp"
        self.resource = {"resource": self.url, "authorization_servers": [origin]}
        self.metadata = {
            "issuer": origin,
            "code_challenge_methods_supported": ["S256"],
            **{f"{name}_endpoint": f"{origin}/{name}" for name in ("authorization", "token", "registration")},
        }

    def answer(self, path: str) -> Answer:
        if path in self.paths:
            return self.paths[path]()
        if path == "/mcp":
            return 401, {}, b""
        if path.startswith("/.well-known/oauth-protected-resource"):
            return 200, JSON, json.dumps(self.resource).encode()
        if path.startswith("/.well-known/oauth-authorization-server"):
            return 200, JSON, json.dumps(self.metadata).encode()
        if path == "/registration":
            return 201, JSON, b'{"client_id": "c1", "redirect_uris": ["http://127.0.0.1/"]}'
        return 200, JSON, self.tokens if path == "/token" else b"{}"

    @property
    def asked_for_tokens(self) -> bool:
        return any(path == "/token" for _, path, _ in self.seen)


@contextmanager
def serving(server: Hostile) -> Iterator[Hostile]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            path = urlsplit(self.path).path
            server.seen.append((self.command, path, dict(self.headers)))
            if path == "/authorization":
                (back,), (state,) = (parse_qs(urlsplit(self.path).query)[each] for each in ("redirect_uri", "state"))
                self._send((302, {"location": f"{back}?code=c&state={state}"}, b""))
            else:
                self._send(server.answer(path))

        def _send(self, answer: Answer) -> None:
            status, headers, body = answer
            self.send_response(status)
            for name, value in ({"content-length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                return

        do_GET = do_POST = _answer  # noqa: N815  (the names that the base class looks for)

        def log_message(self, *_: Any) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server.begin(f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    with serving(Hostile()) as made:
        yield made


@pytest.fixture
def other() -> Iterator[Hostile]:
    with serving(Hostile()) as made:
        yield made


def spec(server: Hostile) -> AddMcpServer:
    return AddMcpServer("web", "streamable-http", url=server.url)


async def refused(server: Hostile, because: str) -> TestUser:
    """Somebody tries to log in, and is told why not."""
    person = TestUser()
    with pytest.raises(LoginFailed, match=because) as caught:
        await logged_in(spec(server), person)
    assert len(str(caught.value)) < 600
    assert str(caught.value).isprintable()
    return person


@pytest.mark.parametrize(
    ("url", "server", "safe"),
    [
        ("https://auth.example.org/token", "https://mcp.example.org/", True),
        ("http://auth.example.org/token", "https://mcp.example.org/", False),
        ("http://127.0.0.1:8080/token", "https://mcp.example.org/", False),
        ("http://localhost/token", "https://mcp.example.org/", False),
        ("http://localhost/token", "http://127.0.0.1:1/", True),
        ("http://[::1]/token", "http://127.0.0.1:1/", True),
        ("http://10.0.0.1/", "http://10.0.0.1/", False),
        ("https://me:secret@auth.example.org/", "https://mcp.example.org/", False),
        ("https:///token", "https://mcp.example.org/", False),
        ("file:///etc/passwd", "http://127.0.0.1:1/", False),
        ("javascript:alert(1)", "http://127.0.0.1:1/", False),
        ("https://[::1/", "https://mcp.example.org/", False),
    ],
)
def test_secrets_go_where_nobody_listens_in(url: str, server: str, safe: bool) -> None:
    assert is_safe(url, server) is safe


async def test_nobody_logs_in_to_a_server_whose_answers_anybody_can_read() -> None:
    with pytest.raises(LoginFailed, match=r"http://mcp\.example\.org, which is not reached by HTTPS"):
        await logged_in(AddMcpServer("web", "streamable-http", url="http://mcp.example.org/mcp"))


async def test_the_small_server_of_these_tests_lets_people_in_otherwise(hostile: Hostile) -> None:
    hostile.paths["/mcp"] = lambda: (401 if len(hostile.seen) < 3 else 200, {}, b"")
    assert (await logged_in(spec(hostile))).tokens["access_token"] == TOKENS["access_token"]


@pytest.mark.parametrize("name", ["oauth-protected-resource/mcp", "oauth-authorization-server"])
async def test_a_description_without_end_is_not_read(hostile: Hostile, name: str) -> None:
    hostile.paths[f"/.well-known/{name}"] = lambda: (200, JSON, b" " * (1 << 22))
    person = await refused(hostile, "sends more than 262144 bytes")
    assert not person.url


@pytest.mark.parametrize(
    "place", ["file:///etc/passwd", "javascript:alert(1)", "http://example.org/x", "http://[", "x" * 9000]
)
async def test_a_description_somewhere_else_is_not_fetched(hostile: Hostile, place: str) -> None:
    hostile.paths["/mcp"] = lambda: (401, {"www-authenticate": f'Bearer resource_metadata="{place}"'}, b"")
    assert not (await refused(hostile, "asks for a login at|no browser takes|cannot be logged in")).url


@pytest.mark.parametrize("to", ["file:///etc/passwd", "OTHER/.well-known/oauth-protected-resource/mcp"])
async def test_a_description_that_leads_elsewhere_is_not_followed(hostile: Hostile, other: Hostile, to: str) -> None:
    target = to.replace("OTHER", other.url.removesuffix("/mcp"))
    for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
        hostile.paths[path] = lambda: (302, {"location": target}, b"")
    hostile.metadata["token_endpoint"] = "http://example.org/token"
    assert not (await refused(hostile, "example.org")).url
    assert other.seen == []


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("authorization_endpoint", "javascript:alert(document.cookie)//"),
        ("authorization_endpoint", "file:///etc/passwd"),
        ("authorization_endpoint", "http://example.org/authorize"),
        ("authorization_endpoint", f"https://example.org/{'a' * 9000}"),
        ("token_endpoint", "http://example.org/token"),
        ("token_endpoint", "file:///tmp/token"),
        ("registration_endpoint", "http://example.org/register"),
        ("issuer", "https://example.org"),
        ("code_challenge_methods_supported", ["plain"]),
    ],
)
async def test_nobody_is_sent_to_an_address_that_is_none(hostile: Hostile, member: str, value: Any) -> None:
    hostile.metadata[member] = value
    person = await refused(hostile, ".")
    assert not person.url or person.url.startswith(hostile.url.removesuffix("mcp"))
    # Nobody gives their password for a token that cannot be fetched.
    assert not (person.url and value == "http://example.org/token")
    assert not hostile.asked_for_tokens


async def test_a_token_for_another_server_is_not_asked_for(hostile: Hostile) -> None:
    hostile.resource["resource"] = "https://bank.example.org/mcp"
    assert not (await refused(hostile, "does not match")).url


async def test_a_token_endpoint_that_leads_elsewhere_gets_nobody_anything(hostile: Hostile, other: Hostile) -> None:
    place = other.url.replace("/mcp", "/token")
    hostile.paths["/token"] = lambda: (307, {"location": place}, b"")
    await refused(hostile, "cannot be logged in")
    assert other.seen == []


@pytest.mark.parametrize(
    "tokens",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"access_token": 5}',
        b'{"access_token": "a\\r\\nX-Evil: 1", "token_type": "Bearer"}',
        b'{"access_token": "\xc3\xa9\xe2\x82\xac", "token_type": "Bearer"}',
        b'{"access_token": "a", "token_type": "mac"}',
        b'{"access_token": "a", "expires_in": 1' + b"0" * 400 + b"}",
    ],
)
async def test_tokens_that_are_none_log_nobody_in(hostile: Hostile, tokens: bytes) -> None:
    hostile.tokens = tokens
    await refused(hostile, "cannot be logged in|does not take the token")


async def test_what_a_stranger_says_of_a_failure_is_cut_and_shown_harmless(hostile: Hostile) -> None:
    hostile.paths["/token"] = lambda: (400, JSON, b"\x1b[31m no " * 10_000)
    await refused(hostile, "Token exchange failed")
    hostile.paths["/token"] = lambda: (400, JSON, b"\xff" * 100)
    await refused(hostile, "cannot be logged in")
    hostile.paths["/registration"] = lambda: (400, JSON, b"\x1b[31m no " * 10_000)
    await refused(hostile, "does not let programs register")


async def test_a_renewal_follows_the_same_rules(hostile: Hostile, other: Hostile) -> None:
    login = Login("web", hostile.url, TOKENS, {"client_id": "c1"}, hostile.metadata)
    assert await renew(login)
    hostile.paths["/token"] = lambda: (307, {"location": other.url.replace("/mcp", "/token")}, b"")
    with pytest.raises(NotRenewed, match="HTTP status 307"):
        await renew(login)
    assert other.seen == []
    hostile.paths["/token"] = lambda: (200, JSON, b" " * (1 << 22))
    with pytest.raises(NotRenewed, match="262144"):
        await renew(login)
    hostile.paths["/token"] = lambda: (200, JSON, b"<html>Log in to the hotel's network</html>")
    with pytest.raises(NotRenewed):
        await renew(login)
    with pytest.raises(NotRenewed, match="not reached by HTTPS"):
        await renew(login.replace(metadata={**hostile.metadata, "token_endpoint": "http://example.org/token"}))


async def test_a_token_goes_to_its_server_alone(hostile: Hostile, other: Hostile) -> None:
    LoginStore().save(Login("web", hostile.url, TOKENS, {"client_id": "c1"}, hostile.metadata))

    async def ignore(response: httpx2.Response) -> None:
        return

    auth = BearerAuth(spec(hostile), LoginStore(), Redactor(), ignore)
    hostile.paths["/mcp"] = lambda: (307, {"location": other.url}, b"")
    # That it asks for a login is its own affair.
    other.paths["/mcp"] = lambda: (401, {}, b"")
    async with httpx2.AsyncClient(auth=auth) as client:
        await client.get(hostile.url, follow_redirects=True)
        await client.get(other.url)
    assert [headers.get("Authorization") for _, _, headers in hostile.seen] == ["Bearer access-0123456789"]
    assert [headers.get("Authorization") for _, _, headers in other.seen] == [None, None]


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "--help", "http://a b/", "http://é/"]
)
def test_a_browser_is_shown_pages_alone(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", "false")
    assert not browser.is_page(url)
    assert not browser.show(url)
