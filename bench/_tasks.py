"""The tasks of `bench/tasks`: small repositories, each with a test that fails, and what an agent is told about it.

A task is a folder:

    task.toml      what it is about; its members are those of `Task`
    repo/          the repository, as the agent finds it
    user/          what is in the user's configuration directory, if there is anything
    answers.yaml   what a model that solves it answers, made by hand; see `_tasks_model.py`
    requests.txt   what such a model is asked, recorded; see `_tasks_requests.py`
"""

from __future__ import annotations

import dataclasses
import shutil
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TASKS = Path(__file__).with_name("tasks")

#: What an agent may take for a task that does not say it: most need a minute with a good model.
LIMIT_SECONDS = 600.0


@dataclass(frozen=True)
class Task:
    """One of them. What `task.toml` holds, and where."""

    folder: Path
    title: str
    language: str
    message: str
    """What the agent is told."""
    test: str
    """A command line that fails in `repo`, and succeeds where the task is solved."""
    tests: tuple[str, ...]
    """Patterns of the files that the test consists of. They are put back before it decides."""
    needs: tuple[str, ...] = ()
    """Programs without which it cannot be done."""
    mode: str = "default"
    """The approval mode to begin with. Whatever is asked is approved, but for what `deny` names."""
    deny: dict[str, str] = field(default_factory=dict)
    """Words of a call's description, and the reason for which such a call is denied."""
    mask: tuple[str, ...] = ()
    """Regular expressions for what is different in the output of this task's programs each time."""
    slow: bool = False
    """Whether its compiler takes so long that `make test` does without it."""
    limit: float = LIMIT_SECONDS
    """Seconds that the agent may take."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def missing(self) -> list[str]:
        """The programs that are not here."""
        return [program for program in self.needs if shutil.which(program) is None]

    def test_files(self) -> list[Path]:
        """The files of the test, from `repo`."""
        found = {path for pattern in self.tests for path in self.repo.glob(pattern) if path.is_file()}
        return sorted(path.relative_to(self.repo) for path in found)


class BrokenTask(Exception):
    """The folder is not what a task has to be. Says what to do."""


def load(folder: Path) -> Task:
    """The task in a folder.

    Raises:
        BrokenTask: a member is missing, misspelt or of the wrong type.
    """
    try:
        members: dict[str, Any] = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))
        known = {each.name for each in dataclasses.fields(Task)} - {"folder"}
        if strange := members.keys() - known:
            raise BrokenTask(f"`{folder.name}`: `task.toml` has no `{strange.pop()}`. Use {', '.join(sorted(known))}.")
        for name in members.keys() & {"needs", "tests", "mask"}:
            members[name] = tuple(members[name])
        task = Task(folder, **members)
    except (OSError, tomllib.TOMLDecodeError, TypeError) as error:
        raise BrokenTask(f"`{folder.name}` is not a task: {error}. Mend its `task.toml`.") from error
    if not task.test_files():
        raise BrokenTask(f"`{folder.name}`: no file of `repo` matches `tests`. Name the files of the test there.")
    return task


def all_tasks(folder: Path = TASKS) -> list[Task]:
    """Every task in a folder, by name.

    Raises:
        BrokenTask: one of them cannot be used, or there is none.
    """
    found = [load(path.parent) for path in sorted(folder.glob("*/task.toml"))]
    if not found:
        raise BrokenTask(f"There is no task in `{folder}`. A task is a folder with a `task.toml`.")
    return found
