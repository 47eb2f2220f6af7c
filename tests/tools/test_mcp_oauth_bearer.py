"""Servers that want a login, as a conversation meets them: with one, without one, and when it is over."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.support.mcp_client import Watched, until, watched
from tests.support.oauth_server import OAuthWorld, oauth_world
from tests.support.oauth_user import logged_in
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import keyring
from trunkline.base.programs import own_command
from trunkline.core.agent import AddMcpServer
from trunkline.core.faults import ToolError
from trunkline.tools.mcp import server as server_module
from trunkline.tools.mcp.oauth.store import Login, LoginStore
from trunkline.tools.threads import in_thread

pytestmark = pytest.mark.process

NEEDS = re.escape(f"`web` needs a login (HTTP status 401): use `/mcp login web`, or `{own_command()} mcp login web`")
both = pytest.mark.parametrize("transport", ["sse", "streamable-http"])


@pytest.fixture
def world() -> Iterator[OAuthWorld]:
    with oauth_world() as made:
        yield made


@pytest.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    monkeypatch.setattr(server_module, "FIRST_WAIT_SECONDS", 0.05)
    async with watched(tmp_path) as made:
        yield made


def server(world: OAuthWorld, **more: object) -> AddMcpServer:
    made = AddMcpServer("web", "sse" if world.url.endswith("/sse") else "streamable-http", url=world.url)
    return made.replace(**more)


async def with_login(world: OAuthWorld, *, over: bool = False) -> Login:
    login = await logged_in(server(world))
    login = login.replace(expires_at=1000.0) if over else login
    LoginStore().save(login)
    return login


def state(client: Watched) -> str:
    (found,) = client.servers.states
    return found.state


@both
async def test_without_a_login_it_is_said_what_to_do(
    client: Watched, transport: Literal["sse", "streamable-http"]
) -> None:
    with oauth_world(transport) as world:
        for spec in (server(world), server(world, oauth=True)):
            with pytest.raises(ToolError, match=NEEDS):
                await client.connect(spec)
            assert state(client) == "needs login"
        # Nobody was registered, and nothing was asked of the authorization server.
        assert world.clients == {}


@both
async def test_a_login_is_used_by_whoever_comes_later(
    client: Watched, transport: Literal["sse", "streamable-http"]
) -> None:
    with oauth_world(transport) as world:
        login = await with_login(world)
        assert await client.connect(server(world)) == ("whoami", "add")
        assert (await client.call("whoami")).text == "read"
        assert world.renewals == 0
        assert client.redactor.text(f"x {login.secrets[0]} y {login.secrets[1]}") == "x [redacted] y [redacted]"
        await client.servers.close()


async def test_a_token_that_is_over_is_renewed_and_nobody_notices(client: Watched, world: OAuthWorld) -> None:
    await with_login(world, over=True)
    await client.connect(server(world))
    assert (await client.call("add", a=2, b=3)).text == "5"
    assert (world.renewals, client.problems) == (1, [])
    kept = LoginStore().load(server(world))
    assert kept is not None
    assert list(kept.secrets) == world.issued[-2:]
    assert client.redactor.text(world.issued[-1]) == "[redacted]"


@both
async def test_a_token_that_the_server_takes_no_more_is_renewed_too(
    client: Watched, transport: Literal["sse", "streamable-http"]
) -> None:
    with oauth_world(transport) as world:
        await with_login(world)
        await client.connect(server(world))
        world.forget_access()
        assert (await client.call("add", a=2, b=3)).text == "5"
        assert (world.renewals, client.problems, state(client)) == (1, [], "connected")
        await client.servers.close()


async def test_when_that_is_refused_somebody_has_to_log_in_again(client: Watched, world: OAuthWorld) -> None:
    await with_login(world)
    await client.connect(server(world))
    world.refuses_refresh = True
    world.forget_access()
    output = await client.call("add", a=2, b=3)
    assert output.status == "error"
    assert "needs a login" in output.text
    assert "Tell the user, and go on without it." in output.text
    await until(lambda: state(client) == "needs login")
    (problem,) = client.problems
    assert "needs a login" in problem[1]
    assert LoginStore().load(server(world)) is None
    world.refuses_refresh = False
    await with_login(world)
    assert await asyncio.wait_for(client.servers.reconnect("web"), PATIENCE_SECONDS)
    assert (await client.call("add", a=2, b=3)).text == "5"


async def test_one_that_was_over_and_cannot_be_renewed_is_the_same_from_the_start(
    client: Watched, world: OAuthWorld
) -> None:
    await with_login(world, over=True)
    world.refuses_refresh = True
    with pytest.raises(ToolError, match=NEEDS):
        await client.connect(server(world))
    assert state(client) == "needs login"


async def test_an_authorization_server_that_is_away_takes_nobodys_login(client: Watched, world: OAuthWorld) -> None:
    login = await with_login(world, over=True)
    nowhere = {**login.metadata, "token_endpoint": "http://127.0.0.1:9/token"}
    LoginStore().save(login.replace(metadata=nowhere))
    with pytest.raises(ToolError, match="`web` could not be asked for a new token"):
        await client.connect(server(world))
    assert state(client) == "failed"
    assert LoginStore().load(server(world)) is not None


async def test_a_renewal_outlives_the_call_that_needed_it(client: Watched, world: OAuthWorld) -> None:
    await with_login(world)
    await client.connect(server(world))
    world.forget_access()
    with world.holding_renewals() as held:
        call = asyncio.create_task(client.call("add", a=1, b=1))
        await until(held.is_set)
        call.cancel()
        await asyncio.wait({call})
        # Its connection goes, too: what is renewed by now must not get lost with it.
        assert client.servers.close_seconds
        closing = asyncio.create_task(client.servers.close())
        await asyncio.wait({closing}, timeout=0.05)
    await closing
    assert LoginStore().load(server(world)).secrets == tuple(world.issued[-2:])  # type: ignore[union-attr]
    assert world.renewals == 1
    assert not client.servers.close_seconds


async def test_whoever_logs_out_during_a_renewal_is_logged_out(client: Watched, world: OAuthWorld) -> None:
    await with_login(world)
    await client.connect(server(world))
    world.forget_access()
    store = LoginStore()
    kept = store.kept(server(world))
    assert kept is not None
    with world.holding_renewals() as held:
        call = asyncio.create_task(client.call("add", a=1, b=1))
        await until(held.is_set)
        await in_thread(lambda _: store.remove(kept.key))
    await asyncio.wait({call})
    assert store.load(server(world)) is None
    assert world.renewals == 1
    # What came of it is of no use to anybody.
    assert world.revoked == [world.issued[-1]]


async def test_a_disk_that_is_full_stops_nobody_who_is_logged_in(
    client: Watched, world: OAuthWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await with_login(world, over=True)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LoginStore, "_write", full)
    await client.connect(server(world))
    assert (await client.call("add", a=1, b=1)).text == "2"
    assert "cannot be kept: OSError" in caplog.text


async def test_two_who_renew_at_once_do_it_once(tmp_path: Path, client: Watched, world: OAuthWorld) -> None:
    await with_login(world)
    await client.connect(server(world))
    async with watched(tmp_path) as other:
        await other.connect(server(world))
        world.forget_access()
        answers = await asyncio.gather(*(each.call("add", a=1, b=1) for each in (client, other, client, other)))
        assert [answer.text for answer in answers] == ["2"] * 4
        assert world.renewals == 1


async def test_a_login_that_does_not_reach_far_enough_is_one_to_be_made_again(
    client: Watched, world: OAuthWorld
) -> None:
    await with_login(world)
    await client.connect(server(world))
    world.take_scopes()
    assert "needs a login (HTTP status 403)" in (await client.call("add", a=1, b=1)).text
    await until(lambda: state(client) == "needs login")


async def test_a_server_of_the_same_name_elsewhere_gets_no_token(client: Watched, world: OAuthWorld) -> None:
    await with_login(world)
    with oauth_world() as elsewhere:
        with pytest.raises(ToolError, match=NEEDS):
            await client.connect(server(elsewhere))


async def test_a_server_with_credentials_of_its_own_has_no_login(client: Watched, world: OAuthWorld) -> None:
    await with_login(world)
    with pytest.raises(ToolError, match=r"needs credentials \(HTTP status 401\)"):
        await client.connect(server(world, headers={"Authorization": "Bearer of-somebody-else"}))
    assert state(client) == "failed"


async def test_a_keyring_that_does_not_answer_is_told(
    client: Watched, world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_login(world)

    def silent(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(keyring, "asked", lambda question, otherwise, find: True)
    LoginStore().save(await logged_in(server(world)))
    monkeypatch.setattr(keyring, "asked", silent)
    with pytest.raises(ToolError, match="`web` has its login in the keyring, which does not answer"):
        await client.connect(server(world))
