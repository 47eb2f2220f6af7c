"""Our own ACP server against the kit: an agent that follows a script, and the coding agent behind two providers."""

from __future__ import annotations

import sys

import pytest

from tests.support.obliging_provider import provider as obliging_provider
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.acp.stage import Stage, Target
from trunkline.conform.acp.suite import SUITE
from trunkline.conform.kit import CheckResult

COMMAND = (sys.executable, "-m", "trunkline", "acp")

#: What neither of them offers or does: sound, plans that the kit could ask for.
NOT_OFFERED = {"acp.content.audio", "acp.update.plan", "acp.tool.lines"}


async def judged(command: tuple[str, ...]) -> list[CheckResult]:
    target = Target(command, {}, timeout=PATIENCE_SECONDS, patience=PATIENCE_SECONDS / 2)
    results, _ = await SUITE.run(SUITE.select(()), lambda name: Stage(target, name), jobs=3)
    return results


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_scripted_agent_passes_every_check() -> None:
    results = await judged((*COMMAND, "scripted:conformance"))
    assert [(each.check.id, each.reason) for each in results if each.verdict == "failed"] == []
    # It wants no login, sees no pictures, writes no files, and has no commands.
    others = {"acp.auth.shape", "acp.content.image", "acp.session.cwd", "acp.update.commands", "acp.update.usage"}
    assert {each.check.id for each in results if each.verdict != "passed"} == NOT_OFFERED | others


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_the_coding_agent_passes_every_check(provider: str) -> None:
    async with obliging_provider() as server:
        results = await judged((*COMMAND, "--provider", provider, "--base-url", server.url))
    assert [(each.check.id, each.reason) for each in results if each.verdict == "failed"] == []
    # It sees pictures: there is none that it would have to refuse.
    assert {each.check.id for each in results if each.verdict != "passed"} == NOT_OFFERED | {"acp.content.unoffered"}
