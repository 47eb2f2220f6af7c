"""The reference names the limits that the kit has."""

from __future__ import annotations

from tests.support.conformance import reference
from trunkline.cli import conform_jsonstream_host
from trunkline.conform.jsonstream_host import ending, stage, starting, turns


def test_the_reference_names_the_limits() -> None:
    text = reference("jsonstream-host")
    assert stage.TIMEOUT_SECONDS == conform_jsonstream_host.DEFAULT_TIMEOUT
    assert f"`--timeout`, {stage.TIMEOUT_SECONDS:g} s |" in text
    assert f"for `jh.ready.waits` | {starting.LATE_SECONDS:g} s |" in text
    assert f"for `jh.end.time` | {ending.ORDER_SECONDS:g} s |" in text
    assert f"notices that its agent has died | {3 * stage.PATIENCE_SECONDS:g} s |" in text
    assert f"an agent that does not exit | {4 * stage.PATIENCE_SECONDS:g} s |" in text
    assert f"the longest line | {turns.LONG_LINE // 1024**2} MiB |" in text
