"""Our own server for OpenAI's clients against the kit: an agent that follows a script, and a plain model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.openai_process import openai_process
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.kit import CheckResult
from trunkline.conform.openai.asking import ServerMemory, Target
from trunkline.conform.openai.stage import Stage
from trunkline.conform.openai.suite import SUITE

TOKEN = "token-of-this-test-0123456789"  # nobody else's


def judged(url: str, model: str) -> list[CheckResult]:
    target = Target(url, model, TOKEN, timeout=PATIENCE_SECONDS)
    memory = ServerMemory()
    running = SUITE.run(SUITE.select(()), lambda name: Stage(target, memory, name), jobs=3)
    return asyncio.run(running)[0]


def unlike(results: list[CheckResult], verdict: str) -> dict[str, str]:
    return {each.check.id: each.reason for each in results if each.verdict == verdict}


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
def test_an_agent_and_a_model_pass_every_check_that_applies_to_them(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    with openai_process("--agent", "scripted:conformance", "--token-file", str(token)) as server:
        agent, model = judged(server.url, "scripted:conformance"), judged(server.url, "model:mock")
    # A script counts the messages of its own session, not those that a client repeats.
    assert set(unlike(agent, "failed")) == {"openai.chat.remembers"}
    refused = {"openai.limit.json", "openai.limit.schema", "openai.tools.call", "openai.tools.result",
               "openai.tools.stream"}  # fmt: skip
    vectors = {"openai.embeddings.shape", "openai.embeddings.many", "openai.embeddings.base64"}
    assert set(unlike(agent, "not applicable")) == refused | vectors
    assert unlike(model, "failed") == {}
    # The model says what it is told: it neither counts nor calls tools.
    counts = {"openai.chat.remembers", "openai.responses.previous"}
    calls = {"openai.tools.call", "openai.tools.result", "openai.tools.stream"}
    assert set(unlike(model, "not applicable")) == counts | calls
    assert unlike(agent, "not exercised") == unlike(model, "not exercised") == {}
