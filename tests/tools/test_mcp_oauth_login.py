"""Logging in to an MCP server by OAuth: a real authorization server, and somebody with a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Literal

import httpx
import pytest

from tests.support.mcp_http_server import mcp_server, refusing_server
from tests.support.oauth_server import OAuthWorld, oauth_world, visit
from tests.support.oauth_user import TestUser, edited, logged_in, logging_in
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from trunkline.core.agent import AddMcpServer, OAuthClient
from trunkline.core.faults import ConfigError
from trunkline.tools.mcp.oauth.flow import NotRenewed, renew, revoke
from trunkline.tools.mcp.oauth.requests import LoginFailed


@pytest.fixture
def world() -> Iterator[OAuthWorld]:
    with oauth_world() as made:
        yield made


def server(world: OAuthWorld, oauth: bool | OAuthClient = False) -> AddMcpServer:
    return AddMcpServer("web", "streamable-http", url=world.url, oauth=oauth)


async def test_somebody_logs_in_with_a_browser_and_sees_that_it_worked(world: OAuthWorld) -> None:
    person = TestUser()
    login = await logged_in(server(world), person)
    assert [login.tokens["access_token"], login.tokens["refresh_token"]] == world.issued
    assert set(login.secrets) == set(world.issued)
    assert login.metadata["token_endpoint"] == f"{world.issuer}/token"
    assert login.expires_at is not None
    (asked,) = world.asked
    assert (asked.resource, asked.scopes, str(asked.redirect_uri)) == (world.url, ["read"], person.redirect_uri)
    members = httpx.URL(person.url).params
    assert (members["code_challenge_method"], members["response_type"]) == ("S256", "code")
    (client,) = world.clients.values()
    assert (client.client_name, client.token_endpoint_auth_method, client.client_secret) == ("Trunkline", "none", None)
    page = await person.page()
    assert "You are logged in." in page.text
    assert page.headers["referrer-policy"] == "no-referrer"
    assert not any(secret in page.text for secret in world.issued)
    assert not any(secret in repr(login) for secret in world.issued)


@pytest.mark.parametrize("transport", ["sse", "streamable-http"])
async def test_both_transports_ask_for_a_login(transport: Literal["sse", "streamable-http"]) -> None:
    with oauth_world(transport) as world:
        assert (await logged_in(AddMcpServer("web", transport, url=world.url))).secrets


async def test_whoever_says_no_is_not_logged_in(world: OAuthWorld) -> None:
    world.denies = True
    person = TestUser()
    with pytest.raises(LoginFailed, match=r"refused the login \(access_denied: not <today>\)"):
        await logged_in(server(world), person)
    page = await person.page()
    assert "The login failed" in page.text
    assert "not &lt;today&gt;" in page.text


async def test_an_answer_that_belongs_to_no_login_changes_nothing(world: OAuthWorld) -> None:
    person = TestUser(browses=False)
    async with logging_in(server(world), person) as work:
        forged = edited(person.url, lambda members: members.set("state", "forged"))
        for address in (
            forged,
            f"{person.redirect_uri}?code=stolen",
            f"{person.redirect_uri}?error=access_denied",
            f"{person.redirect_uri}?error=access_denied&state=forged",
        ):
            page = await visit(address)
            assert (page.status_code, "not the answer" in page.text) == (400, True)
        assert (await visit(person.redirect_uri.replace("/callback", "/favicon.ico"))).status_code == 404
        assert not work.done()
        await visit(person.url)
        assert (await work).secrets
        with pytest.raises(httpx.ConnectError):
            await visit(person.redirect_uri)


async def test_nobody_waits_for_ever(world: OAuthWorld) -> None:
    person = TestUser(browses=False)
    with pytest.raises(LoginFailed, match=r"was not logged in to within 0\.5 s"):
        await logged_in(server(world), person, seconds=0.5)
    with pytest.raises(httpx.ConnectError):
        await visit(person.redirect_uri or f"http://127.0.0.1:{free_port()}")


async def test_a_login_that_is_given_up_listens_no_more(world: OAuthWorld) -> None:
    person = TestUser(browses=False)
    async with logging_in(server(world), person) as work:
        work.cancel()
        await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
        with pytest.raises(httpx.ConnectError):
            await visit(person.redirect_uri)


async def test_what_a_browser_elsewhere_ended_at_can_be_pasted(world: OAuthWorld) -> None:
    person = TestUser(browses=False)
    async with logging_in(server(world), person) as work, httpx.AsyncClient() as browser:
        answer = await browser.get(person.url)
        address = answer.headers["location"]
        for line in ("", "hello", edited(address, lambda members: members.set("state", "other")), f"  {address}\r\n"):
            person.lines.put_nowait(line)
        assert (await asyncio.wait_for(work, PATIENCE_SECONDS)).secrets
        assert len(person.problems) == 2


async def test_a_client_that_was_agreed_on_is_used_with_its_secret_scopes_and_address(world: OAuthWorld) -> None:
    world.registers = False
    address = f"http://localhost:{free_port()}/back"
    world.know("mine", address, "hush-hush")
    client = OAuthClient("mine", "hush-hush", ("read", "write"), address)
    person = TestUser()
    login = await logged_in(server(world, client), person)
    assert person.redirect_uri == address
    assert world.asked[0].scopes == ["read", "write"]
    assert login.client["client_id"] == "mine"
    assert "hush-hush" in login.secrets
    assert "hush-hush" not in repr(client)
    renewed = await renew(login)
    assert renewed is not None
    assert await revoke(renewed)
    assert world.revoked == [renewed.tokens["refresh_token"]]


async def test_an_address_where_somebody_else_listens_is_told(world: OAuthWorld) -> None:
    with refusing_server(404) as taken:
        client = OAuthClient("mine", redirect_uri=taken)
        with pytest.raises(ConfigError, match=r"Cannot listen on `127\.0\.0\.1:\d+`.*`redirect_uri`"):
            await logged_in(server(world, client))


async def test_where_nobody_may_register_it_is_said_what_to_do(world: OAuthWorld) -> None:
    world.registers = False
    with pytest.raises(LoginFailed, match=r"`client_id` in `\[mcp\.servers\.web\.oauth\]`"):
        await logged_in(server(world))


async def test_a_server_that_wants_programs_to_have_a_secret_gives_one(world: OAuthWorld) -> None:
    world.refuses_public_clients = True
    login = await logged_in(server(world))
    assert login.client["client_secret"] in login.secrets
    assert await renew(login)


async def test_a_server_without_logins_says_so() -> None:
    with mcp_server("streamable-http") as url:
        with pytest.raises(LoginFailed, match="does not let programs register"):
            await logged_in(AddMcpServer("web", "streamable-http", url=url))


@pytest.mark.parametrize("status", [404, 503])
async def test_a_wrong_address_is_told(status: int) -> None:
    with refusing_server(status) as url, pytest.raises(LoginFailed, match=f"HTTP status {status}; check its URL"):
        await logged_in(AddMcpServer("web", "streamable-http", url=url))


async def test_nobody_there_is_told() -> None:
    url = f"http://127.0.0.1:{free_port()}/mcp"
    with pytest.raises(LoginFailed, match="cannot be logged in to"):
        await logged_in(AddMcpServer("web", "streamable-http", url=url))


async def test_a_login_goes_on_without_anybody_until_it_is_taken_back(world: OAuthWorld) -> None:
    login = await logged_in(server(world))
    renewed = await renew(login)
    assert renewed is not None
    assert list(renewed.secrets) == world.issued[2:]
    assert (renewed.expires_at or 0) > (login.expires_at or 0)
    assert (renewed.client, renewed.metadata) == (login.client, login.metadata)
    # Each refresh token is good for once.
    assert await renew(login) is None
    world.refuses_refresh = True
    assert await renew(renewed) is None
    assert await revoke(renewed)


async def test_an_authorization_server_that_does_not_answer_has_refused_nothing() -> None:
    with oauth_world() as world:
        login = await logged_in(server(world))
    with pytest.raises(NotRenewed, match="could not be asked for a new token"):
        await renew(login)
    assert not await revoke(login)
    assert await renew(login.replace(tokens={"nothing": "of ours"})) is None
