"""`trunkline mcp list`, `login` and `logout`, as somebody at a terminal, or a program, meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.test_app_completion import completed
from tests.support.mcp_client import SMALL_SERVER
from tests.support.oauth_browser import as_variable
from tests.support.oauth_server import OAuthWorld, oauth_world
from tests.support.patience import PATIENCE_SECONDS
from tests.support.ports import free_port
from tests.support.ran import Ran
from tests.support.system_keyring import shared_keyring
from trunkline.base import paths
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.oauth.store import LoginStore

pytestmark = pytest.mark.process

COMMAND = [sys.executable, "-m", "trunkline", "mcp"]
KEY = "key-0123456789abcdef"


@pytest.fixture
def world() -> Iterator[OAuthWorld]:
    with oauth_world() as made:
        yield made


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(text: str) -> None:
    file = Path(paths.config_dir(), "config.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def web(world: OAuthWorld, more: str = "") -> None:
    configured(f'[mcp.servers.web]\nurl = "{world.url}"\n{more}')


def mcp(*arguments: str, typed: str = "", **variables: str) -> Ran:
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=typed,
        capture_output=True,
        text=True,
        env=os.environ | variables,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@contextmanager
def logging_in(*arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A login that has come to the point where it has printed the address, and the address."""
    with subprocess.Popen(
        [*COMMAND, "login", "web", "--no-browser", "--json", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    ) as process:
        patience = threading.Timer(PATIENCE_SECONDS, process.kill)
        patience.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            yield process, json.loads(line)["url"]
        finally:
            patience.cancel()
            process.kill()


def listed(*arguments: str, **variables: str) -> dict[str, dict[str, Any]]:
    done = mcp("list", "--json", *arguments, **variables)
    assert done.code == 0, done.err
    return {each["name"]: each for each in json.loads(done.out)["servers"]}


def kept(world: OAuthWorld) -> str:
    found = LoginStore().kept(AddMcpServer("web", "streamable-http", url=world.url))
    return found.kept if found is not None else ""


def test_somebody_logs_in_with_the_browser_of_the_system_and_out_again(world: OAuthWorld) -> None:
    web(world)
    assert listed("--connect")["web"]["state"] == "needs login"
    done = mcp("login", "web", **as_variable())
    assert (done.code, done.out) == (0, "You are logged in to `web`.\n"), done.err
    assert f"{world.issuer}/authorize?" in done.err
    assert "a file that only you can read" in done.err
    assert not any(secret in done.out + done.err for secret in world.issued)
    found = listed("--connect")["web"]
    assert (found["login"], found["kept"], found["state"]) == ("logged in", "file", "connected")
    assert found["tools"] == ["whoami", "add"]
    out = mcp("logout", "web", "--json")
    assert json.loads(out.out) == {"name": "web", "was_logged_in": True, "revoked": True}
    assert world.revoked
    assert (listed()["web"]["login"], kept(world)) == ("not logged in", "")
    again = mcp("logout", "web")
    assert (again.code, again.out) == (0, "Nobody was logged in to `web`.\n")


def test_where_there_is_a_keyring_the_tokens_are_there(world: OAuthWorld, place: Path) -> None:
    web(world)
    ring = place / "keyring.json"
    variables = shared_keyring(ring)
    done = mcp("login", "web", "--json", **{**as_variable(), **variables})
    assert done.code == 0, done.err
    authorize, logged_in = map(json.loads, done.out.splitlines())
    assert (authorize["event"], logged_in["event"], logged_in["kept"]) == ("authorize", "logged_in", "keyring")
    assert world.issued[0] in ring.read_text()
    state = Path(paths.state_dir())
    assert not any(world.issued[0] in file.read_text() for file in state.rglob("*") if file.is_file())
    assert listed("--connect", **variables)["web"]["state"] == "connected"
    assert mcp("logout", "web", **variables).code == 0
    assert json.loads(ring.read_text()) == []


def test_a_browser_on_another_machine_ends_at_an_address_that_is_pasted(world: OAuthWorld) -> None:
    web(world)
    with logging_in() as (process, url):
        address = httpx.get(url).headers["location"]
        out, err = process.communicate(f"nonsense\n{address}\n")
    assert process.returncode == 0, err
    assert json.loads(out)["event"] == "logged_in"
    assert "not the address" in err
    assert kept(world) == "file"


def test_without_anything_pasted_the_browser_may_come_back_by_itself(world: OAuthWorld) -> None:
    web(world)
    with logging_in() as (process, url):
        assert process.stdin is not None
        process.stdin.close()
        assert "You are logged in" in httpx.get(url, follow_redirects=True).text
        assert process.wait(PATIENCE_SECONDS) == 0


def test_a_login_that_fails_is_told_with_exit_code_1(world: OAuthWorld) -> None:
    web(world)
    world.denies = True
    done = mcp("login", "web", **as_variable())
    assert done.code == 1
    assert "Error: MCP server `web` refused the login (access_denied: not <today>)." in done.err
    late = mcp("login", "web", "--no-browser", "--timeout", "1")
    assert late.code == 1
    assert "was not logged in to within 1 s" in late.err
    assert kept(world) == ""


def test_whoever_interrupts_it_is_not_logged_in(world: OAuthWorld) -> None:
    web(world)
    with logging_in() as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 130
    assert kept(world) == ""


def test_a_client_of_ones_own_is_configured(world: OAuthWorld) -> None:
    world.registers = False
    address = f"http://localhost:{free_port()}/back"
    world.know("mine", address, "hush-hush-0123")
    client = f'client_id = "mine"\nclient_secret = "${{WEB_SECRET}}"\nredirect_uri = "{address}"\n'
    for scopes, code in ((["write"], 1), (["write", "read"], 0)):
        web(world, f"[mcp.servers.web.oauth]\n{client}scopes = {scopes}\n")
        done = mcp("login", "web", WEB_SECRET="hush-hush-0123", **as_variable())
        assert done.code == code, done.err
        assert world.asked[-1].scopes == scopes
        # The server wants `read` of everybody.
        assert ("does not take the token that was given for it (HTTP status 403)" in done.err) is bool(code)
    shown = subprocess.run(
        [sys.executable, "-m", "trunkline", "config", "show"],
        capture_output=True,
        text=True,
        env=os.environ | {"WEB_SECRET": "hush-hush-0123"},
        timeout=PATIENCE_SECONDS,
        check=True,
    ).stdout
    assert "mine" in shown
    assert "hush-hush" not in shown


@pytest.mark.parametrize(
    ("oauth", "problem"),
    [
        ("oauth = 5", "must be true, false, or a table"),
        ("[mcp.servers.web.oauth]\nclient = 'x'", "must be true, false, or a table"),
        ("[mcp.servers.web.oauth]\nredirect_uri = 'https://example.org/'", "must have an address of this machine"),
    ],
)
def test_slips_in_the_configuration_are_told(oauth: str, problem: str) -> None:
    configured(f"[mcp.servers.web]\nurl = 'https://mcp.example.org'\n{oauth}\n")
    done = subprocess.run(
        [sys.executable, "-m", "trunkline", "config", "check"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert problem in done.stdout + done.stderr


def test_the_list_says_how_each_is_reached_and_shows_no_secret(place: Path) -> None:
    configured(
        f"""
[mcp.servers.small]
command = "{sys.executable}"
args = ["-S", "-E", "{SMALL_SERVER}", "--many=1"]
[mcp.servers.keyed]
url = "https://mcp.example.org/{KEY}x1/mcp?token={KEY}"
headers = {{ Authorization = "Bearer {KEY}" }}
enabled = false
[mcp.servers.old]
transport = "sse"
url = "https://mcp.example.org:8443/sse"
[mcp.servers.broken]
url = "${{NOT_SET}}"
"""
    )
    done = mcp("list")
    assert done.code == 0
    assert KEY not in done.out + done.err
    assert done.out.splitlines() == [
        "NAME    TRANSPORT        LOGIN          STATE   AT",
        f"small   stdio            -              on      {sys.executable}",
        "keyed   streamable-http  -              off     https://mcp.example.org",
        "old     sse              not logged in  on      https://mcp.example.org:8443",
        "broken                   -              broken",
    ]
    assert "`broken` is left out: `NOT_SET` is not set" in done.err
    configured(f"[mcp.servers.small]\ncommand = '{sys.executable}'\nargs = ['-S', '-E', '{SMALL_SERVER}']\n")
    found = listed("--connect")["small"]
    assert found["state"] == "connected"
    assert "echo" in found["tools"]
    assert "small  stdio      -      connected, " in mcp("list", "--connect").out


def test_without_servers_that_is_said() -> None:
    done = mcp("list")
    assert (done.code, done.out) == (0, "")
    assert "no MCP servers" in done.err
    assert listed() == {}


def test_who_cannot_be_logged_in_to_is_told() -> None:
    configured(
        f"""
[mcp.servers.small]
command = "true"
[mcp.servers.keyed]
url = "https://mcp.example.org"
headers = {{ Authorization = "Bearer {KEY}" }}
[mcp.servers.plain]
url = "http://mcp.example.org"
"""
    )
    for name, problem in (
        ("small", "is a program: nobody logs in to it"),
        ("keyed", "is given credentials"),
        ("plain", "which is not reached by HTTPS"),
        ("plane", "There is no MCP server `plane` in the configuration. Did you mean `plain`?"),
    ):
        done = mcp("login", name)
        assert done.code == 1
        assert problem in done.err
    assert mcp("logout", "plane").code == 1


def test_a_workspace_that_nobody_trusts_has_no_servers(place: Path, world: OAuthWorld) -> None:
    (place / "trunkline.toml").write_text(f'[mcp.servers.web]\nurl = "{world.url}"\n')
    assert listed() == {}
    assert mcp("login", "web").code == 1
    configured(f'trust = ["{place}"]\n')
    assert list(listed()) == ["web"]


def test_names_of_servers_are_completed() -> None:
    configured(
        "[mcp.servers.web]\nurl = 'https://a'\n[mcp.servers.web2]\nurl = 'https://b'\n[mcp.servers.we]\ncommand = 'x'"
    )
    assert completed("trunkline mcp login we") == ["web", "web2"]
    assert completed("trunkline mcp lo") == ["login", "logout"]
