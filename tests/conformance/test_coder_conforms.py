"""The coding agent against the conformance kit, behind it a provider in each of the two formats."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.obliging_provider import provider as obliging_provider
from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform.jsonstream.stage import Stage, Target
from trunkline.conform.jsonstream.suite import SUITE
from trunkline.conform.kit import CheckResult

COMMAND = (sys.executable, "-m", "trunkline", "agent", "--json-stream")
MCP_SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"

#: What needs a target of its own: an agent without a key, and one with an MCP server.
APART = {"js.start.no-key", "js.mode.auto-edit.mcp"}


async def judged(target: Target, ids: Sequence[str] = ()) -> list[CheckResult]:
    """What the kit finds; all checks unless some are named."""
    results, _ = await SUITE.run(SUITE.select(ids), lambda name: Stage(target, name), jobs=2)
    return results


@pytest.mark.process
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_the_coding_agent_passes_every_check(provider: str) -> None:
    async with obliging_provider() as server:
        command = (*COMMAND, "--provider", provider, "--base-url", server.url)
        # An agent that cannot reach its model tries for half a minute, and one check waits for that.
        results = await judged(Target(command, {}, timeout=PATIENCE_SECONDS))
    assert [(each.check.id, each.reason) for each in results if each.verdict == "failed"] == []
    assert {each.check.id for each in results if each.verdict == "not exercised"} == APART


@pytest.mark.process
async def test_a_missing_key_is_told_before_ready() -> None:
    target = Target(COMMAND, {"ANTHROPIC_API_KEY": "sk-ant-of-nobody"}, timeout=PATIENCE_SECONDS)
    (result,) = await judged(target, ["js.start.no-key"])
    assert (result.verdict, result.reason) == ("passed", "")


@pytest.mark.process
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_tool_of_an_mcp_server_is_asked_for(provider: str, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    arguments = ", ".join(f"'{argument}'" for argument in ("-S", "-E", str(MCP_SERVER)))
    lines = ["[mcp.servers.small]", f"command = '{sys.executable}'", f"args = [{arguments}]"]
    (tmp_path / "config" / "config.toml").write_text("\n".join(lines))
    async with obliging_provider() as server:
        command = (*COMMAND, "--provider", provider, "--base-url", server.url)
        target = Target(command, {"TRUNKLINE_HOME": str(tmp_path)}, timeout=PATIENCE_SECONDS)
        (result,) = await judged(target, ["js.mode.auto-edit.mcp"])
    assert (result.verdict, result.reason) == ("passed", "")
