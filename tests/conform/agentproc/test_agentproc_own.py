"""Our own ends against the kits: the bridge that people run, and an agent that it can serve."""

from __future__ import annotations

import sys

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.agentproc.agent.stage import Stage as AgentStage
from trunkline.conform.agentproc.agent.stage import Target as AgentTarget
from trunkline.conform.agentproc.agent.suite import SUITES
from trunkline.conform.agentproc.bridge import partials
from trunkline.conform.agentproc.bridge.stage import Stage, Target
from trunkline.conform.agentproc.bridge.suite import SUITE
from trunkline.wires.agentproc.messages import Dialect

TRUNKLINE = (sys.executable, "-m", "trunkline", "agentproc")
RUN = (
    *TRUNKLINE, "run", "--profile", "{profile}", "--message", "{message}", "--session", "{session}",
    "--session-name", "{session_name}", "--from", "{from}", "--image-url", "{image}", "--file-url", "{file}",
)  # fmt: skip
# Never a matter of speed here: the figures of the bench are.
PATIENCE = 20.0


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
async def test_the_bridge_passes_every_check() -> None:
    target = Target((*RUN, "--json"), {}, timeout=2 * PATIENCE, patience=PATIENCE)
    results, _ = await SUITE.run(SUITE.select(()), lambda name: Stage(target, name), jobs=8)
    # With `--json` everything is told at the end; the next test looks at what is shown meanwhile.
    assert [(each.check.id, each.reason) for each in results if each.verdict != "passed"] == [
        ("br.partial.live", "the bridge shows everything at the end")
    ]


@pytest.mark.process
async def test_the_bridge_shows_people_what_comes_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partials, "LIVE_SECONDS", PATIENCE_SECONDS)
    target = Target(RUN, {}, timeout=2 * PATIENCE_SECONDS, patience=PATIENCE_SECONDS)
    checks = SUITE.select(["br.partial.live", "br.partial.decoded", "br.error.body", "br.error.stderr", "br.exit.same"])
    results, _ = await SUITE.run(checks, lambda name: Stage(target, name), jobs=8)
    assert [(each.check.id, each.reason) for each in results if each.verdict != "passed"] == []


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("dialect", SUITES)
async def test_an_agent_that_is_served_passes_every_check(dialect: Dialect) -> None:
    argv = (*TRUNKLINE, "serve", "scripted", "--script", "conformance")
    target = AgentTarget(argv, {}, dialect, timeout=2 * PATIENCE, patience=PATIENCE, exit_seconds=PATIENCE / 2)
    suite = SUITES[dialect]
    results, _ = await suite.run(suite.select(()), lambda name: AgentStage(target, name), jobs=8)
    prefix = next(iter(suite.checks)).split(".")[0]
    # The script does not look at attachments.
    assert [each.check.id for each in results if each.verdict != "passed"] == [f"{prefix}.attach.seen"]


@pytest.mark.process
@pytest.mark.parametrize("agent", ["echo", "scripted:conformance"])
@pytest.mark.parametrize("dialect", SUITES)
async def test_an_attachment_without_a_word_is_answered(dialect: Dialect, agent: str) -> None:
    target = AgentTarget((*TRUNKLINE, "serve", agent), {}, dialect, timeout=PATIENCE_SECONDS, patience=PATIENCE_SECONDS)
    suite = SUITES[dialect]
    results, _ = await suite.run(suite.select(["*.attach.alone"]), lambda name: AgentStage(target, name), jobs=1)
    assert [(each.verdict, each.reason) for each in results] == [("passed", "")]
