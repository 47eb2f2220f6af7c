"""What is typed behind a command, whatever it is."""

from __future__ import annotations

import pytest

from trunkline.cli.terminal.commands import _chosen, _chosen_grants
from trunkline.core.faults import ConfigError, SessionNotFound
from trunkline.core.grants import Grant

GRANTS = (Grant("edit"), Grant("exec"))


def test_a_grant_is_chosen_by_its_number() -> None:
    assert _chosen_grants("revoke 2", GRANTS) == GRANTS[1:]
    assert _chosen_grants("revoke all", GRANTS) == GRANTS


@pytest.mark.parametrize("which", ["0", "3", "-1", "9" * 5000, "\u0662", "x", ""])
def test_a_number_that_no_grant_has_takes_nothing_back(which: str) -> None:
    with pytest.raises(ConfigError):
        _chosen_grants(f"revoke {which}", GRANTS)


@pytest.mark.parametrize("which", ["0", "1", "9" * 5000])
def test_a_number_that_no_session_has_is_told(which: str) -> None:
    with pytest.raises(SessionNotFound):
        _chosen(which, "/nowhere")
