"""`trunkline approvals`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.exchange_api import Asked, answering
from tests.support.invoked import Invoked, invoke
from trunkline.cli.approvals import command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    return tmp_path / "exchange"


def approval(id: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id, "session": "s", "agent": "helper", "call_id": "c1", "tool": "Bash", "category": "exec",
        "description": "remove\x1b[2J it", "args": {"command": "rm -r\nbuild"}, "asked_at": 1_700_000_000_000,
        "state": "pending", **more,
    }  # fmt: skip


ONES = [approval("aaaaaaaaaa1"), approval("aaaaaaaaaa2"), approval("bbb", state="denied", decided_by="ana")]


def serve(asked: Asked) -> tuple[int, Any]:
    if asked.method == "POST":
        if asked.path.endswith("bbb"):
            why = {"code": "decided", "message": "It was denied already, by ana."}
            return 409, {"error": why, "decided_by": "ana", "decision": "deny"}
        return 200, approval(asked.path.rpartition("/")[2], state="approved", decided_by="local")
    state = asked.path.partition("?state=")[2]
    return 200, {"approvals": [each for each in ONES if state in ("", each["state"])]}


def run(home: Path, *arguments: str) -> tuple[Invoked, list[Asked]]:
    with answering(home, serve) as asked:
        return invoke(command, *arguments), asked


def test_the_list_has_what_waits_with_as_much_of_each_id_as_tells_it_from_the_others(home: Path) -> None:
    done, asked = run(home, "list")
    assert done.exit_code == 0, done.output
    assert "aaaaaaaaaa1" in done.stdout
    assert "Bash" in done.stdout
    assert "bbb" not in done.stdout
    assert "\x1b" not in done.stdout
    assert asked == [("GET", "/api/approvals?state=pending", None), ("GET", "/api/approvals", None)]
    done, _ = run(home, "list", "--state", "all", "--json")
    assert [each["id"] for each in json.loads(done.stdout)["approvals"]] == [each["id"] for each in ONES]


def test_what_is_listed_of_an_id_is_enough_also_beside_those_that_were_answered(home: Path) -> None:
    ones = [approval("cccccccccc1"), approval("cccccccccc2", state="approved", decided_by="ana")]
    with answering(home, lambda asked: (200, {"approvals": ones[: 1 if "pending" in asked.path else 2]})):
        listed = invoke(command, "list").stdout.splitlines()[1].split()[0]
        assert invoke(command, "show", listed).stdout.startswith("id: cccccccccc1\n")


def test_one_is_shown_with_every_argument(home: Path) -> None:
    done, _ = run(home, "show", "aaaaaaaaaa2")
    assert "command: rm -r" in done.stdout
    assert "agent: helper" in done.stdout
    done, _ = run(home, "show", "b", "--json")
    assert json.loads(done.stdout) == ONES[2]


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (["approve", "aaaaaaaaaa1"], {"decision": "approve"}),
        (["approve", "aaaaaaaaaa1", "--always"], {"decision": "approve", "scope": "always"}),
        (["deny", "aaaaaaaaaa1", "--reason", "no"], {"decision": "deny", "reason": "no"}),
    ],
)
def test_an_answer_goes_to_the_exchange(home: Path, arguments: list[str], body: dict[str, str]) -> None:
    done, asked = run(home, *arguments)
    assert done.exit_code == 0, done.output
    assert asked[-1] == ("POST", "/api/approvals/aaaaaaaaaa1", body)


def test_who_comes_too_late_is_told_who_was_first(home: Path) -> None:
    done, _ = run(home, "approve", "bbb")
    assert (done.exit_code, done.stderr) == (1, "Error: It was denied already, by ana.\n")
    done, _ = run(home, "approve", "bbb", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["decided_by"] == "ana"


def test_an_id_that_fits_several_or_none_is_an_error(home: Path) -> None:
    done, asked = run(home, "approve", "aaaa")
    assert done.exit_code == 1
    assert "2 approvals" in done.stderr
    assert [each.method for each in asked] == ["GET"]
    done, _ = run(home, "show", "zzz")
    assert done.exit_code == 1
    assert "There is no approval" in done.stderr


def test_without_an_exchange_it_exits_1_and_says_how_to_start_one() -> None:
    done = invoke(command, "list", "--json")
    assert done.exit_code == 1
    assert "No exchange is running here" in done.stderr
