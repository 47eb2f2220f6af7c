"""The suite of real work: the agent solves every task with its recorded model, by the requests that were recorded."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bench import _tasks_command as command
from bench._tasks import TASKS, BrokenTask, Task, all_tasks, load
from bench._tasks_model import script_of
from bench._tasks_requests import difference
from bench._tasks_run import Choice, Result, run_task, usual_prompt

from tests.conftest import require
from tests.support.coding import calls, says, serving
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.process

SUITE = all_tasks()


#: What the agent has for its work. Each has to be used by somebody, so that a change of it shows.
TOOLS = {
    "Bash", "BashOutput", "Edit", "ExitPlanMode", "Glob", "Grep",
    "KillBash", "Read", "Skill", "Spawn", "TodoWrite", "Write",
}  # fmt: skip
#: A repository that is read in a few minutes.
MOST_LINES = 150


def test_the_suite_is_broad_and_every_task_is_small() -> None:
    assert len(SUITE) >= 25
    assert len({task.language for task in SUITE}) >= 10
    called = {
        name
        for task in SUITE
        for answers in script_of(task, "").values()
        for answer in answers
        for name, _ in answer.call
    }
    assert called == TOOLS
    lines = {task.name: sum(map(lines_of, task.repo.rglob("*"))) for task in SUITE}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def lines_of(path: Path) -> int:
    """Those that people read; a notebook is for programs."""
    return path.read_bytes().count(b"\n") if path.is_file() and path.suffix != ".ipynb" else 0


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a model is sent besides messages, as the agent makes it now."""
    return asyncio.run(usual_prompt(Choice()))


def test_the_system_prompt_and_the_tools_are_those_that_were_recorded(usual: str) -> None:
    recorded = (TASKS / command.PROMPT).read_text(encoding="utf-8")
    assert difference(recorded, usual, command.PROMPT) == "", "see `python bench/tasks.py --record`"


@pytest.mark.parametrize(
    "task", [pytest.param(task, id=task.name, marks=[pytest.mark.long] if task.slow else []) for task in SUITE]
)
def test_the_agent_solves_a_task_by_the_requests_that_were_recorded(task: Task, usual: str) -> None:
    for program in task.needs:
        require(program, program not in task.missing, f"install `{program}`")
    result = asyncio.run(run_task(task, Choice(), usual))
    assert (result.diff, result.why, result.verdict) == ("", "", "solved")
    assert result.tests_changed == ()


def test_one_recording_serves_the_formats_of_both_providers(usual: str) -> None:
    result = asyncio.run(run_task(load(TASKS / "median-even"), Choice(format="openai"), usual))
    assert (result.diff, result.why, result.verdict) == ("", "", "solved")


# The runner itself, on a task whose test is one command.

TRIVIAL = {
    "task.toml": """
title = "A file that says the wrong thing"
language = "text"
message = "Mend it."
test = "sh check.sh"
tests = ["check.sh"]
""",
    "repo/check.sh": "grep -q right said.txt\n",
    "repo/said.txt": "wrong\n",
    "answers.yaml": """
main:
  - call: [{Write: {file_path: said.txt, content: "right\\n"}}]
  - say: Done.
""",
}


def made(folder: Path, **instead: str) -> Task:
    """The trivial task, with other files; those without text are left out."""
    for name, text in (TRIVIAL | instead).items():
        path = folder / "trivial" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text)
    return load(folder / "trivial")


def outcome(task: Task, choice: Choice | None = None) -> Result:
    """What becomes of it."""
    return asyncio.run(run_task(task, choice or Choice()))


def run(folder: Path, capfd: pytest.CaptureFixture[str], *flags: str) -> tuple[int, str, str]:
    """The command, on the tasks of a folder."""
    code = command.main(["--tasks", str(folder), *flags])
    said = capfd.readouterr()
    return code, said.out, said.err


