"""Commands that serve have a flag for every key that says so."""

from __future__ import annotations

import click
import pytest

from trunkline.base.config_services import SECTIONS, settings_of
from trunkline.cli import bridge, network, runner, tryll_serve

COMMANDS = {"bridge": bridge.run, "network": network.serve, "runner": runner.serve, "tryll": tryll_serve.command}


#: One switch for all commands that run for long, and no key of a section.
FOR_ALL = {"--log-format"}
#: What is about this one start, and which file it reads.
OF_A_START = {"--config", "--exit-with-stdin", "--json"}


@pytest.mark.parametrize("service", COMMANDS)
def test_the_flags_of_the_schema_are_those_of_the_command(service: str) -> None:
    options = [each for each in COMMANDS[service].params if isinstance(each, click.Option)]
    assert {name for each in options for name in each.opts} - FOR_ALL - OF_A_START == {
        setting.flag for setting in settings_of(service).values() if setting.flag
    }


def test_every_section_is_a_commands_but_the_one_that_is_for_all() -> None:
    assert SECTIONS.keys() - COMMANDS.keys() == {"otel"}
    assert not any(setting.flag for setting in settings_of("otel").values())


@pytest.mark.parametrize("service", ["network", "runner", "tryll"])
def test_a_flag_that_is_not_given_says_nothing(service: str) -> None:
    context = COMMANDS[service].make_context(service, [])
    assert not any(context.params.values())
