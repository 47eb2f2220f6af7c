"""The configuration of a runner: defaults, the older form, and what becomes of its secrets."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from trunkline.core.faults import ConfigError
from trunkline.runner import config as module
from trunkline.runner.config import merged, normalise

KEY = "0x" + "4f" * 32
BASE: dict[str, Any] = {
    "snsBaseUrl": "http://127.0.0.1:4317/",
    "runnerToken": "rnr_token-of-the-runner",
    "agentId": "cagent",
    "brain": {"kind": "openai", "baseUrl": "http://127.0.0.1:1/v1", "model": "m", "apiKey": "sk-of-the-model"},
    "execution": {"rpcUrl": "https://node.example/v3/0123456789abcdef0123456789abcdef", "privateKey": KEY},
    "integrations": {"githubIssueToken": "ghp_of-the-owner"},
    "runtime": {"intervalSec": 12.9, "commentLimit": 0, "maxTokens": 500},
}
SECRETS = ("rnr_token-of-the-runner", "sk-of-the-model", "0123456789abcdef0123456789abcdef", KEY, "ghp_of-the-owner")


def test_what_is_not_said_has_a_default() -> None:
    config = normalise({"runnerToken": "t", "agentId": "a", "brain": {"kind": "scripted", "replies": ["[]"]}})
    assert (config.sns_base_url, config.timeout_seconds, config.interval_seconds) == ("http://localhost:3000", 60, 60)
    assert (config.comment_limit, config.max_tokens, config.read_actions) == (50, None, False)
    assert (config.execution, config.github.token, config.log) == (None, None, None)


def test_numbers_are_whole_and_within_their_limits() -> None:
    config = normalise({**BASE, "timeoutSec": 2.5})
    assert (config.sns_base_url, config.timeout_seconds) == ("http://127.0.0.1:4317", 2.5)
    assert (config.interval_seconds, config.comment_limit, config.max_tokens) == (12, 0, 500)
    assert config.execution is not None
    assert config.execution.timeout_seconds == 2.5
    odd = normalise({**BASE, "runtime": {"intervalSec": 0.2, "commentLimit": -1, "maxTokens": "many"}})
    assert (odd.interval_seconds, odd.comment_limit, odd.max_tokens) == (1, 50, None)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"runnerToken": " "}, "runnerToken is required"),
        ({"agentId": None}, "agentId is required"),
        ({"brain": None}, "securitySensitive.llmApiKey is required"),
        ({"encodedInput": "%%%"}, "encodedInput is invalid"),
        ({"timeoutSec": 0}, "timeoutSec"),
        ({"prompts": {"user": "no place"}}, "prompts.user"),
        ({"prompts": {"system": {"file": "/nowhere/x.md"}}}, "cannot be read"),
        ({"runnerToken": {"env": "NOT_SET"}}, "`NOT_SET` is not set"),
        ({"snsBaseUrl": 5}, "`snsBaseUrl` must be a string"),
        ({"runnerToken": 5}, "`runnerToken` must be a string"),
        ({"log": 5}, "`log` must be a string"),
        ({"log": "a\0b"}, "`log` is not a valid path"),
        ({"log": "a\ud800b"}, "`log` is not a valid path"),
        ({"runtime": "x"}, "`runtime` must be an object"),
        ({"llm": ["x"]}, "`llm` must be an object"),
        ({"llm": {"apiKey": 5}}, r"`llm\.apiKey` must be a string"),
        ({"prompts": [1]}, "`prompts` must be an object"),
        ({"prompts": {"system": 1}}, r"`prompts\.system` must be a string"),
        ({"integrations": {"githubIssueToken": 1}}, r"`integrations\.githubIssueToken` must be a string"),
        ({"securitySensitive": {"llmApiKey": 1}}, r"`securitySensitive\.llmApiKey` must be a string"),
        ({"readActions": "yes"}, "`readActions` must be true or false"),
    ],
)
def test_what_cannot_work_is_said(change: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        normalise({**BASE, **change})
    with pytest.raises(ConfigError, match="Runner config is required"):
        normalise([])


def test_the_older_form_is_understood_and_the_explicit_one_counts() -> None:
    inner = {
        "securitySensitive": {
            "llmApiKey": "sk-inner-inner",
            "executionWalletPrivateKey": KEY,
            "alchemyApiKey": "alc" * 8,
        },
        "runner": {"intervalSec": 30, "commentContextLimit": 5},
    }
    encoded = b64encode(json.dumps(inner).encode()).decode()
    given = {"runnerToken": "t", "agentId": "a", "encodedInput": encoded, "llm": {"apiKey": "sk-outer-outer"}}
    config = normalise({**given, "runtime": {"intervalSec": 99}})
    assert (config.llm_api_key, config.interval_seconds, config.comment_limit) == ("sk-inner-inner", 30, 5)
    assert config.execution is not None
    assert config.execution.rpc_url.endswith("alc" * 8)
    assert {"sk-inner-inner", "alc" * 8} <= set(config.secrets())
    explicit = normalise({**given, "securitySensitive": {"llmApiKey": "sk-explicit-one"}})
    assert explicit.llm_api_key == "sk-explicit-one"


def test_secrets_are_known_by_value_and_shown_nowhere() -> None:
    config = normalise(BASE)
    assert set(SECRETS) <= set(config.secrets())
    shown = f"{config!r}{config.execution!r}{config.github!r}{json.dumps(config.redacted())}"
    shown += json.dumps(config.without_secrets())
    for secret in SECRETS:
        assert secret not in shown
    redacted = config.redacted()
    assert redacted["auth"] == {"hasRunnerToken": True, "hasAgentId": True}
    assert redacted["execution"]["hasPrivateKey"] is True
    assert redacted["runtime"]["maxTokens"] == 500


def test_what_is_kept_and_the_secrets_make_the_whole_again() -> None:
    config = normalise(BASE)
    assert merged(config.without_secrets(), config.secret_parts()) == BASE
    assert config.without_secrets()["runtime"] == BASE["runtime"]


def test_a_secret_may_be_in_the_environment_and_stays_there() -> None:
    given = {**BASE, "runnerToken": {"env": "MY_TOKEN"}}
    config = normalise(given, {"MY_TOKEN": "rnr_from-the-environment"})
    assert config.runner_token == "rnr_from-the-environment"
    assert config.without_secrets()["runnerToken"] == {"env": "MY_TOKEN"}
    assert "rnr_from-the-environment" in config.secrets()


def test_a_prompt_is_a_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "user.md"
    file.write_text("Now: {{context}}")
    config = normalise({**BASE, "prompts": {"user": str(file), "system": "You are brief."}})
    assert (config.prompts.user, config.prompts.system) == ("Now: {{context}}", "You are brief.")


def test_a_prompt_is_read_from_regular_files_alone_and_not_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody writes into it: whoever waited for that would wait for ever.
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(ConfigError, match="not a regular file"):
        normalise({**BASE, "prompts": {"system": str(tmp_path / "pipe.md")}})
    monkeypatch.setattr(module, "MAX_PROMPT", 4)
    (tmp_path / "long.md").write_text("too long")
    with pytest.raises(ConfigError, match="more than 4 bytes"):
        normalise({**BASE, "prompts": {"append": {"file": str(tmp_path / "long.md")}}})


def test_a_member_of_a_brain_that_is_not_known_is_refused_with_where_it_goes() -> None:
    with pytest.raises(ConfigError, match=r"Unknown key `brain.provider`.*go into `brain.options`"):
        normalise({**BASE, "brain": {"kind": "agent", "name": "coder", "provider": "anthropic"}})
    with pytest.raises(ConfigError, match=r"Unknown key `brain.modell`. Did you mean `brain.model`"):
        normalise({**BASE, "brain": {"kind": "openai", "modell": "m"}})
