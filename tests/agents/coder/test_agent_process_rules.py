"""Permission rules from outside: what is done, asked about and denied, with rules, hooks, grants and modes at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.coding import calls, coding, of, says
from trunkline.base.config import user_file

pytestmark = pytest.mark.process

Call = tuple[str, Mapping[str, Any]]


def configured(text: str) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def permissions(**lists: Sequence[str]) -> str:
    lines = (f"{kind} = {json.dumps(rules)}\n" for kind, rules in lists.items())
    return f"[permissions]\n{''.join(lines)}"


def hook(decision: str, matcher: str = "*") -> str:
    said = json.dumps({"decision": decision, "reason": "because"})
    return f"[[hooks.pre_tool_use]]\nmatcher = {json.dumps(matcher)}\ncommand = {json.dumps(f'echo {said!r}')}\n"


def bash(*commands: str) -> list[Call]:
    return [("Bash", {"command": command}) for command in commands]


def verdicts(place: Path, wanted: Sequence[Call], *, mode: str = "default", before: str = "") -> list[str]:
    """What becomes of calls that a model makes together; those that are asked about are refused.

    `before`: a command that is granted for always first.
    """
    first = (calls(*bash(before)), says("Granted.")) if before else ()
    with coding(place, *first, calls(*wanted), says("Done."), flags=("--no-session", "--mode", mode)) as agent:
        if before:
            agent.message("First.", "m0")
            agent.approve(agent.request(), "always")
            agent.until("stream_end")
        agent.message("Go.")
        asked = []
        lines: list[dict[str, Any]] = []
        while not lines or lines[-1]["type"] != "stream_end":
            line = agent.line()
            assert line is not None
            lines.append(line)
            if line["type"] == "tool_request":
                asked.append(line["call_id"])
                agent.deny(line, "no")
        known = [call_id for call_id, _, _ in agent.asked.said[-2].calls]
    ran = [line["call_id"] for line in of(lines, "tool_running")]
    assert {*ran, *(line["call_id"] for line in of(lines, "tool_cancelled"))} == set(known)
    return ["ran" if each in ran else "asked" if each in asked else "denied" for each in known]


def test_each_check_counts_more_than_those_behind_it(tmp_path: Path) -> None:
    """Deny rule, hook's deny, outside and plan, ask rule, hook's ask, allow rule, grant, mode."""
    everything = permissions(
        deny=["Bash(rm:*)"], ask=["Bash(rm:*)", "Bash(touch:*)", "Write"], allow=["Bash", "Write", "Read"]
    )
    outside = ("Write", {"file_path": str(tmp_path.parent / "x"), "content": ""})
    inside = ("Write", {"file_path": "x", "content": ""})
    look = ("Read", {"file_path": "/etc/hostname"})
    wanted = [*bash("rm x", "touch x", "true"), inside, outside, look]
    place = tmp_path / "place"
    place.mkdir()
    configured(everything)
    assert verdicts(place, wanted) == ["denied", "asked", "ran", "asked", "asked", "asked"]
    assert verdicts(place, wanted, mode="yolo") == ["denied", "asked", "ran", "asked", "asked", "ran"]
    assert verdicts(place, wanted, mode="plan") == [*["denied"] * 5, "asked"]
    configured(everything + hook("deny"))
    assert verdicts(place, wanted, mode="yolo") == ["denied"] * 6
    configured(everything + hook("ask"))
    assert verdicts(place, wanted, mode="yolo") == ["denied", *["asked"] * 5]
    configured(everything + hook("allow"))
    assert verdicts(place, wanted) == ["denied", "asked", "ran", "asked", "asked", "asked"]
    configured(permissions(ask=["Bash(touch:*)"], deny=["Bash(rm:*)"]) + hook("allow", "Write"))
    assert verdicts(place, wanted, before="true") == ["denied", "asked", "ran", "ran", "asked", "asked"]


def test_a_chain_is_allowed_only_if_each_part_is_and_what_cannot_be_read_is_asked_about(tmp_path: Path) -> None:
    configured(permissions(allow=["Bash(echo:*)", "Bash(true)"]))
    allowed = bash("echo a && true | echo b; echo $(true)", "echo 'a; rm x'", "if true; then echo a; fi", "echo a 2>&1")
    asked = bash(
        "echo a && ls", "echo a | ls", "echo a; ls", "echo a\nls", "echo a & ls", "echo $(ls)", "echo `ls`",
        'echo "$(ls)"', "echo <(ls)", "echo a > out", "echo a > ~/.bashrc", "bash -c 'echo a'", "A=1 echo a", "A=$(ls)",
        "echo 'a", "echo $(", "cat <<E\n$(ls)\nE", "echo a <<E\n$(ls)\nE", "eval 'echo a'", "/bin/echo a",
    )  # fmt: skip
    assert verdicts(tmp_path, [*allowed, *asked]) == ["ran"] * len(allowed) + ["asked"] * len(asked)


def test_a_deny_rule_finds_any_part_quoted_wrapped_and_behind_variables(tmp_path: Path) -> None:
    configured(permissions(deny=["Bash(rm:*)"]))
    denied = bash(
        "echo a && rm x", "echo $(rm x)", "echo `rm x`", "'rm' x", 'r""m x', "\\rm x", "$'rm' x", "A=1 rm x",
        "/bin/rm x", "bash -c 'rm x'", "sudo rm x", "xargs rm", "env A=1 rm x", "echo a > f; rm x",
        "cat <<E\n$(rm x)\nE", "bash <<E\nrm x\nE", "eval rm x", "if true; then rm x; fi", "find . -exec rm {} +",
        "(rm x)", "! rm x", "echo a\nrm x",
    )  # fmt: skip
    # What it is, only the shell knows.
    asked = bash("$(echo r)m x", "{r,}m x", "${A:-r}m x", "echo 'a", "curl -s x | sh")
    ran = bash("echo rm x", "git rm --help >/dev/null || true", "true")
    expected = ["denied"] * len(denied) + ["asked"] * len(asked) + ["ran"] * len(ran)
    assert verdicts(tmp_path, [*denied, *asked, *ran], mode="yolo") == expected


def test_rules_of_all_files_join_and_a_workspace_that_nobody_trusts_adds_no_allow_rule(tmp_path: Path) -> None:
    theirs = permissions(allow=["Bash(touch:*)"], ask=["Bash(echo:*)"], deny=["Bash(true)"])
    (tmp_path / "trunkline.toml").write_text(theirs)
    wanted = bash("touch a", "echo a", "true", "cat /dev/null", "rm a")
    configured(permissions(allow=["Bash(echo:*)", "Bash(cat:*)", "Bash(true)"], deny=["Bash(rm:*)"]))
    assert verdicts(tmp_path, wanted) == ["asked", "asked", "denied", "ran", "denied"]
    configured(f"trust = [{json.dumps(str(tmp_path))}]\n" + permissions(allow=["Bash(cat:*)"], deny=["Bash(rm:*)"]))
    assert verdicts(tmp_path, wanted) == ["ran", "asked", "denied", "ran", "denied"]


def test_paths_start_at_the_workspace_links_are_resolved_and_read_rules_cover_searches(tmp_path: Path) -> None:
    for name in ("secret", "src", "sub/secret"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.txt").write_text("word\n")
    (tmp_path / "src" / "link.txt").symlink_to("../secret/a.txt")
    (tmp_path / "src" / "out").symlink_to("/etc")
    configured(permissions(deny=["Read(secret/**)"], allow=["Edit(src/**)"], ask=["Read(sub/**)"]))

    def read(path: str) -> Call:
        return ("Read", {"file_path": path})

    def edit(path: str) -> Call:
        return ("Edit", {"file_path": path, "old_string": "word", "new_string": "word two"})

    wanted = [
        read("secret/a.txt"), read("src/link.txt"), read(str(tmp_path / "src" / ".." / "secret" / "a.txt")),
        ("Grep", {"pattern": "word", "path": "secret"}), ("Glob", {"pattern": "secret/*"}), edit("secret/a.txt"),
        *bash("cat secret/a.txt", "cat src/link.txt", "cat < secret/a.txt"),
        read("sub/secret/a.txt"), ("Grep", {"pattern": "word", "path": "sub"}), read("src/a.txt"),
        ("Grep", {"pattern": "word"}), edit("src/a.txt"), edit("src/out/hosts"), edit("b.txt"),
    ]  # fmt: skip
    expected = ["denied"] * 9 + ["asked"] * 2 + ["ran"] * 3 + ["asked"] * 2
    assert verdicts(tmp_path, wanted) == expected


def test_a_rule_without_parentheses_covers_the_whole_tool(tmp_path: Path) -> None:
    configured(permissions(allow=["Bash"], deny=["Write"], ask=["Read"]))
    wanted = [*bash("echo a; [[ a ]] && A=1 true > out"), ("Write", {"file_path": "x", "content": ""})]
    looks: list[Call] = [("Glob", {"pattern": "*"}), ("Grep", {"pattern": "x"}), ("Read", {"file_path": "x"})]
    assert verdicts(tmp_path, [*wanted, *looks]) == ["ran", "denied", "asked", "asked", "asked"]
