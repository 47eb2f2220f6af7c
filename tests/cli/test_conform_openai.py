"""`trunkline conform openai` as people and programs call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.conform.openai.good_server import KEY, MODEL
from tests.conform.openai.serving import serving
from tests.support.beside import beside
from trunkline.cli.conform import command


def conform(*arguments: str, key: str = KEY) -> Result:
    return CliRunner().invoke(command, ["openai", *arguments], env={"OPENAI_API_KEY": key})


def test_a_server_is_certified_and_told_of_without_its_key(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    with beside(serving()) as address:
        only = ("--only", "openai.auth.*", "--only", "openai.chat.answer", "--report", str(report))
        done = conform(f"{address}/GoodServer/v1/", "--model", MODEL, "--json", *only)
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert (data["wire"], data["protocol_version"], data["conforms"]) == ("openai", "v1", True)
    assert {result["result"] for result in data["results"]} == {"passed"}
    assert data["conversations"][0]["roles"] == ["client", "server"]
    assert KEY not in done.stdout + done.stderr + report.read_text()


def test_a_failure_says_what_was_sent_what_came_back_and_what_was_expected() -> None:
    with beside(serving()) as address:
        done = conform(f"{address}/CreatedIsAText/v1", "--model", MODEL, "--only", "openai.chat.created", "--json")
    assert done.exit_code == 1
    (result,) = json.loads(done.stdout)["results"]
    assert result["reason"].startswith('`POST /chat/completions` {"model":"good","messages":[')
    assert "was answered with `created` '" in result["reason"]
    assert result["reason"].endswith("not with seconds since 1970")


def test_without_a_model_the_first_of_the_list_is_asked() -> None:
    with beside(serving()) as address:
        done = conform(f"{address}/GoodServer/v1", "--only", "openai.chat.answer", "--json")
    assert done.exit_code == 0, done.output
    lines = [line["line"] for talk in json.loads(done.stdout)["conversations"] for line in talk["lines"]]
    assert any('"model":"good"' in line for line in lines)


def test_a_should_counts_only_when_it_is_asked_to() -> None:
    with beside(serving()) as address:
        only = (f"{address}/HasOneId/v1", "--only", "openai.chat.ids")
        assert conform(*only).exit_code == 0
        assert conform("--strict", *only).exit_code == 1


def test_what_cannot_be_reached_is_wrong_usage(unused_tcp_port: int) -> None:
    done = conform(f"http://127.0.0.1:{unused_tcp_port}/v1", "--model", "x")
    assert done.exit_code == 2
    assert "cannot be reached" in done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "Name the base URL"),
        (("ftp://127.0.0.1/v1",), "The base URL of a server is"),
        (("http://me:secret@127.0.0.1/v1",), "The base URL of a server is"),
        (("http://127.0.0.1:1/v1", "--only", "no.*"), "No check matches"),
        (("http://127.0.0.1:1/v1", "--prompt", "nothing=x"), "names a prompt `nothing`"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_told(arguments: tuple[str, ...], told: str) -> None:
    done = conform(*arguments)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())
    assert "secret" not in done.output


def test_a_key_that_no_header_can_carry_is_refused_without_being_shown() -> None:
    done = conform("http://127.0.0.1:1/v1", key="sk-\nsecret")
    assert done.exit_code == 2
    assert "`OPENAI_API_KEY`" in done.output
    assert "secret" not in done.output


def test_the_checks_are_listed_without_a_server() -> None:
    listed = json.loads(conform("--list", "--json").stdout)
    assert listed[0]["id"] == "openai.models.list"
    assert "hello = " in conform("--show-prompts").stdout
