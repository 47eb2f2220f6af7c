"""The agents that a home knows, on disk."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.launched import config
from trunkline.core.faults import ConfigError
from trunkline.runner import parting
from trunkline.runner.config import merged, normalise
from trunkline.runner.known import KnownAgent, KnownAgents


def agent(agent_id: str = "a1", **more: Any) -> KnownAgent:
    return KnownAgent(agent_id, {"agentId": agent_id, **more}, (("runnerToken",), ("brain", "apiKey")), True)


def test_what_is_kept_is_there_for_the_next_process(tmp_path: Path) -> None:
    first = KnownAgents(str(tmp_path))
    assert first.all() == []
    odd = agent("b\ud800/../é\0")
    first.keep(agent())
    first.keep(odd)
    first.keep(agent(timeoutSec=5))
    first.want(odd.agent_id, False)
    first.want("nobody", True)
    assert KnownAgents(str(tmp_path)).all() == [agent(timeoutSec=5), odd.replace(wanted=False)]
    mode = stat.S_IMODE((tmp_path / "runner/agents.json").stat().st_mode)
    assert mode == 0o600


def test_many_who_write_at_once_lose_nothing(tmp_path: Path) -> None:
    stores = [KnownAgents(str(tmp_path)) for _ in range(8)]
    threads = [threading.Thread(target=store.keep, args=(agent(f"a{n}"),)) for n, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {known.agent_id for known in stores[0].all()} == {f"a{n}" for n in range(8)}


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownAgents(str(tmp_path))
    known.keep(agent())

    def broken(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="No space"):
        known.keep(agent("a2"))
    assert known.all() == [agent()]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2, "agents": {}}', '{"version": 1, "agents": {"a": 1}}'])
def test_a_file_that_cannot_be_understood_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "runner").mkdir()
    (tmp_path / "runner/agents.json").write_text(text)
    with pytest.raises(ConfigError, match=r"agents\.json.* cannot be read.* move it away"):
        KnownAgents(str(tmp_path)).all()


def test_only_one_runs_an_agent_until_it_lets_go(tmp_path: Path) -> None:
    first, second = KnownAgents(str(tmp_path)), KnownAgents(str(tmp_path))
    assert first.hold("a1")
    assert first.hold("a1")
    assert not second.hold("a1")
    assert second.hold("a2")
    first.let_go("a1")
    first.let_go("a1")
    assert second.hold("a1")
    second.let_go("a1")
    second.let_go("a2")


def test_a_configuration_is_parted_by_names_and_by_values_and_merged_again() -> None:
    given = config(
        execution={"rpcUrl": "https://rpc.example/v2/abc123def", "privateKey": "0x" + "4f" * 32},
        prompts={"system": "You are rnr_a1_0123456789, be kind.", "append": "Be brief."},
        llm={"baseUrl": "http://127.0.0.1:1/v1", "apiKey": {"env": "PATH"}},
    )
    parts = parting.parted(normalise(given))
    text = json.dumps(parts.public)
    for secret in ("rnr_a1_0123456789", "4f4f4f4f", "abc123def"):
        assert secret not in text
    assert parts.public["prompts"] == {"append": "Be brief."}
    assert parts.public["llm"] == given["llm"]
    assert merged(parts.public, parts.secret) == given
    assert set(parting.paths(parts.secret)) == {
        ("runnerToken",), ("execution", "rpcUrl"), ("execution", "privateKey"), ("prompts", "system"),
    }  # fmt: skip


def test_what_brings_nothing_but_secrets_is_told_from_a_whole_configuration() -> None:
    for secrets in (
        {"agentId": "a1"},
        {"agentId": "a1", "runnerToken": "x", "brain": {"apiKey": "y"}},
        {"agentId": "a1", "runnerToken": {"env": "X"}, "securitySensitive": {"llmApiKey": "y"}},
    ):
        assert parting.is_only_secrets(secrets), secrets
    for whole in ({"agentId": "a1", "snsBaseUrl": "http://x"}, {"brain": {"kind": "scripted", "apiKey": "x"}}):
        assert not parting.is_only_secrets(whole), whole
