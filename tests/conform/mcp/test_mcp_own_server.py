"""Our own MCP server, held to the kit on both transports, and servers that we did not write."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.mcp_environment import INSTALL_SECONDS, PROXIED, environment
from tests.support.mcp_fixture import served_face
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.kit import CheckResult
from trunkline.conform.mcp.stage import Stage, Target
from trunkline.conform.mcp.suite import SUITE
from trunkline.wires.mcp.agents import AgentsOffer

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(2 * INSTALL_SECONDS)]

SCRIPT = """
turns:
  - when: slow
    steps: [{text: "I begin."}, {wait: 3}, {text: "Done."}]
  - steps: [{text: "You said: {{input}}"}]
"""


async def results_of(target: Target) -> list[CheckResult]:
    results, _ = await SUITE.run(SUITE.select(()), lambda check: Stage(target, check), jobs=2)
    return results


def flaws(results: list[CheckResult]) -> list[str]:
    return [f"{each.check.id}: {each.reason}" for each in results if each.verdict in ("failed", "not exercised")]


async def test_the_server_on_standard_streams_is_flawless(tmp_path: Path) -> None:
    script = tmp_path / "slow.yaml"
    script.write_text(SCRIPT)
    results = await results_of(
        Target(
            (sys.executable, "-m", "trunkline", "mcp", "serve", "--script", str(script)),
            {},
            timeout=PATIENCE_SECONDS,
            patience=PATIENCE_SECONDS,
            tool="ask_scripted",
            arguments={"message": "hello"},
            slow_tool="ask_scripted",
            slow_arguments={"message": "slow"},
        )
    )
    assert flaws(results) == []


async def test_the_server_on_the_web_is_flawless() -> None:
    offer = AgentsOffer()
    async with served_face(offer) as face:
        results = await results_of(
            Target(
                (face.url,),
                {},
                url=face.url,
                timeout=PATIENCE_SECONDS,
                patience=PATIENCE_SECONDS,
                tool="ask_echo",
                arguments={"message": "hello"},
                slow_tool="ask_echo",
                slow_arguments={"message": "wait"},
            )
        )
        await offer.close()
        await face.keeper.close()
    assert flaws(results) == []


async def test_a_server_of_somebody_else_gets_a_fair_report() -> None:
    command = (str(environment(PROXIED) / "mcp-server-time"),)
    target = Target(command, {}, timeout=PATIENCE_SECONDS, tool="get_current_time", arguments={"timezone": "UTC"})
    results = await results_of(target)
    # The first generation of the SDK calls an unknown method wrong parameters.
    failed = [each for each in results if each.counts_as_failed]
    assert {each.check.id for each in failed} == {"mcp.rpc.unknown-method"}, failed
