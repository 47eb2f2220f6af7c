"""The coding agent from outside: what its host sees, and what its provider is sent."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.support.coding import PROVIDERS, Coder, begins, calls, coding, eventually, of, says, serving, text_of
from tests.support.conversations import read
from tests.support.provider import Reply, Request
from trunkline.agents.coder.guards import SAME_ROUNDS
from trunkline.base.redact import MASK

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("provider", PROVIDERS)

#: One black pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


def write(name: str, content: str = "x\n") -> tuple[str, dict[str, Any]]:
    return "Write", {"file_path": name, "content": content}


@both
def test_a_denial_reaches_the_model_with_its_reason_and_the_turn_goes_on(tmp_path: Path, provider: str) -> None:
    with coding(tmp_path, calls(write("a.txt")), says("I see."), provider=provider) as agent:
        agent.message("Write it.")
        wanted = agent.request()
        agent.deny(wanted, "not on a Friday")
        lines = agent.see_out()
        (cancelled,) = of(lines, "tool_cancelled")
        assert (cancelled["call_id"], cancelled["reason"]) == (wanted["call_id"], "not on a Friday")
        assert text_of(lines) == "I see."
        assert agent.asked.results == ["Tool denied: not on a Friday"]
    assert not (tmp_path / "a.txt").exists()


def test_always_is_for_the_category(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("old\n")
    steps = (
        calls(write("a.txt")),
        calls(("Read", {"file_path": "b.txt"})),
        calls(("Edit", {"file_path": "b.txt", "old_string": "old", "new_string": "new"})),
        calls(("Bash", {"command": "cat b.txt"})),
        says("Done."),
    )
    with coding(tmp_path, *steps) as agent:
        agent.message("Change things.")
        first = agent.request()
        agent.approve(first, "always")
        lines = agent.until("tool_request")
        assert [line["tool_name"] for line in of(lines, "tool_running")] == ["Write", "Read", "Edit"]
        assert lines[-1]["tool"] | {"args": {}} == {
            "name": "Bash",
            "category": "exec",
            "args": {},
            "description": "Execute: cat b.txt",
        }
        agent.approve(lines[-1])
        (result,) = of(agent.see_out(), "tool_result")
        assert "new" in result["output"]


@both
def test_results_go_back_in_the_order_of_the_calls_whatever_order_they_ran_in(tmp_path: Path, provider: str) -> None:
    two = calls(write("first.txt"), write("second.txt"), text="Both at once.")
    with coding(tmp_path, two, says("Done."), provider=provider) as agent:
        agent.message("Write both.")
        first, second = agent.request(), agent.request()
        agent.approve(second)
        assert agent.until("tool_result")[-1]["call_id"] == second["call_id"]
        assert not (tmp_path / "first.txt").exists()
        agent.approve(first)
        assert agent.until("tool_result")[-1]["call_id"] == first["call_id"]
        agent.see_out()
        assert [[name["file_path"] for _, _, name in said.calls] for said in agent.asked.said if said.calls] == [
            ["first.txt", "second.txt"]
        ]
        assert agent.asked.results == ["Created first.txt (1 lines)", "Created second.txt (1 lines)"]


def test_an_edit_is_a_diff_to_the_host_and_a_sentence_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    change = {"file_path": "a.txt", "old_string": "two", "new_string": "three"}
    with coding(tmp_path, calls(("Read", {"file_path": "a.txt"})), calls(("Edit", change)), says("Done.")) as agent:
        result = of(agent.ask("Change it."), "tool_result")[-1]
        assert (result["status"], result["output_type"]) == ("success", "diff")
        assert [line[0] for line in result["output"].splitlines()] == ["-", "+", "@", " ", "-", "+"]
        assert Path(tmp_path, result["metadata"]["file_path"]) == tmp_path / "a.txt"
        assert agent.asked.results[-1] == "Edited a.txt: replaced 1 occurrence(s)"
    assert (tmp_path / "a.txt").read_text() == "one\nthree\n"


@pytest.mark.parametrize("way", ["path", "link"])
def test_what_is_outside_of_the_workspace_is_asked_for_although_reading_is_allowed(tmp_path: Path, way: str) -> None:
    (tmp_path / "diary.txt").write_text("dear diary\n")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(tmp_path)
    file = str(tmp_path / "diary.txt") if way == "path" else "link/diary.txt"
    with coding(workspace, calls(("Read", {"file_path": file})), says("I see.")) as agent:
        agent.message("Read it.")
        wanted = agent.request()
        assert (wanted["tool"]["name"], wanted["tool"]["category"]) == ("Read", "info")
        assert "outside" in wanted["tool"]["description"]
        agent.deny(wanted, "private")
        agent.see_out()
        assert agent.asked.results == ["Tool denied: private"]
        assert b"dear diary" not in agent.requests[-1].body


@both
def test_secrets_of_the_environment_reach_neither_host_nor_model_nor_disk(tmp_path: Path, provider: str) -> None:
    secret = "sk-very-secret-4711-0815"
    home = tmp_path / "home"
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    steps = (calls(("Bash", {"command": "echo it is $SHOP_API_KEY"})), says("Done."))
    env = {"SHOP_API_KEY": secret, "TRUNKLINE_HOME": str(home)}
    with coding(workspace, *steps, flags=(), provider=provider, env=env) as agent:
        (result,) = of(agent.ask("Show it."), "tool_result")
        assert f"it is {MASK}" in result["output"]
        assert f"it is {MASK}" in agent.asked.results[0]
        assert secret.encode() not in agent.requests[-1].body
        assert agent.end() == 0
        assert secret not in agent.stderr()
    kept = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert b"it is " in kept
    assert secret.encode() not in kept


@both
def test_a_picture_arrives_as_a_picture_and_a_missing_file_is_told(tmp_path: Path, provider: str) -> None:
    (tmp_path / "dot.png").write_bytes(base64.b64decode(PIXEL))
    with coding(tmp_path, says("Black."), provider=provider) as agent:
        lines = agent.ask("What is it?", files=["dot.png", str(tmp_path / "gone.png")])
        (info,) = of(lines, "info")
        assert info["msg_id"] == "m1"
        assert "gone.png" in info["message"]
        content = agent.requests[0].json["messages"][-1]["content"]
        pictures = [block for block in content if block["type"] != "text"]
        if provider == "openai":
            assert pictures == [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]
        else:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            assert [picture["source"] for picture in pictures] == [source]


def test_set_config_changes_the_model_of_the_next_request(tmp_path: Path) -> None:
    with coding(tmp_path, says("One."), says("Two."), flags=("--no-session", "--model", "first")) as agent:
        agent.ask("Hello.")
        agent.send(type="set_config", model="o3-second", effort="high")
        agent.until("config_changed")
        agent.ask("And now?", "m2")
        assert [request.json["model"] for request in agent.requests] == ["first", "o3-second"]
        assert agent.requests[1].json["reasoning_effort"] == "high"
        assert [said.text for said in agent.asked.said] == ["Hello.", "One.", "And now?"]


@both
def test_compact_puts_a_summary_in_the_place_of_the_conversation(tmp_path: Path, provider: str) -> None:
    replies = [says("A long story."), says("The user wanted a story."), says("Yes.")]
    with coding(tmp_path, *replies, provider=provider) as agent:
        agent.ask("Tell me a story.")
        lines = agent.ask("/compact", "m2")
        assert [line["type"] for line in lines] == ["stream_start", "info", "stream_end"]
        assert "compacted" in lines[1]["message"]
        assert lines[-1]["usage"]["output_tokens"] > 0
        agent.ask("Did you like it?", "m3")
        said = agent.asked.said
        assert "The user wanted a story." in said[0].text
        assert "Did you like it?" in said[-1].text
        assert all("A long story." not in each.text for each in said)


def test_a_turn_ends_with_a_reason_when_its_tool_rounds_are_used_up(tmp_path: Path) -> None:
    look = calls(("Glob", {"pattern": "*"}))
    with coding(tmp_path, look, look, says("Hello."), flags=("--no-session", "--max-turns", "1")) as agent:
        lines = agent.ask("Look around for ever.")
        assert len(of(lines, "tool_running")) == 1
        (error,) = of(lines, "error")
        assert "max_turns=1" in error["error"]["message"]
        assert error["msg_id"] == "m1"
        assert text_of(agent.ask("Hello?", "m2")) == "Hello."
        assert agent.asked.words == "Hello?"


def test_sub_agents_work_side_by_side_and_their_tools_are_asked_for(tmp_path: Path) -> None:
    tasks = [{"name": "north", "prompt": "Go north."}, {"name": "south", "prompt": "Go south."}]

    def answer(request: Request) -> Reply:
        asked = read(request.json)
        if asked.words == "Explore.":
            turn = calls(("Spawn", {"tasks": tasks})) if not asked.results else says("Explored.")
        elif not asked.results:
            assert "Spawn" not in asked.tools
            turn = calls(write(f"{asked.words.split()[1]}txt"))
        else:
            turn = says(f"{asked.words} Done.")
        return turn(request)

    with serving(default=answer) as stub, Coder(stub, tmp_path, "--no-session") as agent:
        agent.message("Explore.")
        spawn = agent.request()
        assert (spawn["tool"]["name"], spawn["tool"]["category"]) == ("Spawn", "exec")
        agent.approve(spawn)
        first, second = agent.request(), agent.request()
        assert {first["tool"]["args"]["file_path"], second["tool"]["args"]["file_path"]} == {"north.txt", "south.txt"}
        assert len({spawn["call_id"], first["call_id"], second["call_id"]}) == 3
        agent.approve(second)
        agent.approve(first)
        lines = agent.see_out()
        assert text_of(lines) == "Explored."
        (result,) = agent.asked.results
        told = [part.splitlines()[:2] for part in result.split("\n\n---\n\n")]
        assert told == [["## north [OK]", "Go north. Done."], ["## south [OK]", "Go south. Done."]]
        assert lines[-1]["usage"]["output_tokens"] == 6 * 5
    assert (tmp_path / "north.txt").exists()
    assert (tmp_path / "south.txt").exists()


def test_a_stop_ends_the_sub_agents_too(tmp_path: Path) -> None:
    tasks = [{"name": "north", "prompt": "Go north."}, {"name": "south", "prompt": "Go south."}]
    turns = {
        "Explore.": calls(("Spawn", {"tasks": tasks})),
        "Go north.": calls(write("north.txt")),
        "Go south.": begins("I am on my way"),
    }

    def answer(request: Request) -> Reply:
        return turns.get(read(request.json).words, says("All right."))(request)

    with serving(default=answer) as stub, Coder(stub, tmp_path, "--no-session") as agent:
        agent.message("Explore.")
        spawn = agent.request()
        agent.approve(spawn)
        wanted = agent.request()
        eventually(lambda: len(agent.requests) == 3, "both sub-agents have asked their model")
        lines = agent.stop()
        assert {line["call_id"] for line in of(lines, "tool_cancelled")} == {spawn["call_id"], wanted["call_id"]}
        # Two answers were complete, the agent's own and that of the one sub-agent.
        assert lines[-1]["usage"]["output_tokens"] == 2 * 5
        hanging = next(request for request in agent.requests if read(request.json).words == "Go south.")
        eventually(hanging.left.is_set, "the request was given up")
        assert text_of(agent.ask("Never mind.", "m2")) == "All right."


def test_a_quiet_command_in_the_background_may_be_looked_at_again_and_again(tmp_path: Path) -> None:
    begin = ("Bash", {"command": "sleep 600", "run_in_background": True})
    look = ("BashOutput", {"bash_id": "bash_1"})
    looks = [calls(look) for _ in range(SAME_ROUNDS + 5)]
    with coding(tmp_path, calls(begin), *looks, says("It still runs.")) as agent:
        lines = agent.ask("Wait for it.")
        assert of(lines, "error") == []
        assert text_of(lines) == "It still runs."
