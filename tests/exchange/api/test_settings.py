"""Settings over HTTP: what is in force and who says so, without any secret; and the file, before it is loaded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.exchange.api_world import BASE, world
from tests.support.graph_texts import SMITH
from tests.support.system_keyring import Memory, using
from trunkline.base.keyring import ENTRIES
from trunkline.exchange import config
from trunkline.exchange.api.app import application
from trunkline.exchange.exchange import Exchange

SECRETS = {
    "ANA_TOKEN": "ana-secret-token-0001",
    "BOT": "1234567:telegram-secret-0002",
    "HOOK": "https://hooks.example/T0001/secret-path-0003-abcdef",
}
KEPT = "kept-secret-token-0004"
DIGEST = "0123456789abcdef" * 4
FILE = f"""\
[exchange]
home = "home"
webhook_env = "HOOK"
approvals_expire = "2h"

[agents.helper]
agent = "echo"
description = "<b>bold</b>"
budget = {{ tokens_per_day = 10 }}

[agents.coder]
agent = "coder"
provider = "mock"
allow = ["Read"]

[wires.telegram]
agent = "helper"
token_env = "BOT"
allow = ["telegram:1"]

[people.ana]
token_env = "ANA_TOKEN"
role = "admin"

[people.ben]
token_keyring = "ben"

