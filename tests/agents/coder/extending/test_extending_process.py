"""Skills, commands and memory from outside: what the host sees, and what the provider is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.coder.extending.test_skills import skill
from tests.support.coding import PROVIDERS, calls, coding, of, says, text_of

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("provider", PROVIDERS)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    place.mkdir()
    return place


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A user with a home of their own."""
    return {"HOME": str(tmp_path / "user"), "TRUNKLINE_HOME": str(tmp_path / "state")}


@both
def test_a_skill_is_listed_at_first_read_when_called_and_nobody_is_asked(
    workspace: Path, env: dict[str, str], provider: str
) -> None:
    folder = skill(workspace / ".claude/skills/release", "How to make a release.", "Tag it, and push $ARGUMENTS.")
    (folder / "notes.md").write_text("mind the gap\n")
    steps = (
        calls(("Skill", {"skill": "release", "args": "twice"})),
        calls(("Read", {"file_path": str(folder / "notes.md")})),
        says("Done."),
    )
    with coding(workspace, *steps, provider=provider, env=env) as agent:
        lines = agent.ask("Release it.")
        assert not of(lines, "tool_request")
        first, second = of(lines, "tool_result")
        assert str(folder) in first["output"]
        assert first["output"].endswith("Tag it, and push twice.")
        assert "mind the gap" in second["output"]
        assert b"How to make a release." in agent.requests[0].body
        assert b"Tag it" not in agent.requests[0].body


def test_a_skill_of_a_host_is_found_through_its_link_and_by_the_next_message(
    workspace: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    host = skill(tmp_path / "host/linked", "Of the host.", "Say hello to $ARGUMENTS.")
    (host / "more.txt").write_text("more\n")
    read = calls(("Read", {"file_path": str(host / "more.txt")}))
    with coding(workspace, says("One."), read, says("Two."), env=env) as agent:
        agent.ask("Hi.")
        (workspace / ".aionrs/skills").mkdir(parents=True)
        (workspace / ".aionrs/skills/linked").symlink_to(host)
        lines = agent.ask("/linked everybody", "m2")
        assert text_of(lines) == "Two."
        assert not of(lines, "tool_request")
        assert b"Of the host." not in agent.requests[0].body
        assert b"Of the host." in agent.requests[1].body
        assert b"Say hello to everybody." in agent.requests[1].body


@pytest.mark.parametrize("trusted", [True, False])
def test_what_a_workspaces_skill_allows_counts_only_where_it_is_trusted(
    workspace: Path, env: dict[str, str], trusted: bool
) -> None:
    skill(workspace / ".trunkline/skills/look", allowed_tools="Bash")
    if trusted:
        config = Path(env["TRUNKLINE_HOME"], "config")
        config.mkdir(parents=True)
        (config / "config.toml").write_text(f'trust = ["{workspace}"]\n')
    steps = (calls(("Skill", {"skill": "look"})), calls(("Bash", {"command": "echo looked"})), says("Done."))
    with coding(workspace, *steps, env=env) as agent:
        lines = agent.ask("Look.")
        assert [line["tool"]["name"] for line in of(lines, "tool_request")] == ([] if trusted else ["Bash"])
        assert "looked" in of(lines, "tool_result")[-1]["output"]


def test_what_the_agent_keeps_in_its_memory_is_known_to_the_next_session(workspace: Path, env: dict[str, str]) -> None:
    with coding(workspace, says("Hm."), env=env) as agent:
        agent.ask("Hi.")
        system = agent.asked.system
    (file,) = {word.strip("`.") for word in system.split() if word.strip("`.").endswith("/MEMORY.md")}
    assert Path(file).parent.parent == Path(env["TRUNKLINE_HOME"], "memory")
    write = calls(("Write", {"file_path": file, "content": "- 2026-02-03: tabs, not spaces\n"}))
    with coding(workspace, write, says("Kept."), flags=("--no-session", "--mode", "auto_edit"), env=env) as agent:
        assert not of(agent.ask("Remember that I use tabs."), "tool_request")
    with coding(workspace, says("Tabs."), env=env) as agent:
        agent.ask("What do I use?")
        assert "- 2026-02-03: tabs, not spaces" in agent.asked.system
        (info,) = of(agent.ask("/memory", "m2"), "info")
        assert "tabs, not spaces" in info["message"]
    elsewhere = workspace.parent / "elsewhere"
    elsewhere.mkdir()
    with coding(elsewhere, says("Hm."), env=env) as agent:
        agent.ask("What do I use?")
        assert "tabs" not in agent.asked.system


def test_a_command_of_ones_own_is_what_the_model_is_told(workspace: Path, env: dict[str, str]) -> None:
    folder = workspace / ".trunkline/commands"
    folder.mkdir(parents=True)
    (folder / "fix.md").write_text("---\ndescription: Fixes an issue.\n---\nFix issue $ARGUMENTS.\n")
    with coding(workspace, says("Fixed."), env=env) as agent:
        assert text_of(agent.ask("/fix 12")) == "Fixed."
        assert agent.asked.said[-1].text == "Fix issue 12."
        (info,) = of(agent.ask("/help", "m2"), "info")
        assert "/fix" in info["message"]
