"""Names that are nearly right are refused, and all others left alone."""

from __future__ import annotations

import pytest

from trunkline.core.faults import ConfigError
from trunkline.runner import slips
from trunkline.runner.chain.settings import tx_settings

KEY = "0x" + "4f" * 32


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("aproval", "approval"),
        ("dryrun", "dryRun"),
        ("privatekey", "privateKey"),
        ("cap", "caps"),
        ("rpcURL", "rpcUrl"),
    ],
)
def test_a_guard_with_a_slip_in_its_name_is_refused(given: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"Unknown key `execution\.{given}`.*`execution\.{meant}`"):
        tx_settings({"rpcUrl": "http://127.0.0.1:1", given: {"aboveWei": "0"}})


def test_what_is_like_nothing_is_left_alone() -> None:
    slips.refuse({"comment": "mine", "brain": {}})
    assert tx_settings({"rpcUrl": "http://127.0.0.1:1", "privateKey": KEY, "note": "of another program"}) is not None


def test_a_slip_at_the_top_is_refused_too() -> None:
    with pytest.raises(ConfigError, match="Did you mean `brain`"):
        slips.refuse({"brian": {}})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"llm": {"apikey": "x"}}, "llm.apiKey"),
        ({"prompts": {"systm": "x"}}, "prompts.system"),
        ({"integrations": {"githubissuetoken": "x"}}, "integrations.githubIssueToken"),
        ({"execution": {"caps": {"valuewei": 1}}}, "execution.caps.valueWei"),
    ],
)
def test_a_slip_anywhere_below_is_refused_too(given: dict[str, object], meant: str) -> None:
    with pytest.raises(ConfigError, match=f"Did you mean `{meant}`"):
        slips.refuse(given)


def test_a_limit_that_is_like_nothing_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"Unknown key `execution\.approval\.x`\. There are `aboveWei`\."):
        slips.refuse({"execution": {"approval": {"x": 1}}})
