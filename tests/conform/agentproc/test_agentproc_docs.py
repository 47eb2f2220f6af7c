"""The reference names the limits that the kit has."""

from __future__ import annotations

from tests.support.conformance import reference
from trunkline.conform.agentproc.agent import stage as agent_stage
from trunkline.conform.agentproc.bridge import partials
from trunkline.conform.agentproc.bridge import stage as bridge_stage


def test_the_reference_names_the_limits() -> None:
    text = reference("agentproc")
    assert f"one turn of an agent | `--timeout`, {agent_stage.TIMEOUT_SECONDS:g} s |" in text
    assert f"one turn of a bridge | `--timeout`, {bridge_stage.TIMEOUT_SECONDS:g} s |" in text
    assert f"after SIGTERM | {agent_stage.EXIT_SECONDS:g} s |" in text
    assert f"may end a turn | {bridge_stage.PATIENCE_SECONDS:g} s |" in text
    assert f"until a bridge shows a partial | {partials.LIVE_SECONDS:g} s |" in text
