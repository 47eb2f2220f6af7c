"""The reference names the limits that the kit has."""

from __future__ import annotations

from tests.support.conformance import reference
from trunkline.cli import conform_acp
from trunkline.conform.acp import bad_lines, stage


def test_the_reference_names_the_limits() -> None:
    text = reference("acp")
    assert f"a request for a permission | `--timeout`, {stage.TIMEOUT_SECONDS:g} s |" in text
    assert f"an exit | {stage.PATIENCE_SECONDS:g} s |" in text
    assert f"when nothing must happen | {stage.QUIET_SECONDS:g} s |" in text
    assert f"A prompt of {bad_lines.LONG_BYTES >> 20} MiB in one line" in text
    assert conform_acp.DEFAULT_TIMEOUT == stage.TIMEOUT_SECONDS
