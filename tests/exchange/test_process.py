"""An exchange as a process, run in the loop of a test."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.base import local_socket
from trunkline.core.faults import ConfigError
from trunkline.exchange.process import ExchangeProcess

ENVIRON = {"ANA_TOKEN": "ana's token", "BO_TOKEN": "bo's token"}
FILE = """\
[exchange]
listen = "127.0.0.1:0"
home = "home"
[agents.e]
agent = "echo"
[people.ana]
token_env = "ANA_TOKEN"
role = "admin"
"""
#: Longer than any test: only what a test asks for is looked at.
NEVER = 10_000.0


class Running:
    """An exchange that runs, and clients of it."""

    def __init__(self, process: ExchangeProcess, path: Path, said: asyncio.Queue[str]) -> None:
        self.process = process
        self.path = path
        self.said = said
        socket = httpx.AsyncHTTPTransport(uds=str(path.parent / "home" / "exchange.sock"))
        self.local = httpx.AsyncClient(transport=socket, base_url="http://localhost", timeout=PATIENCE_SECONDS)
        self.ana = self.client("ana's token")

    def client(self, token: str) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=self.process.where, headers=headers, timeout=PATIENCE_SECONDS)

    def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")

    async def agents(self) -> list[str]:
        found = (await self.ana.get("/api/agents")).json()["agents"]
        return [agent["name"] for agent in found]

    async def heard(self) -> str:
        """The next thing that is said."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.said.get()


def written(directory: Path, text: str) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / "trunkline.toml"
    path.write_text(text, encoding="utf-8")
    return path


