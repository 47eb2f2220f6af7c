"""The reference names the limits that the kit has."""

from __future__ import annotations

from tests.support.conformance import reference
from trunkline.cli import conform
from trunkline.conform.jsonstream import ending, stage, stopping


def test_the_reference_names_the_limits() -> None:
    text = reference("jsonstream")
    assert f"`--timeout`, {stage.TIMEOUT_SECONDS:g} s |" in text
    assert conform.DEFAULT_TIMEOUT == stage.TIMEOUT_SECONDS
    assert f"an exit | {stage.PATIENCE_SECONDS:g} s |" in text
    assert f"`js.stop.prompt` | {stopping.STOP_SECONDS:g} s |" in text
    assert f"`js.sigterm.status` | {ending.EXIT_SECONDS:g} s |" in text
    assert f"nothing must happen | {stage.QUIET_SECONDS:g} s |" in text
