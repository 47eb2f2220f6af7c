"""`trunkline conform mcp` as people and programs call it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.conform.mcp import broken_webs
from trunkline.cli.conform import command

RUN_SERVER = Path(__file__).parents[1] / "conform" / "mcp" / "run_server.py"
SERVER = (sys.executable, "-S", "-E", str(RUN_SERVER))


def conform(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["mcp", *arguments])


@pytest.mark.process
def test_a_server_that_passes_ends_with_0_and_a_line_for_each_check() -> None:
    done = conform("--only", "mcp.prompts.un*", "--only", "mcp.prompts.arg*", "--", *SERVER, "GoodServer")
    assert done.exit_code == 0, done.output
    first, *_, summary = done.stdout.splitlines()
    assert first.split()[:2] == ["mcp.prompts.unknown", "MUST"]
    assert summary.startswith("MUST 1/1 · SHOULD 1/1 · conforms")


@pytest.mark.process
def test_a_failure_says_what_came_back() -> None:
    done = conform("--json", "--only", "mcp.init.other-version", "--", *SERVER, "AgreesToEverything")
    assert done.exit_code == 1
    data = json.loads(done.stdout)
    assert (data["wire"], data["protocol_version"], data["conforms"]) == ("mcp", "2025-11-25", False)
    assert data["results"][0]["reason"] == "it agreed to the version '1999-01-01'"
    assert data["conversations"][0]["roles"] == ["client", "server"]


@pytest.mark.process
def test_a_tool_is_called_only_if_that_is_said() -> None:
    unknown = conform("--only", "mcp.tools.call", "--tool", "nobody", "--", *SERVER, "GoodServer")
    assert "there is no tool `nobody`" in unknown.stdout
    named = ("--tool", "needy", "--arguments", '{"what": 1}')
    called = conform("--json", "--only", "mcp.tools.call", *named, "--", *SERVER, "GoodServer")
    lines = [line["line"] for talk in json.loads(called.stdout)["conversations"] for line in talk["lines"]]
    assert any('"arguments":{"what":1}' in line for line in lines)
    slow = conform("--only", "mcp.cancel.silent", "--", *SERVER, "GoodServer")
    assert "name one with --slow-tool" in slow.stdout


def test_a_server_at_a_url_is_tested_and_headers_are_not_told() -> None:
    listening, url = broken_webs.serve(broken_webs.GoodWeb())
    try:
        done = conform("--json", "--only", "mcp.http.*", url, "--header", "X-Key=very-secret-word")
    finally:
        listening.shutdown()
        listening.server_close()
    assert done.exit_code == 0, done.output
    assert "very-secret-word" not in done.stdout
    assert {each["result"] for each in json.loads(done.stdout)["results"]} == {"passed"}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--only", "no.such.check", "--", "x"),
        ("--only", "mcp.init.answer", "--", "/no/such/program"),
        ("--arguments", "[]", "--", "x"),
        ("--arguments", "{", "--", "x"),
        ("--header", "x", "http://127.0.0.1:9/mcp"),
        ("--only", "mcp.init.answer", "http://127.0.0.1:9/mcp"),
    ],
)
def test_wrong_usage_and_what_cannot_be_reached_end_with_2(arguments: tuple[str, ...]) -> None:
    assert conform(*arguments).exit_code == 2


def test_the_checks_are_told_without_a_server() -> None:
    listed = json.loads(conform("--list", "--json").stdout)
    assert listed[0]["id"] == "mcp.init.answer"
    assert {"id", "tier", "section", "requirement"} == set(listed[0])


def test_without_a_target_both_kinds_of_it_are_named() -> None:
    done = conform()
    assert done.exit_code == 2
    assert "after `--`, or the URL of a server" in done.stderr


@pytest.mark.process
def test_a_server_that_ends_at_once_is_told_of_with_its_last_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import sys\nsys.exit('there is no such module')\n")
    done = conform("--only", "mcp.init.answer", "--only", "mcp.ping.answer", "--", sys.executable, str(broken))
    first, second, *_ = done.stdout.splitlines()
    assert "the server exited with status 1 (it said: there is no such module)" in first
    assert second.split("  ")[-1].strip() == "`mcp.init.answer` failed"
    alone = conform("--only", "mcp.ping.answer", "--", sys.executable, str(broken))
    assert "(it said: there is no such module)" in alone.stdout
