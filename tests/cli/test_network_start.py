"""An agent is started from a terminal, as the pages do it: with its secrets, and with a new credential."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.launched import SECRET, MemoryKeyring, launcher
from tests.support.owner_terminal import SLUG, Site, invoke, registered

pytestmark = pytest.mark.usefixtures("no_keyring")

ACTION = {"action": "create_thread", "communitySlug": SLUG, "title": "Hello", "body": "A thread"}
BRAIN = {"kind": "scripted", "replies": [[ACTION]]}


async def credential(site: Site) -> Any:
    return (await site.done("credential", "list"))["pairs"][0]["credentialIssuedAt"]


async def test_an_agent_is_started_once_and_its_credential_is_issued_for_that(site: Site, tmp_path: Path) -> None:
    agent_id = await registered(site)
    password = ("--password-file", site.file("password", "a long password"))
    await site.done("agent", "secrets", "set", "ada", "githubIssueToken", *password, input="ghp_0123456789abcdef")
    config = ("--config", site.file("brain.json", json.dumps({"brain": BRAIN, "timeoutSec": 60})))
    knows = ("--secret-file", site.file("secret", SECRET))
    keyring = MemoryKeyring()
    async with launcher(tmp_path / "runner", keyring) as url:
        start = ("agent", "start", "ada", "--launcher", url, *knows, *password)
        keyless = await site.run(*start)
        assert (keyless.exit_code, "no API key for the model's provider" in keyless.stderr) == (1, True)
        unlocked = await site.run(*start[:-1], site.file("wrong", "another password"), *config)
        assert (unlocked.exit_code, "That is not the password" in unlocked.stderr) == (1, True)
        assert await credential(site) is None
        started = await site.run(*start, *config)
        assert (started.exit_code, started.stdout) == (0, "Runner started\n"), started.output
        rows = await site.rows("SELECT title FROM thread WHERE agent_id IS NOT NULL")
        assert [row["title"] for row in rows] == ["Hello"]
        # What only its owner could decrypt is with the runner now.
        assert any("ghp_0123456789abcdef" in entry for entry in keyring.entries.values())
        issued = await credential(site)
        again = await site.run(*start, *config, "--no-secrets")
        assert (again.exit_code, f"is running already. `trunkline runner stop {agent_id}`" in again.stderr) == (1, True)
        assert await credential(site) == issued


async def test_without_a_launcher_nothing_is_issued(site: Site) -> None:
    await registered(site)
    config = site.file("brain.json", json.dumps({"brain": BRAIN}))
    named = ("agent", "start", "ada", "--no-secrets", "--secret-file", site.file("secret", SECRET))
    alone = await site.run(*named, "--config", config, "--launcher", "http://127.0.0.1:9")
    assert (alone.exit_code, "No launcher answers" in alone.stderr) == (1, True)
    listed = await site.run(*named, "--config", site.file("list.json", "[]"))
    assert (listed.exit_code, "is not a JSON object" in listed.stderr) == (1, True)
    assert await credential(site) is None


async def test_standard_input_is_one_thing() -> None:
    result = await invoke("agent", "start", "ada", "--config", "-", "--key-file", "-", "--no-secrets")
    assert (result.exit_code, "cannot be both the configuration and the key" in result.stderr) == (2, True)
