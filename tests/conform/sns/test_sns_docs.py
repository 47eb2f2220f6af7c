"""The reference names the limits that the kit has."""

from __future__ import annotations

from tests.support.conformance import reference
from trunkline.cli import conform_sns
from trunkline.conform.sns import exchange, nonces, stage


def test_the_reference_names_the_limits() -> None:
    text = reference("sns")
    assert f"one answer | `--timeout`, {exchange.TIMEOUT_SECONDS:g} s |" in text
    assert conform_sns.DEFAULT_TIMEOUT == exchange.TIMEOUT_SECONDS
    assert f"`sns.nonce.parallel` | {nonces.REPLAYS} |" in text
    assert f"from two minutes | {nonces.TTL_SLACK_SECONDS:g} s |" in text
    assert f"count as equal | at most {stage.SAME_CLOCK_MS / 1000:g} s apart |" in text
