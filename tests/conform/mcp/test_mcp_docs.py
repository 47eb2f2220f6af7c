"""The reference names the limits that the kit has."""

from __future__ import annotations

from tests.support.conformance import reference
from trunkline.cli import conform_mcp
from trunkline.conform.mcp import hostile, stage


def test_the_reference_names_the_limits() -> None:
    text = reference("mcp")
    assert f"| an answer | `--timeout`, {stage.TIMEOUT_SECONDS:g} s |" in text
    assert f"an exit | {stage.PATIENCE_SECONDS:g} s |" in text
    assert f"when nothing must happen | {stage.QUIET_SECONDS:g} s |" in text
    assert f"a call of {hostile.LONG_BYTES >> 20} MiB" in text
    assert conform_mcp.DEFAULT_TIMEOUT == stage.TIMEOUT_SECONDS
