"""`trunkline conform jsonstream-host` as people and programs call it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trunkline.cli.conform import command
from trunkline.conform.jsonstream_host.suite import SUITE

RUN_HOST = str(Path(__file__).parents[1] / "conform" / "jsonstream_host" / "run_host.py")
HOST = (sys.executable, "-S", "-E", RUN_HOST)


def conform(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["jsonstream-host", *arguments])


@pytest.mark.process
def test_a_host_that_passes_ends_with_0_and_a_line_for_each_check() -> None:
    done = conform("--only", "jh.version.m*", "--", *HOST, "GoodHost", "{agent}", "{prompt}")
    assert done.exit_code == 0, done.output
    first, *_, summary = done.stdout.splitlines()
    assert first.split() == ["jh.version.minor", "MUST", "6", "passed"]
    assert summary.startswith("MUST 1/1 · SHOULD 1/1 · conforms, as far as checked")


@pytest.mark.process
def test_a_host_that_fails_ends_with_1_and_the_report_has_what_it_wrote() -> None:
    done = conform("--json", "--only", "jh.tool.once", "--", *HOST, "DecidesTwice", "{agent}", "{prompt}")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["results"][0]["reason"] == "the request was answered 2 times"
    (talk,) = [talk for talk in told["conversations"] if talk["name"] == "jh.tool.once"]
    written = [json.loads(line["line"]) for line in talk["lines"] if line["line"].startswith('{"type": "tool_')]
    assert [command["type"] for command in written] == ["tool_approve", "tool_deny"]


@pytest.mark.process
def test_a_host_may_look_for_its_agent_in_the_path() -> None:
    host = (*HOST, "GoodHost", "conform-in-path", "{prompt}")
    done = conform("--as", "conform-in-path", "--only", "jh.turn.answer", "--", *host)
    assert done.exit_code == 0, done.output


def test_a_command_without_a_place_for_the_agent_is_wrong_usage() -> None:
    done = conform("--", "my-host")
    assert done.exit_code == 2
    assert "must contain `{agent}`, or use `--as NAME`" in done.stderr


def test_a_check_that_the_command_has_no_way_for_is_wrong_usage_and_not_passed() -> None:
    done = conform("--only", "jh.turn.second", "--", "my-host", "{agent}", "{prompt}")
    assert done.exit_code == 2
    assert "need more than was given" in done.stderr


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_is_no_path(name: str) -> None:
    assert conform("--as", name, "--", "my-host").exit_code == 2


@pytest.mark.process
def test_a_host_that_does_not_start_ends_with_2_and_no_usage() -> None:
    done = conform("--", "no-such-program-anywhere", "{agent}")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: there is no program `no-such-program-anywhere` on `PATH`: install it")


def test_the_checks_can_be_listed() -> None:
    assert [check["id"] for check in json.loads(conform("--list", "--json").stdout)] == list(SUITE.checks)