def test_what_was_recorded_is_what_the_next_run_is_held_against(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = made(tmp_path)
    recording, prompt, answers = task.folder / "requests.txt", tmp_path / command.PROMPT, TRIVIAL["answers.yaml"]
    code, said, _ = run(tmp_path, capfd, "--record")
    assert code == 0
    assert str(recording) in said
    assert str(prompt) in said
    assert "----- result of Write" in recording.read_text()
    assert (task.folder / "answers.yaml").read_text() == answers

    # As it would be after a change of what the tool says, and of who the model is told to be.
    recording.write_text(recording.read_text().replace("----- result of Write\n", "----- result of Write\nOK. "))
    prompt.write_text(prompt.read_text().replace("You are a coding agent.", "You are somebody else."))
    code, said, complaint = run(tmp_path, capfd)
    assert code == 1
    assert "solved 0 of 1" in said
    assert "\n-OK. " in complaint
    assert complaint.count("somebody else") == 1, "it shows in one place"
    assert "--record" in complaint
    assert "OK. " in recording.read_text(), "nothing is recorded unless that was asked for"


def test_whoever_changes_the_test_is_judged_by_the_old_one(tmp_path: Path) -> None:
    cheating = 'main:\n  - call: [{Write: {file_path: check.sh, content: "true\\n"}}]\n  - say: Done.\n'
    result = outcome(made(tmp_path, **{"answers.yaml": cheating}))
    assert result.verdict == "failed"
    assert result.tests_changed == ("check.sh",)


def test_a_model_that_is_asked_too_much_has_not_solved_it(tmp_path: Path) -> None:
    less = TRIVIAL["answers.yaml"].replace("  - say: Done.\n", "")
    result = outcome(made(tmp_path, **{"answers.yaml": less}))
    assert result.verdict == "changed"
    assert "no answer to request 2" in result.why


def test_what_a_task_denies_is_not_done_and_an_answer_that_is_left_is_told(tmp_path: Path) -> None:
    denying = TRIVIAL["task.toml"] + '[deny]\n"Write to said.txt" = "not this way"\n'
    more = TRIVIAL["answers.yaml"] + "  - say: Nobody asks for this.\n"
    result = outcome(made(tmp_path, **{"task.toml": denying, "answers.yaml": more}))
    assert result.verdict == "failed"
    assert "not this way" in result.requests
    assert "1 answers were not asked for" in result.why


def test_an_agent_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    result = outcome(made(tmp_path), Choice(limit=0.001))
    assert result.verdict == "failed"
    assert "stopped after 0.001 s" in result.why


def test_a_model_that_nobody_recorded_does_the_same_tasks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-somebody")
    solution = calls(("Write", {"file_path": "said.txt", "content": "right\n"}))
    with serving(solution, says("Done.")) as stub:
        model = ("--provider", "openai", "--base-url", stub.url, "--model", "gpt-4o", "--sandbox", "off")
        code, said, _ = run(tmp_path, capfd, *model, "--json", "--keep")
    assert code == 0
    assert stub.requests[0].headers["authorization"] == "Bearer sk-somebody"
    assert stub.requests[0].json["model"] == "gpt-4o"
    found = json.loads(said)["tasks"][0]
    assert (found["verdict"], found["model"], found["rounds"], found["calls"]) == ("solved", "openai/gpt-4o", 2, 1)
    assert found["input_tokens"] == 20
    assert found["dollars"] == pytest.approx((20 * 2.5 + 10 * 10) / 1e6)
    kept = Path(found["place"])
    assert (kept / "repo" / "said.txt").read_text() == "right\n"
    shutil.rmtree(kept)


def test_a_task_whose_program_is_missing_is_skipped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made(tmp_path, **{"task.toml": TRIVIAL["task.toml"] + 'needs = ["no-such-compiler"]\n'})
    code, said, complaint = run(tmp_path, capfd, "--provider", "mock")
    assert code == 1, "nothing was tried"
    assert "1 skipped" in said
    assert "no-such-compiler" in complaint


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("task.toml", TRIVIAL["task.toml"] + 'tset = "x"\n', "`tset`"),
        ("task.toml", "title = 'x'\n", "not a task"),
        ("task.toml", TRIVIAL["task.toml"].replace("check.sh", "chekc.sh"), "no file"),
        ("repo/said.txt", "right\n", "succeeds before"),
        ("answers.yaml", "main: [{sya: x}]\n", "`sya`"),
        ("answers.yaml", "other: [{say: x}]\n", "no `main`"),
    ],
)
def test_a_task_that_is_none_is_refused(name: str, text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(BrokenTask, match=complaint):
        outcome(made(tmp_path, **{name: text}))


def test_the_script_lists_the_tasks() -> None:
    script = Path(command.__file__).with_name("tasks.py")
    done = subprocess.run(
        [sys.executable, script, "--list"], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == [task.name for task in SUITE]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [(["--task", "no-such-task"], "`no-such-task`"), (["--tasks", "no-such-folder"], "`no-such-folder`")],
)
def test_wrong_usage_is_told(
    flags: list[str], complaint: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path)
    code, _, said = run(tmp_path, capfd, *flags)
    assert code == 2
    assert complaint in said
