"""Commands of the user's around the agent's work: which programs they find, and what several of them come to."""

from __future__ import annotations

import json
import os
from pathlib import Path

from trunkline.agents.coder.hooks import Hooks, to_the_log
from trunkline.agents.coder.settings_hooks import Hook


async def test_a_program_that_lies_in_the_workspace_is_not_the_users(tmp_path: Path) -> None:
    (tmp_path / "true").write_text("#!/bin/sh\ntouch taken\n")
    (tmp_path / "true").chmod(0o755)
    # `true` is built into most shells; `env` looks for the program.
    table = {"stop": (Hook("env true"),)}
    hooks = Hooks(table, workspace=str(tmp_path), environ={"PATH": f".:{os.environ['PATH']}"})
    await hooks.run("stop", to_the_log)
    assert not (tmp_path / "taken").exists()


async def test_the_later_of_two_that_change_the_arguments_is_told_of_the_first_and_wins(tmp_path: Path) -> None:
    def changes(word: str) -> Hook:
        answer = json.dumps({"tool_input": {"command": word}})
        return Hook(f"cat > told-{word}; echo '{answer}'")

    hooks = Hooks({"pre_tool_use": (changes("one"), changes("two"))}, workspace=str(tmp_path))
    verdict = await hooks.run("pre_tool_use", to_the_log, "Bash", tool_name="Bash", tool_input={"command": "zero"})
    assert verdict.tool_input == {"command": "two"}
    told = [json.loads((tmp_path / f"told-{word}").read_text())["tool_input"]["command"] for word in ("one", "two")]
    assert told == ["zero", "one"]


async def test_one_for_aionrs_that_says_no_without_a_word_is_told_with_its_exit_code(tmp_path: Path) -> None:
    hooks = Hooks({"pre_tool_use": (Hook("exit 3", name="guard", is_theirs=True),)}, workspace=str(tmp_path))
    verdict = await hooks.run("pre_tool_use", to_the_log, "Bash", tool_name="Bash", tool_input={})
    why = "Hook 'guard' blocked execution: it exited with 3 and printed nothing"
    assert (verdict.decision, verdict.reason) == ("deny", why)
