"""The way into the console, and what nobody else's page can do with a browser that is signed in."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx
import pytest

from tests.exchange.api_world import BASE, World, token, world
from tests.support.graph_texts import SMITH
from trunkline.exchange.api.auth import FORGERY
from trunkline.exchange.api.signing_in import link
from trunkline.exchange.browsers import forgery_token
from trunkline.exchange.console.page import NAVIGATION
from trunkline.exchange.settings import AgentSettings, Role
from trunkline.store.database import DatabaseGone

PAGE = {"accept": "text/html"}
COOKIE = "trunkline-4400"


def browser(net: World) -> httpx.AsyncClient:
    """Somebody's, with nothing in it."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(net.app), base_url=BASE, headers=PAGE)


async def signed_in(net: World, who: httpx.AsyncClient) -> dict[str, str]:
    """Sign a browser in; gives what its pages send with what changes something."""
    await who.get(link("", net.exchange.browsers.code()))
    return {FORGERY: forgery_token(who.cookies[COOKIE])}


async def test_whoever_is_not_signed_in_is_led_to_the_door_and_back(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        for path in ("/", *(address for address, _ in NAVIGATION)):
            found = await who.get(path)
            assert (found.status_code, found.headers["location"]) == (303, f"/sign-in?to={path}")
        assert (await who.get("/sign-in")).status_code == 200
        assert (await who.get("/static/ground.css")).status_code == 200
        assert (await who.get("/api/agents")).status_code == 401
        found = await who.post("/sign-in?to=/usage", data={"token": token("observer")})
        assert (found.status_code, found.headers["location"]) == (303, "/usage")
        assert "observer (observer)" in (await who.get("/")).text


async def test_the_cookie_is_for_this_exchange_and_for_no_script(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        found = await who.get(link("", net.exchange.browsers.code()))
        cookie = found.headers["set-cookie"].lower()
        assert cookie.startswith(f"{COOKIE}=")
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "path=/" in cookie


async def test_a_link_is_not_used_up_by_who_only_looks_ahead_or_is_in_already(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who, browser(net) as other:
        address = link("", net.exchange.browsers.code())
        assert (await who.head(address)).status_code == 200
        assert (await who.get(address, headers={"sec-purpose": "prefetch"})).status_code == 200
        await signed_in(net, who)
        assert (await who.get(address)).status_code == 303
        assert (await other.get(address)).status_code == 303
        async with browser(net) as late:
            refused = await late.get(address)
        assert refused.status_code == 403
        assert "trunkline console" in refused.text


async def test_the_door_says_how_the_program_is_run_and_nothing_of_folders_far_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, far = tmp_path / "a" / "bin" / "trunkline", tmp_path / "b"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    far.mkdir()
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", "/nowhere")
    async with world(tmp_path) as net, browser(net) as who:
        monkeypatch.chdir(tmp_path / "a")
        assert "<code>bin/trunkline console</code>" in (await who.get("/sign-in")).text
        monkeypatch.chdir(far)
        text = (await who.get("/sign-in")).text
        assert "<code>trunkline console</code>" in text
        assert str(tmp_path) not in text


@pytest.mark.parametrize(
    "to", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x", "/%0d%0ax"]
)
async def test_the_door_leads_to_no_other_place(tmp_path: Path, to: str) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        found = await who.post(f"/sign-in?to={to}", data={"token": token("admin")})
        assert found.headers["location"] == "/"


@pytest.mark.parametrize("form", [b"", b"token=", b"token=wrong", b"token=" + b"x" * 20_000, b"\xff\xfe", b"a=1&" * 50])
async def test_what_is_nobodys_token_is_refused_at_the_door(tmp_path: Path, form: bytes) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        assert (await who.post("/sign-in", content=form)).status_code == 403
        assert not who.cookies


async def test_a_browser_changes_nothing_for_a_page_that_is_not_ours(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        shown = await signed_in(net, who)
        assert (await who.get("/api/agents")).status_code == 200
        new = {"agent": "echo"}
        for headers in ({}, {FORGERY: ""}, {FORGERY: "x"}, {FORGERY: forgery_token("another")}):
            refused = await who.post("/api/sessions", json=new, headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forgery")
        assert (await who.post("/api/sessions", json=new, headers=shown)).status_code == 200
        assert (await who.post("/sign-out")).status_code == 403
        assert (await who.post("/sign-out", headers=shown)).status_code == 303
        assert (await who.get("/api/agents")).status_code == 401


async def test_a_cookie_opens_no_face(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        await signed_in(net, who)
        assert (await who.get("/v1/models")).status_code == 401


async def test_every_page_comes_with_a_policy_and_is_kept_nowhere(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        await signed_in(net, who)
        for address, name in NAVIGATION:
            found = await who.get(address)
            assert found.status_code == 200, address
            assert f"<h1>{name}</h1>" in found.text, address
            assert "script-src 'self'" in found.headers["content-security-policy"]
            assert found.headers["cache-control"] == "no-store"
            assert found.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("role", ["observer", "talker", "approver", "admin"])
async def test_the_navigation_offers_what_somebody_may_see(tmp_path: Path, role: Role) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        await who.post("/sign-in", data={"token": token(role)})
        home = (await who.get("/")).text
        for address, name in NAVIGATION:
            is_offered = f'<li><a href="{address}"' in home
            assert is_offered == ((await who.get(address)).status_code == 200), name


@pytest.mark.parametrize("path", ["/graphs", "/graphs/gate", "/agents", "/agents/gate"])
async def test_pages_for_observers_are_whole_and_name_no_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "gate.yaml").write_text(SMITH)
    async with world(tmp_path) as net, browser(net) as who, browser(net) as admin:
        gate = AgentSettings("gate", f"graph:{tmp_path / 'gate.yaml'}", str(tmp_path))
        await net.exchange.take_up(net.exchange.settings.replace(agents={"gate": gate}))
        await who.post("/sign-in", data={"token": token("observer")})
        await signed_in(net, admin)
        assert str(tmp_path) in (await admin.get(path)).text
        found = await who.get(path)
        assert found.status_code == 200
        assert "gate" in found.text
        assert str(tmp_path) not in found.text


async def test_what_is_not_there_is_told_on_a_page(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        await signed_in(net, who)
        found = await who.get("/sessions/nobody-knows")
        assert found.status_code == 404
        assert "There is no session <code>nobody-knows</code> here." in found.text
        found = await who.get("/nowhere")
        assert found.status_code == 404
        assert "Nothing is at <code>/nowhere</code>." in found.text
        hostile = (await who.get("/<b>`x")).text
        assert "<b>" not in hostile
        assert "&lt;b&gt;`x" in hostile
        assert (await who.get("/api/nowhere")).json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("other", ['theme={"a":1}', "name=John Doe", "flag", "k[0]=1", "user@x=1", "n=\u00fc"])
async def test_cookies_of_other_programs_on_the_machine_do_no_harm(tmp_path: Path, other: str) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        await signed_in(net, who)
        cookies = f"{other}; {COOKIE}={who.cookies[COOKIE]}".encode("latin-1")
        async with browser(net) as again:
            assert (await again.get("/api/agents", headers=[(b"cookie", cookies)])).status_code == 200


async def test_who_is_in_may_come_in_as_somebody_else(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        await signed_in(net, who)
        assert (await who.post("/sign-in", data={"token": token("observer")})).status_code == 303
        assert "observer (observer)" in (await who.get("/")).text


async def test_a_link_on_somebody_elses_page_leads_here_by_a_step_of_our_own(tmp_path: Path) -> None:
    foreign = {"sec-fetch-site": "cross-site"}
    async with world(tmp_path) as net, browser(net) as who:
        # A browser does not send its cookie there.
        found = await who.get("/sessions?q=a&by=b", headers=foreign)
        assert found.status_code == 200
        assert 'content="0;url=/sessions?q=a&amp;by=b"' in found.text
        # Nor does it lead on to another machine.
        found = await who.get(f"{BASE}//elsewhere.example/a", headers=foreign)
        assert 'content="0;url=/elsewhere.example/a"' in found.text
        found = await who.get(link("", net.exchange.browsers.code()), headers=foreign)
        assert 'content="0;url=/"' in found.text
        assert (await who.get("/")).status_code == 200


async def test_the_way_back_keeps_what_was_looked_for(tmp_path: Path) -> None:
    async with world(tmp_path) as net, browser(net) as who:
        door = (await who.get("/sessions?q=a&by=b")).headers["location"]
        found = await who.post(door, data={"token": token("observer")})
        assert found.headers["location"] == "/sessions?q=a&by=b"
        for place in ("/sign-in", "/sign-out"):
            found = await who.post(f"/sign-in?to={place}", data={"token": token("observer")})
            assert found.headers["location"] == "/"


async def test_a_database_that_is_away_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(secret: str) -> None:
        raise DatabaseGone("x")

    async with world(tmp_path) as net, browser(net) as who:
        await signed_in(net, who)
        monkeypatch.setattr(net.exchange.browsers, "find", gone)
        found = await who.get("/api/agents")
        assert (found.status_code, found.headers["retry-after"]) == (503, "5")
