"""Numbers on a command line."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from trunkline.cli.finite import FiniteRange


@click.command()
@click.option("--seconds", type=FiniteRange(min=0.1))
def command(seconds: float) -> None:
    click.echo(seconds)


@pytest.mark.parametrize("said", ["nan", "inf", "-inf", "-1", "0", "soon"])
def test_what_is_no_number_of_the_range_is_wrong_usage(said: str) -> None:
    assert CliRunner().invoke(command, ["--seconds", said]).exit_code == 2


def test_a_number_of_the_range_is_taken() -> None:
    assert CliRunner().invoke(command, ["--seconds", "2"]).output == "2.0\n"
