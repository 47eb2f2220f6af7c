"""Commands that serve have a flag for every key that says so."""

from __future__ import annotations

import click
import pytest

from trunkline.base.config_services import SECTIONS, settings_of
from trunkline.cli import bridge, network, runner, tryll

COMMANDS = {"bridge": bridge.run, "network": network.serve, "runner": runner.serve, "tryll": tryll.serve}


@pytest.mark.parametrize("service", SECTIONS)
def test_the_flags_of_the_schema_are_those_of_the_command(service: str) -> None:
    options = [each for each in COMMANDS[service].params if isinstance(each, click.Option)]
    assert {name for each in options for name in each.opts} == {
        setting.flag for setting in settings_of(service).values() if setting.flag
    }


@pytest.mark.parametrize("service", ["network", "runner", "tryll"])
def test_a_flag_that_is_not_given_says_nothing(service: str) -> None:
    context = COMMANDS[service].make_context(service, [])
    assert not any(context.params.values())
