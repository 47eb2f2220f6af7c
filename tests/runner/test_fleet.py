"""Several agents, with fake runners: at most one engine for each, and what is known after a restart."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.launched import HANGS, FakePerformer, MemoryKeyring, Runners, config, keys
from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import ConfigError, UnknownCall
from trunkline.runner import engine, fleet, watching
from trunkline.runner.config import RunnerConfig
from trunkline.runner.cycle import IN_FLIGHT, CycleReport
from trunkline.runner.engine import STOPPED, Cycles
from trunkline.runner.fleet import AlreadyRunning, Fleet, FleetHome, NotInFleet, NotStarted
from trunkline.runner.holding import FileRoster, Hold
from trunkline.runner.keys import SERVICE

FAILS = CycleReport(error="the model is away")
KEY = "0x" + "4f" * 32


@pytest.fixture(autouse=True)
def _paced(monkeypatch: pytest.MonkeyPatch) -> None:
    # A start waits for its first cycle and its keyring, on a busy machine as well.
    monkeypatch.setattr(fleet, "FIRST_CYCLE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(fleet, "KEYRING_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(engine, "STOP_SECONDS", 0.2)


_made: list[Fleet] = []


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    """However a test ends, its fleets are closed."""
    yield
    while _made:
        await _made.pop().close()


def make(home: Path, *reports: CycleReport, keyring: MemoryKeyring | None = None) -> tuple[Fleet, Runners]:
    runners = Runners(*reports)
    _made.append(Fleet(FleetHome(str(home), runners), keys(keyring)))
    return _made[-1], runners


async def test_an_agent_runs_until_it_is_stopped_and_its_status_stays(tmp_path: Path) -> None:
    agents, runners = make(tmp_path, FAILS)
    assert await agents.start(config()) == "a1"
    status = await watching.status(agents)
    assert (status["running"], status["lastError"], status["secretsKept"]) == (True, "the model is away", False)
    assert (status["runningAgentIds"], status["agentCount"], status["selectedAgentRunning"]) == (["a1"], 1, True)
    await agents.stop("a1")
    assert runners.made[0].closed
    status = await watching.status(agents, "a1")
    assert (status["running"], status["state"], status["lastError"]) == (False, "stopped", "the model is away")
    assert status["lastRunAt"] is not None
    await agents.stop("nobody")
    other = await watching.status(agents, "nobody")
    assert (other["selectedAgentId"], other["selectedAgentStatus"], other["running"]) == ("nobody", None, False)


class SlowRoster(FileRoster):
    """Letting go of an agent takes until `gone` is set, as with a database that is far away."""

    def __init__(self, home: str) -> None:
        super().__init__(home)
        self.gone = asyncio.Event()

    async def let_go(self, agent_id: str) -> None:
        await self.gone.wait()
        await super().let_go(agent_id)


async def test_an_agent_is_told_of_while_it_is_being_let_go_of(tmp_path: Path) -> None:
    roster = SlowRoster(str(tmp_path))
    agents = Fleet(FleetHome(str(tmp_path), Runners()), keys(), roster)
    _made.append(agents)
    await agents.start(config())
    stopping = asyncio.create_task(agents.stop("a1"))
    await until(lambda: "a1" not in agents.engines)
    assert [each["agentId"] for each in (await watching.status(agents))["agents"]] == ["a1"]
    roster.gone.set()
    await stopping


async def test_of_two_starts_at_once_one_is_refused(tmp_path: Path) -> None:
    agents, runners = make(tmp_path)
    outcomes = await asyncio.gather(*(agents.start(config()) for _ in range(5)), return_exceptions=True)
    assert outcomes.count("a1") == 1
    refused = [each for each in outcomes if isinstance(each, AlreadyRunning)]
    assert {str(each) for each in refused} == {"Runner is already running for agent a1"}
    assert (len(refused), len(runners.made)) == (4, 1)
    await agents.close()


async def test_a_launcher_of_the_same_home_does_not_run_what_another_runs(tmp_path: Path) -> None:
    first, _ = make(tmp_path)
    second, runners = make(tmp_path, keyring=MemoryKeyring())
    await first.start(config())
    with pytest.raises(AlreadyRunning, match="Another launcher"):
        await second.start(config())
    assert runners.made == []
    await second.restore()
    await second.stop()
    await first.close()
    third, runners = make(tmp_path)
    await third.restore()
    assert (await watching.status(third))["state"] == "waiting for secrets"


async def test_those_that_a_file_names_run_each_time_and_only_as_long_as_it_names_them(tmp_path: Path) -> None:
    for agent_ids in (["a1", "a2"], ["a2"]):
        runners = Runners()
        agents = Fleet(FleetHome(str(tmp_path), runners, agents=tuple(map(config, agent_ids))), keys(MemoryKeyring()))
        _made.append(agents)
        await agents.begin()
        await agents.restore()
        assert list(agents.engines) == [runner.config.agent_id for runner in runners.made] == agent_ids
        await agents.close()


async def test_one_that_a_file_names_and_another_launcher_runs_is_told_of(tmp_path: Path) -> None:
    first, _ = make(tmp_path)
    await first.start(config())
    second = Fleet(FleetHome(str(tmp_path), Runners(), agents=(config(), config("a2"))), keys())
    _made.append(second)
    await second.begin()
    assert list(second.engines) == ["a2"]
    assert "Another launcher" in (await watching.status(second, "a1"))["lastError"]


async def test_start_does_not_wait_for_ever_and_stop_ends_a_cycle_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "FIRST_CYCLE_SECONDS", 0.05)
    agents, runners = make(tmp_path, HANGS)
    for agent_id in ("a1", "a2"):
        await agents.start(config(agent_id))
    await agents.stop()
    assert [runner.closed for runner in runners.made] == [True, True]
    assert (await watching.status(agents))["runningAny"] is False


async def test_what_cannot_be_opened_is_not_known_and_can_be_started_later(tmp_path: Path) -> None:
    agents, runners = make(tmp_path)
    token = config()["runnerToken"]

    def refuse(config: RunnerConfig, home: str, port: int | None, hold: Hold) -> Cycles:
        raise ConfigError(f"cannot open with {token}")

    agents.place = agents.place.replace(make=refuse)
    with pytest.raises(ConfigError, match=r"cannot open with \[redacted\]"):
        await agents.start(config())
    assert not (tmp_path / "runner/agents.json").exists()
    agents.place = agents.place.replace(make=runners)
    await agents.start(config())
    await agents.close()


async def test_a_disk_that_cannot_keep_it_starts_nothing(tmp_path: Path) -> None:
    agents, runners = make(tmp_path)
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner/agents.json.new").mkdir()
    with pytest.raises(OSError, match="agents"):
        await agents.start(config())
    assert runners.made[0].closed
    assert agents.engines == {}
    (tmp_path / "runner/agents.json.new").rmdir()
    await agents.start(config())
    await agents.close()


async def test_after_a_restart_those_that_ran_run_again_and_those_that_were_stopped_do_not(tmp_path: Path) -> None:
    ring = MemoryKeyring()
    first, _ = make(tmp_path, keyring=ring)
    for agent_id in ("a1", "a2"):
        await first.start(config(agent_id))
    await first.stop("a2")
    await first.close()
    second, runners = make(tmp_path, keyring=ring)
    await second.restore()
    assert [runner.config.agent_id for runner in runners.made] == ["a1"]
    assert runners.made[0].config.runner_token == config("a1")["runnerToken"]
    status = await watching.status(second, "a2")
    assert (status["selectedAgentRunning"], status["state"], status["agentCount"]) == (False, "stopped", 2)
    await second.start({"agentId": "a2"})
    assert runners.made[1].config.runner_token == config("a2")["runnerToken"]
    await second.close()


async def test_without_a_keyring_they_wait_for_their_secrets_and_start_with_them_alone(tmp_path: Path) -> None:
    first, _ = make(tmp_path)
    given = config(execution={"rpcUrl": "http://127.0.0.1:1", "privateKey": KEY}, timeoutSec=7)
    await first.start(given)
    await first.close()
    second, runners = make(tmp_path)
    await second.restore()
    status = await watching.status(second)
    assert (status["running"], status["state"]) == (False, "waiting for secrets")
    assert status["missingSecrets"] == ["runnerToken", "execution.privateKey"]
    assert "Start it with them" in status["lastError"]
    # One of two is not enough: an agent without its wallet would be another one.
    with pytest.raises(ConfigError, match=r"`execution\.privateKey`"):
        await second.start({"agentId": "a1", "runnerToken": given["runnerToken"]})
    await second.start({"agentId": "a1", "runnerToken": given["runnerToken"], "execution": {"privateKey": KEY}})
    assert runners.made[0].config.given == given
    await second.close()


async def test_whoever_brings_the_secrets_does_not_wait_for_the_keyring(tmp_path: Path) -> None:
    first, _ = make(tmp_path)
    await first.start(config())
    await first.close()
    asked, go_on = threading.Event(), threading.Event()

    class Slow(MemoryKeyring):
        def get_password(self, service: str, username: str) -> str | None:
            asked.set()
            go_on.wait(10)
            return None

    second, runners = make(tmp_path, keyring=Slow())
    restoring = asyncio.create_task(second.restore())
    assert await asyncio.to_thread(asked.wait, 10)
    starting = asyncio.create_task(second.start(config()))
    await until(lambda: runners.made)
    go_on.set()
    await asyncio.gather(restoring, starting)
    assert len(runners.made) == 1
    assert (await watching.status(second))["running"]
    await second.close()


async def test_a_whole_configuration_replaces_what_was_known(tmp_path: Path) -> None:
    agents, runners = make(tmp_path, keyring=MemoryKeyring())
    await agents.start(config(execution={"rpcUrl": "http://127.0.0.1:1", "privateKey": KEY}))
    await agents.stop("a1")
    await agents.start(config())
    assert runners.made[1].config.execution is None
    await agents.close()


async def test_secrets_in_the_environment_need_no_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TOKEN_OF_MINE", "rnr_from_the_environment")
    first, _ = make(tmp_path)
    await first.start(config(runnerToken={"env": "AGENT_TOKEN_OF_MINE"}))
    assert (await watching.status(first))["secretsKept"] is True
    await first.close()
    second, runners = make(tmp_path)
    await second.restore()
    assert runners.made[0].config.runner_token == "rnr_from_the_environment"
    await second.close()
    monkeypatch.delenv("AGENT_TOKEN_OF_MINE")
    third, runners = make(tmp_path)
    await third.restore()
    status = await watching.status(third)
    assert (runners.made, status["state"]) == ([], "stopped")
    assert "`AGENT_TOKEN_OF_MINE` is not set" in status["lastError"]


async def test_no_file_holds_a_secret(tmp_path: Path) -> None:
    planted: dict[str, Any] = {
        "runnerToken": "rnr_planted_0000000001",
        "brain": {"kind": "openai", "model": "m", "apiKey": "sk-planted-0000000002"},
        "execution": {"rpcUrl": "https://rpc.example/v2/short-key-03", "privateKey": KEY},
        "integrations": {"githubIssueToken": "ghp_planted_0000000004"},
        "snsBaseUrl": "http://someone:planted-password-5@127.0.0.1:1",
        "prompts": {"append": "Never say sk-planted-0000000002."},
    }
    ring = MemoryKeyring()
    agents, _ = make(tmp_path, FAILS, keyring=ring)
    await agents.start(config(**planted))
    await agents.configure("a1", {"llm": {"apiKey": "sk-planted-0000000006"}})
    shown = str(await watching.status(agents))
    await agents.close()
    secrets = ["planted", "short-key-03", "4f4f4f4f"]
    assert_in_no_file(tmp_path, secrets)
    for secret in secrets:
        assert secret not in shown
        assert secret in ring.entries[SERVICE, "a1"]


def assert_in_no_file(home: Path, secrets: list[str]) -> None:
    files = [path for path in home.rglob("*") if path.is_file()]
    assert home / "runner/agents.json" in files
    for path in files:
        for secret in secrets:
            assert secret.encode() not in path.read_bytes(), path


async def test_a_change_of_the_configuration_counts_at_once_and_is_kept(tmp_path: Path) -> None:
    agents, runners = make(tmp_path)
    await agents.start(config(runtime={"intervalSec": 60, "commentLimit": 7}))
    await agents.configure(None, {"runtime": {"intervalSec": 90}})
    assert runners.made[0].closed
    fresh = runners.made[1].config
    assert (fresh.interval_seconds, fresh.comment_limit) == (90, 7)
    assert (await agents._roster.all())[0].config["runtime"] == {"intervalSec": 90, "commentLimit": 7}
    await until(lambda: runners.made[1].begun)
    await agents.close()


async def test_a_change_that_cannot_work_changes_nothing(tmp_path: Path) -> None:
    agents, runners = make(tmp_path)
    with pytest.raises(NotInFleet):
        await agents.configure("a1", {})
    await agents.start(config())
    wrong: tuple[dict[str, Any], ...] = (
        {"timeoutSec": -1}, {"agentId": "a2"}, {"runnerToken": None}, {"runtime": {"maxCyclesPerDay": "x"}},
    )  # fmt: skip
    for change in wrong:
        with pytest.raises(ConfigError):
            await agents.configure("a1", change)
    assert agents.engines["a1"].runner is runners.made[0]
    assert not runners.made[0].closed
    assert agents.engines["a1"].running
    await agents.close()


async def test_one_cycle_of_an_agent_that_is_not_running(tmp_path: Path) -> None:
    agents, runners = make(tmp_path)
    assert await agents.run_once(None, config()) == CycleReport()
    assert runners.made[0].closed
    assert (await watching.status(agents))["agentCount"] == 0
    with pytest.raises(NotInFleet):
        await agents.run_once("a1", None)


async def test_a_second_cycle_of_the_same_agent_is_skipped_and_closing_ends_the_first(tmp_path: Path) -> None:
    agents, runners = make(tmp_path, HANGS)
    first = asyncio.create_task(agents.run_once(None, config()))
    await until(lambda: runners.made and runners.made[0].begun)
    assert await agents.run_once(None, config()) == CycleReport(error=IN_FLIGHT, skipped=True)
    await agents.close()
    assert (await first).error == STOPPED
    assert len(runners.made) == 1


async def test_nothing_begins_while_all_is_ending(tmp_path: Path) -> None:
    agents, runners = make(tmp_path)
    await agents.close()
    with pytest.raises(NotStarted, match="being stopped"):
        await agents.start(config())
    assert runners.made == []


async def test_a_start_that_all_is_stopped_during_does_not_say_that_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "FIRST_CYCLE_SECONDS", 10 * PATIENCE_SECONDS)
    agents, runners = make(tmp_path, HANGS)
    starting = asyncio.create_task(agents.start(config()))
    # It gets the lock first, and lets go of it when the engine runs.
    await asyncio.sleep(0)
    async with agents._lock("a1"):
        assert len(runners.made) == 1
    await agents.close()
    with pytest.raises(NotStarted, match="being stopped"):
        await starting


async def test_a_keyring_that_waits_for_a_person_does_not_keep_a_start_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "KEYRING_SECONDS", 0.01)
    ring, unlocked = MemoryKeyring(), threading.Event()
    keep = ring.set_password

    def wait(service: str, username: str, password: str) -> None:
        unlocked.wait(PATIENCE_SECONDS)
        keep(service, username, password)

    monkeypatch.setattr(ring, "set_password", wait)
    agents, _ = make(tmp_path, keyring=ring)
    await agents.start(config())
    assert (await watching.status(agents))["secretsKept"] is False
    unlocked.set()
    await asyncio.gather(*agents._saving)
    assert (await watching.status(agents))["secretsKept"] is True
    await agents.close()


async def test_stopping_while_it_starts_wins(tmp_path: Path) -> None:
    agents, _ = make(tmp_path)
    starting = asyncio.create_task(agents.start(config()))
    await asyncio.sleep(0)
    await agents.stop("a1")
    with pytest.raises(NotStarted, match="stopped while"):
        await starting
    assert agents.engines == {}
    assert (await agents._roster.all())[0].wanted is False


async def test_approvals_name_their_agent_and_a_number_that_two_have_is_refused(tmp_path: Path) -> None:
    agents, runners = make(tmp_path)
    performers = {"a1": FakePerformer("11-1", "11-2"), "a2": FakePerformer("11-1")}
    runners.prepare = lambda runner: setattr(runner, "performer", performers.get(runner.config.agent_id))
    for agent_id in ("a1", "a2", "a3"):
        await agents.start(config(agent_id))
    listed = await watching.approvals(agents)
    assert [each["id"] for each in listed] == ["a1/11-1", "a1/11-2", "a2/11-1"]
    assert [each["waitingApprovals"] for each in (await watching.status(agents))["agents"]] == [2, 1, 0]
    with pytest.raises(UnknownCall, match="Several agents"):
        await watching.decide(agents, "11-1", True)
    with pytest.raises(UnknownCall, match="No transaction"):
        await watching.decide(agents, "a3/11-1", True)
    await watching.decide(agents, "a2/11-1", True)
    await watching.decide(agents, "11-2", False)
    assert (performers["a2"].decided, performers["a1"].decided) == ([("11-1", True)], [("11-2", False)])
    await agents.close()
