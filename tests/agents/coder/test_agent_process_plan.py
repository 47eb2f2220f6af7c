"""Plan mode and to-dos from outside: what is done, who is asked, and what the host and the model are told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.coder.test_agent_process_mcp import add
from tests.support.coding import PROVIDERS, Coder, calls, coding, of, says, serving, text_of
from tests.support.conversations import read
from tests.support.ran import ran
from tests.support.web import served
from trunkline.agents.coder.words import PLAN_LEFT, PLANNING
from trunkline.base.config import user_file
from trunkline.core.approvals import NOBODY_TO_APPROVE, ONLY_PLANNING
from trunkline.tools.exit_plan import APPROVED, NOT_PLANNING

pytestmark = pytest.mark.process

WRITE: tuple[str, dict[str, Any]] = ("Write", {"file_path": "a.txt", "content": "red\n"})
BASH: tuple[str, dict[str, Any]] = ("Bash", {"command": "touch b.txt"})
EXIT = ("ExitPlanMode", {"plan": "1. Write `a.txt`."})
PLAN = ("--no-session", "--mode", "plan")


def modes_told(lines: list[dict[str, Any]]) -> list[str]:
    return [line["capabilities"]["current_mode"] for line in of(lines, "config_changed")]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_while_planning_nothing_is_changed_nobody_is_asked_and_the_model_is_told(tmp_path: Path, provider: str) -> None:
    (tmp_path / "c.txt").write_text("blue\n")
    wanted: list[tuple[str, dict[str, Any]]] = [
        WRITE,
        ("Edit", {"file_path": "c.txt", "old_string": "blue", "new_string": "red"}),
        BASH,
        ("Spawn", {"tasks": [{"name": "one", "prompt": "go"}]}),
        ("echo", {"word": "x"}),
        ("KillBash", {"bash_id": "none"}),
        ("Read", {"file_path": "c.txt"}),
        ("BashOutput", {"bash_id": "none"}),
    ]
    with coding(tmp_path, calls(*wanted), says("I see."), flags=PLAN, provider=provider) as agent:
        add(agent, "small")
        agent.until("mcp_ready")
        agent.message("Change it all.")
        lines = agent.until("stream_end")
        assert of(lines, "tool_request") == []
        *denied, reading, output = agent.asked.results
        assert denied == [f"Tool denied: {ONLY_PLANNING}"] * 6
        assert "blue" in reading
        assert "none" in output
        assert [line["reason"] for line in of(lines, "tool_cancelled")] == [ONLY_PLANNING] * 6
        assert not (tmp_path / "a.txt").exists()
        assert (tmp_path / "c.txt").read_text() == "blue\n"
        first = read(agent.requests[0].json)
        assert PLANNING in first.words
        assert first.words.endswith("Change it all.")
        offered = {"Read", "Glob", "Grep", "BashOutput", "WebFetch", "TodoWrite", "ExitPlanMode"}
        assert set(first.tools) == offered


def test_a_page_is_asked_about_and_a_skill_is_not(tmp_path: Path) -> None:
    skill = tmp_path / ".trunkline" / "skills" / "tidy"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tidy\ndescription: Tidies.\n---\nTidy well.\n")
    Path(user_file()).parent.mkdir(parents=True, exist_ok=True)
    Path(user_file()).write_text("[web]\nallow_private = true\n")
    with served() as server:
        server.answers["/page"] = (200, {"Content-Type": "text/plain"}, b"There.")
        replies = calls(("WebFetch", {"url": server.url("/page")}), ("Skill", {"skill": "tidy"})), says("Done.")
        with coding(tmp_path, *replies, flags=PLAN) as agent:
            lines = agent.ask("Look.")
            assert [line["tool"]["name"] for line in of(lines, "tool_request")] == ["WebFetch"]
            assert "There." in agent.asked.results[0]
            assert "Tidy well." in agent.asked.results[1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_plan_is_asked_about_also_where_everything_is_allowed_and_leads_back(tmp_path: Path, provider: str) -> None:
    Path(user_file()).parent.mkdir(parents=True, exist_ok=True)
    Path(user_file()).write_text('[permissions]\nallow = ["ExitPlanMode"]\n')
    replies = calls(WRITE, EXIT), calls(EXIT), calls(WRITE, BASH), says("Done."), calls(EXIT), says("Oh.")
    flags = ("--no-session", "--auto-approve", "--allow", "ExitPlanMode")
    with coding(tmp_path, *replies, flags=flags, provider=provider) as agent:
        agent.send(type="set_mode", mode="plan")
        agent.until("config_changed")
        agent.message("Make it.")
        asked = agent.request()
        plan = {"plan": "1. Write `a.txt`."}
        tool = {"name": "ExitPlanMode", "category": "info", "args": plan, "description": "Exit plan mode"}
        assert asked["tool"] == tool
        agent.deny(asked, "Call it b.txt.")
        asked = agent.request()
        assert agent.asked.results[1] == "Tool denied: Call it b.txt."
        assert modes_told(agent.lines) == ["plan"]
        agent.approve(asked, "always")
        lines = agent.until("stream_end")
        # Back in the mode before it, in which nobody is asked.
        assert modes_told(lines) == ["yolo"]
        assert of(lines, "tool_request") == []
        assert agent.asked.results[2] == APPROVED
        assert (tmp_path / "a.txt").exists()
        assert (tmp_path / "b.txt").exists()
        assert "ExitPlanMode" not in agent.asked.tools
        assert {"Write", "Bash", "Spawn"} < set(agent.asked.tools)
        # Outside plan mode, and where nobody is asked about anything else, it is still a question.
        agent.message("And now?", "m2")
        agent.approve(agent.request())
        lines = agent.until("stream_end")
        assert modes_told(lines) == []
        assert agent.asked.results == [NOT_PLANNING]
        assert PLAN_LEFT not in json.dumps(agent.requests[-1].json)


def test_a_mode_that_is_left_by_hand_is_told_to_the_model_in_the_middle_of_its_work(tmp_path: Path) -> None:
    with coding(tmp_path, calls(EXIT), calls(WRITE), says("Done."), says("Yes."), flags=PLAN) as agent:
        agent.message("Make it.")
        asked = agent.request()
        agent.send(type="set_mode", mode="auto_edit")
        agent.deny(asked, "Just do it.")
        agent.until("stream_end")
        assert (tmp_path / "a.txt").exists()
        assert agent.asked.words == PLAN_LEFT
        assert "ExitPlanMode" not in agent.asked.tools
        # Once is enough.
        agent.ask("Ready?", "m2")
        assert agent.asked.words == "Ready?"


def test_what_a_person_is_asked_about_when_planning_begins_is_not_done(tmp_path: Path) -> None:
    with coding(tmp_path, calls(WRITE), says("I see.")) as agent:
        agent.message("Make it.")
        agent.request()
        agent.send(type="set_mode", mode="plan")
        lines = agent.until("stream_end")
        assert [line["reason"] for line in of(lines, "tool_cancelled")] == [ONLY_PLANNING]
        assert agent.asked.words == PLANNING


def test_a_sub_agent_stops_changing_things_when_planning_begins(tmp_path: Path) -> None:
    spawn = ("Spawn", {"tasks": [{"name": "one", "prompt": "go"}]})
    replies = calls(spawn), calls(BASH), calls(WRITE), says("I could not."), says("I see.")
    with coding(tmp_path, *replies) as agent:
        agent.message("Make it.")
        agent.approve(agent.request())
        assert agent.request()["call_id"].startswith("sub1.")
        agent.send(type="set_mode", mode="plan")
        lines = agent.until("stream_end")
        assert [line["reason"] for line in of(lines, "tool_cancelled")] == [ONLY_PLANNING] * 2
        assert list(tmp_path.iterdir()) == []


def test_from_one_mode_through_planning_to_another(tmp_path: Path) -> None:
    with coding(
        tmp_path, calls(WRITE), says("One."), calls(WRITE), says("Two."), calls(WRITE), says("Three.")
    ) as agent:
        agent.message("Make it.", "m1")
        agent.deny(agent.request(), "not yet")
        agent.until("stream_end")
        for number, mode in enumerate(("plan", "yolo"), 2):
            agent.send(type="set_mode", mode=mode)
            agent.message("Make it.", f"m{number}")
            assert of(agent.until("stream_end"), "tool_request") == []
            assert (tmp_path / "a.txt").exists() == (mode == "yolo")
        assert modes_told(agent.lines) == ["plan", "yolo"]
        assert PLAN_LEFT in agent.asked.words


def test_a_session_that_plans_still_does_after_a_resume(tmp_path: Path) -> None:
    with serving(says("Noted."), calls(EXIT), calls(WRITE), says("Done.")) as stub:
        with Coder(stub, tmp_path, "--session-id", "s1") as agent:
            agent.send(type="set_mode", mode="yolo")
            agent.send(type="set_mode", mode="plan")
            agent.ask("Plan it.")
            assert agent.end() == 0
        with Coder(stub, tmp_path, "--resume", "s1") as agent:
            assert agent.lines[0]["capabilities"]["current_mode"] == "plan"
            lines = agent.ask("Show it.", "m2")
            assert [line["tool"]["name"] for line in of(lines, "tool_request")] == ["ExitPlanMode"]
            assert modes_told(lines) == ["yolo"]
            assert (tmp_path / "a.txt").exists()
            # It was told before, and only then.
            assert json.dumps(agent.requests[-1].json).count(PLANNING[:40]) == 1


def test_the_configuration_may_begin_with_it(tmp_path: Path) -> None:
    (tmp_path / "trunkline.toml").write_text('[default]\nmode = "plan"\n')
    with coding(tmp_path, calls(WRITE), says("I see.")) as agent:
        assert agent.lines[0]["capabilities"]["current_mode"] == "plan"
        agent.message("Make it.")
        agent.until("stream_end")
        assert agent.asked.results == [f"Tool denied: {ONLY_PLANNING}"]


TODOS = [
    {"content": "Look around", "status": "completed", "activeForm": "Looking around"},
    {"content": "Fix it", "status": "in_progress", "activeForm": "Fixing it"},
]


@pytest.mark.parametrize("flags", [("--no-session",), PLAN, ("--no-session", "--mode", "yolo")])
def test_to_dos_are_shown_and_never_asked_about(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with coding(tmp_path, calls(("TodoWrite", {"todos": TODOS})), says("Done."), flags=flags) as agent:
        agent.message("Work.")
        lines = agent.until("stream_end")
        assert of(lines, "tool_request") == []
        assert "Plan:\n[x] Look around\n[>] Fix it" in [line["message"] for line in of(lines, "info")]
        assert agent.asked.results == ["The to-do list was kept: 1 of 2 done. Now: Fix it"]


def test_a_sub_agent_has_no_to_dos_that_could_take_the_place_of_ours(tmp_path: Path) -> None:
    todos = ("TodoWrite", {"todos": TODOS})
    spawn = ("Spawn", {"tasks": [{"name": "one", "prompt": "go"}]})
    with coding(tmp_path, calls(spawn), calls(todos, EXIT), says("Sub."), says("Done.")) as agent:
        lines = agent.ask("Work.")
        assert text_of(lines) == "Done."
        assert not [line for line in of(lines, "info") if line["message"].startswith("Plan:")]
        assert read(agent.requests[2].json).results == ["Unknown tool: TodoWrite", "Unknown tool: ExitPlanMode"]


async def test_where_nobody_can_be_asked_the_plan_is_the_answer(tmp_path: Path) -> None:
    with serving(calls(EXIT), says("1. Write it.")) as stub:
        flags = ["--provider", "openai", "--base-url", stub.url, "--workspace", str(tmp_path), "--mode", "plan"]
        done = await ran(sys.executable, "-m", "trunkline", "chat", "coder", "--no-session", *flags, "-p", "Plan it.")
        assert (done.code, done.out) == (0, "1. Write it.\n")
        assert read(stub.requests[-1].json).results == [f"Tool denied: {NOBODY_TO_APPROVE}"]
