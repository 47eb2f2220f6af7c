"""The system prompt: what is in it, and what is not."""

from __future__ import annotations

import os
import re

from trunkline.agents.coder.prompt import MOST_INSTRUCTIONS_WHEN_SHORT, Surroundings, surroundings, system_prompt

PLACE = Surroundings("/home/me/project", "2026-04-02", "Linux x86_64", "bash")
TOOLS = ("Read", "Write", "Edit", "Bash", "Glob", "Grep", "Spawn")


def test_it_says_who_where_and_when() -> None:
    prompt = system_prompt(PLACE, model="claude-x", tools=TOOLS)
    assert "\nYou are powered by the model claude-x.\n" in prompt
    assert "\nWorking directory: /home/me/project\nCurrent date: 2026-04-02\n" in prompt
    assert "\nOperating system: Linux x86_64\nShell: bash\n" in prompt


def test_the_users_instructions_are_added_and_the_projects_come_last() -> None:
    prompt = system_prompt(PLACE, model="m", tools=TOOLS, instructions=" Be kind. ", project="# Instructions\n\nTabs.")
    assert "# Using your tools" in prompt
    assert prompt.endswith("\n\nBe kind.\n\n# Instructions\n\nTabs.")


def test_nothing_is_said_about_tools_that_are_not_there() -> None:
    assert "Using your tools" not in system_prompt(PLACE, model="m")
    prompt = system_prompt(PLACE, model="m", tools=("Read", "Edit", "Glob"))
    assert "Edit" in prompt
    for absent in ("Bash", "Spawn", "Grep", "Write"):
        assert not re.search(rf"\b{absent}\b", prompt)


def test_the_short_one_is_short() -> None:
    project = "x" * (MOST_INSTRUCTIONS_WHEN_SHORT + 1)
    prompt = system_prompt(PLACE, model="m", tools=TOOLS, instructions="Be kind.", project=project, compact=True)
    assert len(prompt) < MOST_INSTRUCTIONS_WHEN_SHORT + 400
    assert "Be kind." in prompt
    assert "/home/me/project" in prompt
    assert "the rest was cut" in prompt


def test_short_instructions_of_a_project_are_kept_whole_even_then() -> None:
    prompt = system_prompt(PLACE, model="m", project="Tabs.", compact=True)
    assert prompt.endswith("\n\nTabs.")


def test_the_surroundings_are_those_of_this_machine_and_day() -> None:
    place = surroundings("/somewhere", "/usr/bin/zsh")
    assert place.workspace == "/somewhere"
    assert place.shell == "zsh"
    assert place.system == f"{os.uname().sysname} {os.uname().machine}"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", place.date)
