"""The reference names the limits that the kit has."""

from __future__ import annotations

from tests.support.conformance import reference
from trunkline.cli import conform_openai
from trunkline.conform.openai import asking, hostile, limits, streaming


def test_the_reference_names_the_limits() -> None:
    text = reference("openai")
    assert f"to its end | `--timeout`, {asking.TIMEOUT_SECONDS:g} s |" in text
    assert f"the most bytes of one answer | {asking.MAX_ANSWER >> 20} MiB |" in text
    assert f"of the group `limit` | {limits.FEW_TOKENS} |" in text
    assert f"`openai.stream.several` | {streaming.SEVERAL} |" in text
    assert f"A body of {hostile.HUGE_BYTES >> 20} MiB" in text
    assert conform_openai.DEFAULT_TIMEOUT == asking.TIMEOUT_SECONDS