[people.cleo]
token_sha256 = "{DIGEST}"
role = "observer"
"""


class Asked:
    """An exchange with a file, and somebody who asks it."""

    def __init__(self, path: Path, exchange: Exchange, client: httpx.AsyncClient) -> None:
        self.path = path
        self.exchange = exchange
        self._client = client

    async def shown(self, token: str = SECRETS["ANA_TOKEN"]) -> httpx.Response:
        return await self._client.get("/api/settings", headers={"authorization": f"Bearer {token}"})

    async def rows(self) -> dict[str, dict[str, Any]]:
        return {row["key"]: row for row in (await self.shown()).json()["settings"]}

    async def checked(self) -> dict[str, Any]:
        found = await self._client.post(
            "/api/settings/check", headers={"authorization": f"Bearer {SECRETS['ANA_TOKEN']}"}
        )
        assert found.status_code == 200, found.text
        checked: dict[str, Any] = found.json()
        return checked

    async def problems(self) -> list[dict[str, Any]]:
        problems: list[dict[str, Any]] = (await self.checked())["problems"]
        return problems


@asynccontextmanager
async def asked(root: Path, text: str = FILE) -> AsyncIterator[Asked]:
    path = root / "trunkline.toml"
    path.write_text(text)
    keyring = Memory()
    keyring.set_password(ENTRIES, "ben", KEPT)
    with using(keyring):
        settings = config.read(str(path), SECRETS)
        async with Exchange.opened(settings, environ=SECRETS) as exchange:
            transport = httpx.ASGITransport(application(exchange))
            async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
                yield Asked(path, exchange, client)


def line(text: str) -> int:
    """Where something is in the file."""
    return next(number for number, found in enumerate(FILE.splitlines(), 1) if found.startswith(text))


async def test_every_value_in_force_is_told_with_its_origin(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        rows = await net.rows()
        path = str(tmp_path / "trunkline.toml")
        assert rows["exchange.home"] == {
            "section": "exchange",
            "key": "exchange.home",
            "value": str(tmp_path / "home"),
            "origin": {"kind": "file", "name": None, "path": path, "line": line("home")},
        }
        assert rows["exchange.listen"]["value"] == "127.0.0.1:4400"
        assert rows["exchange.listen"]["origin"]["kind"] == "default"
        assert rows["exchange.approvals_expire"]["value"] == "2h"
        assert rows["agents.helper.budget.tokens_per_day"]["value"] == 10
        assert rows["agents.helper.budget.tokens_per_day"]["origin"]["line"] == line("budget")
        assert rows["agents.coder.allow"]["value"] == ["Read"]
        assert rows["agents.coder.workspace"]["value"] == str(tmp_path)
        assert rows["wires.telegram.allow"]["origin"]["line"] == line('allow = ["telegram')
        assert rows["wires.telegram.verbosity"]["origin"]["kind"] == "default"
        assert (rows["people.ben.role"]["value"], rows["people.ben.role"]["origin"]["kind"]) == ("talker", "default")


async def test_secrets_are_only_told_to_be_set_and_where(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        rows = await net.rows()
        told = {key: (rows[key]["value"], rows[key]["origin"]["kind"], rows[key]["origin"]["name"]) for key in (
            "exchange.webhook", "wires.telegram.token", "people.ana.token", "people.ben.token", "people.cleo.token",
        )}  # fmt: skip
        assert told == {
            "exchange.webhook": ("set", "environment", "HOOK"),
            "wires.telegram.token": ("set", "environment", "BOT"),
            "people.ana.token": ("set", "environment", "ANA_TOKEN"),
            "people.ben.token": ("set", "keyring", "ben"),
            "people.cleo.token": ("set", "file", None),
        }
        text = (await net.shown()).text
        assert not [secret for secret in (*SECRETS.values(), KEPT, DIGEST) if secret in text]


async def test_an_address_in_the_file_is_told_without_what_may_be_secret_in_it(tmp_path: Path) -> None:
    own = FILE.replace('webhook_env = "HOOK"', 'webhook = "https://me:pass-0005@hooks.example:8443/T9/s3cret-0006?k=1"')
    async with asked(tmp_path, own) as net:
        assert (await net.rows())["exchange.webhook"]["value"] == "https://hooks.example:8443/…"
        text = (await net.shown()).text
        assert not [secret for secret in ("pass-0005", "s3cret-0006", "me:") if secret in text]


async def test_what_an_agents_own_configuration_adds_is_told_with_its_file(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        own = [row for row in (await net.shown()).json()["settings"] if row["section"].startswith("agents.coder, ")]
        told = {row["key"]: row for row in own}
        assert told["model in use"]["value"] == "mock"
        assert told["tools.allow_list"]["origin"]["kind"] == "default"
        places = [row["section"] for row in (await net.shown()).json()["settings"]]
        assert places.index("agents.coder, its own configuration") < places.index("wires.telegram")


async def test_the_exchange_tells_what_it_is(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        found = (await net.shown()).json()
        assert found["about"]["home"] == str(tmp_path / "home")
        assert (found["about"]["database"], found["about"]["cluster"]) == ("SQLite", None)
        assert found["file"] == {"path": str(tmp_path / "trunkline.toml"), "state": "loaded", "problem": None}


async def test_a_file_that_was_changed_is_told_key_by_key(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        net.path.write_text(
            FILE.replace('"2h"', '"3h"').replace('role = "admin"', "").replace(DIGEST, "f" * 64) + '\n[people.dan]\n'
            'token_env = "DAN"\n'
        )  # fmt: skip
        found = (await net.shown()).json()
        assert found["file"]["state"] == "wrong"
        assert [each["problem"] for each in found["problems"]] == ["names `DAN`, which is not set"]
        assert {each["key"]: (each["loaded"], each["disk"]) for each in found["differences"]} == {
            "exchange.approvals_expire": ("2h", "3h"),
            "people.ana.role": ("admin", None),
            "people.cleo.token_sha256": ("set", "set"),
            "people.dan.token_env": (None, "DAN"),
        }
        # What is in force is still what it was.
        assert (await net.rows())["exchange.approvals_expire"]["value"] == "2h"


async def test_a_file_with_another_comment_is_the_same(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        net.path.write_text(f"# More words.\n{FILE}")
        found = (await net.shown()).json()
        assert (found["file"]["state"], found["differences"]) == ("loaded", [])


async def test_a_file_that_is_gone_or_broken_is_told(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        net.path.write_text("[exchange\n")
        found = (await net.shown()).json()["file"]
        assert found["state"] == "unreadable"
        assert ":1:" in found["problem"]
        net.path.unlink()
        assert (await net.shown()).json()["file"]["state"] == "gone"
        (problem,) = await net.problems()
        assert (problem["problem"], problem["line"]) == ("does not exist", None)


async def test_problems_are_told_at_their_lines_and_nothing_is_loaded(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        assert await net.problems() == []
        net.path.write_text(FILE.replace("approvals_expire", "aprovals_expire").replace('"observer"', '"king"'))
        first, second = await net.problems()
        assert first == {
            "severity": "problem", "path": str(net.path), "line": line("approvals"), "column": 1,
            "key": "exchange.aprovals_expire", "problem": "unknown key",
            "hint": "Did you mean `exchange.approvals_expire`?",
        }  # fmt: skip
        assert (second["line"], second["key"]) == (line('role = "observer"'), "people.cleo.role")
        assert (await net.rows())["people.cleo.role"]["value"] == "observer"


async def test_a_file_with_mistakes_is_never_told_to_be_in_force(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        # Nothing that an exchange reads is another, and it could not be loaded all the same.
        net.path.write_text(f"{FILE}\n[agnets.a]\nagent = 'echo'\n")
        found = (await net.shown()).json()
        assert (found["file"]["state"], found["differences"]) == ("wrong", [])
        assert [each["key"] for each in found["problems"]] == ["agnets"]
        checked = await net.checked()
        assert (checked["file"], checked["problems"]) == (found["file"], found["problems"])
        net.path.write_text(FILE)
        assert (await net.shown()).json()["file"]["state"] == "loaded"


async def test_what_keeps_an_agent_from_working_is_a_warning_that_does_not_keep_the_file_from_being_loaded(
    tmp_path: Path,
) -> None:
    async with asked(tmp_path) as net:
        net.path.write_text(f'{FILE}\n[agents.npc]\nagent = "graph:npc.yaml"\n')
        (warning,) = await net.problems()
        assert (warning["severity"], warning["key"]) == ("warning", "agents.npc")
        assert (warning["line"], "npc.yaml" in warning["problem"]) == (len(FILE.splitlines()) + 2, True)
        assert (await net.shown()).json()["file"]["state"] == "changed"
        (tmp_path / "npc.yaml").write_text(SMITH)
        assert await net.problems() == []


async def test_what_needs_another_start_is_a_problem(tmp_path: Path) -> None:
    async with asked(tmp_path) as net:
        net.path.write_text(FILE.replace('home = "home"', 'home = "other"'))
        (problem,) = await net.problems()
        assert (problem["key"], problem["line"], problem["hint"]) == ("exchange.home", line("home"), "Start it again.")


@pytest.mark.parametrize("who", ["observer", "talker", "approver"])
async def test_settings_are_for_admins(tmp_path: Path, who: str) -> None:
    async with world(tmp_path) as net:
        assert (await net.get("/api/settings", who)).status_code == 403
        assert (await net.post("/api/settings/check", {}, who)).status_code == 403


async def test_an_exchange_without_a_file_tells_its_settings_all_the_same(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = (await net.get("/api/settings")).json()
        assert found["file"]["state"] == "none"
        rows = {row["key"]: row["value"] for row in found["settings"]}
        assert rows["agents.echo.agent"] == "echo"
        assert rows["people.admin.role"] == "admin"
        assert "the token of" not in str(found)