@asynccontextmanager
async def running(
    directory: Path, text: str = FILE, *, watch_seconds: float = NEVER, environ: Mapping[str, str] = ENVIRON
) -> AsyncIterator[Running]:
    path = written(directory, text)
    said: asyncio.Queue[str] = asyncio.Queue()
    process = ExchangeProcess(str(path), said.put_nowait, environ, watch_seconds=watch_seconds)
    stop, reachable = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(process.run(stop, reachable.set))
    waiting = asyncio.create_task(reachable.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        world = Running(process, path, said)
        async with world.local, world.ana:
            yield world
    finally:
        waiting.cancel()
        stop.set()
        await asyncio.wait({task, waiting})
    task.result()


async def test_it_serves_people_with_a_token_and_its_user_through_the_socket(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        assert await world.agents() == ["e"]
        async with world.client("nobody's") as nobody:
            assert (await nobody.get("/api/agents")).status_code == 401
        assert (await world.local.get("/api/agents")).status_code == 200
        socket = tmp_path / "home" / "exchange.sock"
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


#: Says which of these variables it has.
TELLS = "import os; print(*(os.environ.get(name, '-') for name in ('ANA_TOKEN', 'TELEGRAM_BOT_TOKEN', 'MINE')))"


async def test_the_tokens_of_people_and_wires_do_not_reach_the_programs_of_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**ENVIRON, "TELEGRAM_BOT_TOKEN": "1:bots-token", "MINE": "left-alone"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tells.py").write_text(TELLS)
    (tmp_path / "tells.yaml").write_text(json.dumps({"command": f"{sys.executable} {tmp_path}/tells.py"}))
    wire = "[wires.telegram]\nallow = ['telegram:1']\napi_url = 'http://127.0.0.1:9'\n"
    text = f"{FILE}{wire}[agents.tells]\nagent = 'agentproc:{tmp_path}/tells.yaml'\n"
    async with running(tmp_path, text, environ=os.environ) as world:
        id = (await world.local.post("/api/sessions", json={"agent": "tells"})).json()["id"]
        await world.local.post(f"/api/sessions/{id}/messages", json={"text": "Tell ana's token"})
        said = await told(world.local, id)
        assert "- - left-alone" in said
        # It is masked where somebody says it, too.
        assert "ana's token" not in said
        # The file is read again with what was there at the start.
        await world.process.reload()
        assert await world.agents() == ["e", "tells"]


async def told(client: httpx.AsyncClient, id: str) -> str:
    """All events of a session up to the end of its turn."""
    lines = []
    async with asyncio.timeout(PATIENCE_SECONDS), client.stream("GET", f"/api/sessions/{id}/events") as events:
        async for line in events.aiter_lines():
            lines.append(line)
            if line == "event: turn_ended":
                break
    return "\n".join(lines)


async def test_a_second_one_with_the_same_home_is_told_so_and_one_with_another_runs_beside_it(tmp_path: Path) -> None:
    async with running(tmp_path):
        with pytest.raises(ConfigError, match=f"as process {os.getpid()}.*another `home`"):
            async with running(tmp_path):
                pass
        async with running(tmp_path / "other") as other:
            assert await other.agents() == ["e"]


async def test_after_one_that_was_killed_the_next_takes_its_socket_over(tmp_path: Path) -> None:
    async with running(tmp_path) as first:
        session = (await first.ana.post("/api/sessions", json={"agent": "e"})).json()["id"]
    left = tmp_path / "home" / "exchange.sock"
    assert not left.exists()
    local_socket.listening(str(left.parent), left.name).close()
    assert left.exists()
    async with running(tmp_path) as second:
        assert (await second.local.get(f"/api/sessions/{session}")).status_code == 200


async def test_an_address_that_is_taken_is_told_with_the_key_that_names_it(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        taken = FILE.replace("127.0.0.1:0", world.process.where.removeprefix("http://"))
        with pytest.raises(ConfigError, match=r"Cannot listen on .*`listen` in the section `\[exchange\]`"):
            async with running(tmp_path / "other", taken):
                pass


async def test_a_changed_file_is_taken_up_without_dropping_a_conversation(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        session = (await world.ana.post("/api/sessions", json={"agent": "e"})).json()["id"]
        world.write(FILE + "[agents.f]\nagent = 'echo'\n[people.bo]\ntoken_env = 'BO_TOKEN'\n")
        assert (await world.ana.post("/api/reload")).json() == {"ok": True}
        assert await world.agents() == ["e", "f"]
        async with world.client("bo's token") as bo:
            assert (await bo.post(f"/api/sessions/{session}/messages", json={"text": "Hello"})).status_code == 202
            assert (await bo.post("/api/reload")).status_code == 403


async def test_a_wrong_file_is_refused_whole_with_the_line_and_the_old_one_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        world.write(FILE + "[agents.f]\nagent = 'echo'\n[people.cy]\ntoken_env = 'NOT_SET'\n")
        refused = await world.ana.post("/api/reload")
        assert refused.status_code == 400
        assert "trunkline.toml:12:1: `people.cy.token_env`" in refused.json()["error"]["message"]
        assert await world.agents() == ["e"]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [('"home"', '"elsewhere"', "exchange.home"), ("127.0.0.1:0", "127.0.0.1:1", "exchange.listen")],
)
async def test_what_cannot_change_while_it_runs_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, key: str
) -> None:
    async with running(tmp_path) as world:
        world.write(FILE.replace(old, new) + "[agents.f]\nagent = 'echo'\n")
        refused = await world.ana.post("/api/reload")
        assert f"`{key}` cannot change while the exchange runs" in refused.json()["error"]["message"]
        assert await world.agents() == ["e"]


async def test_somebody_who_asks_without_waiting_hears_what_became_of_it(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        world.write(FILE + "[agents.f]\nagent = 'echo'\n")
        world.process.ask_to_reload()
        assert "2 agents, 0 wires, 1 person with a token" in await world.heard()
        world.write("[exchange\n")
        world.process.ask_to_reload()
        assert "was not loaded" in await world.heard()
        assert await world.agents() == ["e", "f"]


async def test_a_file_that_is_saved_is_taken_up_by_itself(tmp_path: Path) -> None:
    async with running(tmp_path, watch_seconds=0.01) as world:
        world.write(FILE + "[agents.f]\nagent = 'echo'\n")
        assert "was loaded" in await world.heard()
        assert await world.agents() == ["e", "f"]


async def test_a_file_that_is_moved_away_is_told_once_and_loaded_when_it_is_back(tmp_path: Path) -> None:
    async with running(tmp_path, watch_seconds=0.01) as world:
        world.path.rename(tmp_path / "moved.toml")
        assert "is gone" in await world.heard()
        assert await world.agents() == ["e"]
        (tmp_path / "moved.toml").rename(world.path)
        world.write(FILE.replace("agents.e", "agents.f"))
        assert "was loaded" in await world.heard()
        assert await world.agents() == ["f"]


async def test_it_says_how_to_open_its_console_with_a_link_that_works_once(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        command, _, link = world.process.trial.partition(" ")
        assert command == "open"
        assert link.startswith(f"{world.process.where}/sign-in?code=")
        async with httpx.AsyncClient(follow_redirects=True) as browser, httpx.AsyncClient() as late:
            assert "Home" in (await browser.get(link)).text
            assert (await late.get(link)).status_code == 403


async def test_a_package_that_is_missing_is_told_with_the_same_extra_as_the_doctors_and_makes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.exchange.process.missing", {"exchange": "httptools"}.get)
    with pytest.raises(ConfigError, match="`httptools`") as told:
        async with running(tmp_path):
            pass
    assert "[exchange]" in (told.value.hint or "")
    assert not (tmp_path / "home").exists()


async def test_a_wrong_file_starts_nothing_and_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="NOT_SET"):
        async with running(tmp_path, FILE.replace("ANA_TOKEN", "NOT_SET")):
            pass
    assert not (tmp_path / "home").exists()
