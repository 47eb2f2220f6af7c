"""One task, from the copy of its repository to the verdict: the agent is the real program, as a host starts it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench._peers import TRUNKLINE
from bench._tasks import BrokenTask, Task
from bench._tasks_model import MAIN, Answer, RecordedModel, script_of
from bench._tasks_requests import Wording, difference

from tests.support.provider import StubProvider
from trunkline.base import paths
from trunkline.core.events import Gap, Journaled
from trunkline.core.faults import Fault
from trunkline.core.usage import Usage
from trunkline.models.limits import plain_name
from trunkline.models.prices import PRICES, cost
from trunkline.store.files import FileStore
from trunkline.wires.jsonstream import messages
from trunkline.wires.jsonstream.drive import Connection

Format = Literal["anthropic", "openai"]
Verdict = Literal["solved", "failed", "changed", "skipped"]

#: How long a task's test may take: compilers on a busy machine take minutes.
TEST_SECONDS = 300.0
#: How long the agent may take to be there.
READY_SECONDS = 120.0
#: How long it may take to leave: commands that it runs in the background are ended first.
CLOSE_SECONDS = 20.0
#: Of the output of a test that fails: enough to see what is wrong.
LAST_LINES = 8

_SESSION = "task"
#: When the first file of a repository was changed: long ago, for those who build what is older than its source.
_EPOCH = 1_700_000_000
#: What the home is for programs that must be found, and what they made before, though the agent has a home of its own.
_HOME = os.path.expanduser("~")
_TOOLS = {"PYENV_ROOT": ".pyenv", "RUSTUP_HOME": ".rustup", "CARGO_HOME": ".cargo", "GOCACHE": ".cache/go-build"}
#: What the machine's user has set for other programs.
_FOREIGN = ("TRUNKLINE_", "XDG_", "VIRTUAL_ENV", "PYTHON", "MAKE", "MFLAGS")
#: Besides, with a recorded model: nothing may reach another one.
_REAL = ("ANTHROPIC_", "OPENAI_", "AWS_", "GOOGLE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@dataclass(frozen=True)
class Choice:
    """Which model does the tasks. Without a provider it is the recorded one of each."""

    provider: str = ""
    flags: tuple[str, ...] = ()
    """More flags for the agent."""
    config: str = ""
    """The text of a configuration file, in which the provider may be named."""
    format: Format = "anthropic"
    """The format in which a recorded model is asked."""
    limit: float | None = None
    """Seconds for each task, instead of its own limit."""
    keep: bool = False
    """Leave the directories where the tasks were done."""

    @property
    def recorded(self) -> bool:
        return not self.provider


@dataclass
class Result:
    """What became of a task."""

    task: str
    language: str
    verdict: Verdict = "failed"
    why: str = ""
    """What is to be said of a verdict that is not `solved`."""
    model: str = ""
    rounds: int | None = None
    """How often the model was asked."""
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    dollars: float | None = None
    tests_changed: tuple[str, ...] = ()
    """Files of the test that the agent has changed. It was judged without these changes."""
    place: str = ""
    """Where it was done, if that was kept."""
    requests: str = ""
    """What the recorded model was asked."""
    diff: str = ""
    """How that differs from the recording."""


async def run_task(task: Task, choice: Choice, prompt: str = "") -> Result:
    """Let the agent do a task; `prompt` is what a recorded model is usually sent besides messages.

    Raises:
        BrokenTask: the task is not what it has to be: its test succeeds before anything was done.
    """
    result = Result(task.name, task.language)
    if task.missing:
        result.verdict, result.why = "skipped", f"missing: {', '.join(task.missing)}"
        return result
    with _place(task, choice) as root:
        environ = _environment(root, choice)
        before, _ = await _test(task, root / "before", environ)
        if before == 0:
            raise BrokenTask(f"`{task.name}`: the test succeeds before anything is done. It has to fail.")
        if choice.recorded:
            await _replay(task, choice, root, environ, prompt, result)
        else:
            await _work(task, choice, root, environ, ("--provider", choice.provider), result)
        result.tests_changed = _put_tests_back(task, root / "repo")
        code, output = await _test(task, root / "repo", environ)
        _judge(result, code, output)
        result.place = str(root) if choice.keep else ""
    return result


def _judge(result: Result, code: int | None, output: str) -> None:
    if code == 0:
        result.verdict = "changed" if result.diff or result.why else "solved"
        result.why = result.why or ("it is not asked what was recorded" if result.diff else "")
    else:
        said = "did not end in time" if code is None else f"exits with {code}"
        lines = output.strip().splitlines()[-LAST_LINES:]
        result.why = "\n".join(filter(None, [result.why, f"the test {said}:", *lines]))


async def usual_prompt(choice: Choice) -> str:
    """The system prompt and the tools of an agent that finds nothing in its workspace."""
    with _directory(keep=False) as root:
        (root / "repo").mkdir()
        model = RecordedModel({MAIN: (Answer("Hello."),)}, Wording(root))
        async with StubProvider(model.answer) as stub:
            flags = _recorded_flags(stub, choice)
            await _Drive().run(flags, "Hello", root / "repo", _environment(root, choice), 120.0)
        return model.prompt


# The place.


@contextmanager
def _place(task: Task, choice: Choice) -> Iterator[Path]:
    with _directory(keep=choice.keep) as root:
        for name in ("before", "repo"):
            shutil.copytree(task.repo, root / name, symlinks=True)
            _age(root / name)
        config = root / "home" / "trunkline" / "config"
        if (task.folder / "user").is_dir():
            shutil.copytree(task.folder / "user", config)
        if choice.config:
            config.mkdir(parents=True, exist_ok=True)
            with (config / "config.toml").open("a", encoding="utf-8") as file:
                file.write(f"\n{choice.config}")
        yield root


def _age(directory: Path) -> None:
    """Give each file a time of its own: Glob names the newest first, and a clone has them in any order."""
    for number, path in enumerate(sorted(directory.rglob("*"))):
        os.utime(path, (_EPOCH - number, _EPOCH - number), follow_symlinks=False)


@contextmanager
def _directory(*, keep: bool) -> Iterator[Path]:
    """An empty one. By its real name: programs print that."""
    root = Path(tempfile.mkdtemp(prefix="trunkline-task-")).resolve()
    (root / "home").mkdir()
    try:
        yield root
    finally:
        if not keep:
            shutil.rmtree(root, ignore_errors=True)


def _environment(root: Path, choice: Choice) -> dict[str, str]:
    """That of the agent and of the tests: a home of their own, and the programs that are here."""
    unwanted = (*_FOREIGN, *_REAL) if choice.recorded else _FOREIGN
    kept = {
        name: value
        for name, value in os.environ.items()
        # By the exception the tests find processes that were left behind.
        if not name.upper().startswith(unwanted) or name == "TRUNKLINE_TEST_RUN"
    }
    tools = {name: os.path.join(_HOME, folder) for name, folder in _TOOLS.items()}
    return {
        **{name: folder for name, folder in tools.items() if os.path.isdir(folder)},
        **kept,
        "HOME": str(root / "home"),
        "TRUNKLINE_HOME": str(root / "home" / "trunkline"),
        "TRUNKLINE_CACHE": paths.cache_dir(),
        "SHELL": "/bin/bash",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }


def _put_tests_back(task: Task, repo: Path) -> tuple[str, ...]:
    """Undo what was done to the files of the test; which those were."""
    changed = []
    for name in task.test_files():
        original = (task.repo / name).read_bytes()
        there = repo / name
        if not there.is_file() or there.read_bytes() != original:
            changed.append(str(name))
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(task.repo / name, there)
    return tuple(changed)


async def _test(task: Task, directory: Path, environ: Mapping[str, str]) -> tuple[int | None, str]:
    """Run the test; its exit code, None if it took too long, and what it said."""
    process = await asyncio.create_subprocess_exec(
        "/bin/bash", "-c", task.test, cwd=directory, env=environ, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(TEST_SECONDS):
            output, _ = await process.communicate()
        return process.returncode, output.decode(errors="replace")
    except TimeoutError:
        return None, ""
    finally:
        # What it has started, too.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


# The agent.


def _recorded_flags(stub: StubProvider, choice: Choice) -> tuple[str, ...]:
    # The same on every machine: commands are not walled in, and no model's own abilities count.
    return ("--provider", choice.format, "--base-url", stub.url, "--model", "recorded", "--sandbox", "off")


async def _replay(
    task: Task, choice: Choice, root: Path, environ: Mapping[str, str], prompt: str, result: Result
) -> None:
    """Let the agent work with the recorded model, and compare what that is asked with the recording."""
    model = RecordedModel(script_of(task, str(root / "repo")), Wording(root, task.mask), prompt)
    async with StubProvider(model.answer) as stub:
        await _work(task, choice, root, environ, _recorded_flags(stub, choice), result)
    result.requests = model.requests()
    recording = task.folder / "requests.txt"
    recorded = recording.read_text(encoding="utf-8") if recording.exists() else ""
    result.diff = difference(recorded, result.requests, f"{task.name}/requests.txt")
    result.why = "\n".join(filter(None, [result.why, *model.complaints()]))


async def _work(
    task: Task, choice: Choice, root: Path, environ: Mapping[str, str], flags: Sequence[str], result: Result
) -> None:
    drive = _Drive(task.deny)
    begun = time.monotonic()
    flags = (*flags, "--mode", task.mode, "--session-id", _SESSION, *choice.flags)
    keys = {} if not choice.recorded else {f"{choice.format.upper()}_API_KEY": "sk-recorded"}
    await drive.run(flags, task.message, root / "repo", {**environ, **keys}, choice.limit or task.limit)
    result.seconds = time.monotonic() - begun
    result.calls, result.usage, result.why = drive.calls, drive.usage, "\n".join(drive.wrong)
    result.rounds, result.model = _logged(root)
    result.dollars = _cost(result.model, result.usage)


class _Drive:
    """The host: approves what the task does not deny, and counts."""

    def __init__(self, deny: Mapping[str, str] | None = None) -> None:
        self._deny = deny or {}
        self.calls = 0
        self.usage = Usage()
        self.wrong: list[str] = []

    async def run(
        self, flags: Sequence[str], message: str, directory: Path, environ: Mapping[str, str], limit: float
    ) -> None:
        """One message, to its end."""
        command = [TRUNKLINE, "agent", "--json-stream", *flags]
        try:
            agent = await Connection.start(command, cwd=str(directory), env=environ, ready_seconds=READY_SECONDS)
        except Fault as fault:
            self.wrong.append(f"the agent does not start: {fault}")
            return
        try:
            async with asyncio.timeout(limit):
                await self._converse(agent, message)
        except TimeoutError:
            self.wrong.append(f"the agent was stopped after {limit:g} s")
            await agent.kill()
        except Fault as fault:
            self.wrong.append(str(fault))
        finally:
            await agent.close(CLOSE_SECONDS)

    async def _converse(self, agent: Connection, message: str) -> None:
        msg_id = agent.ask(message)
        async for event in agent.events():
            match event:
                case messages.ToolRequest(call_id=call_id, tool=tool):
                    reasons = [reason for words, reason in self._deny.items() if words in tool.description]
                    agent.send(messages.ToolDeny(call_id, reasons[0]) if reasons else messages.ToolApprove(call_id))
                case messages.ToolRunning():
                    self.calls += 1
                case messages.Error(error=error):
                    self.wrong.append(f"the agent says `{error.code}`: {error.message}")
                case messages.StreamEnd() if event.msg_id == msg_id:
                    self.usage = event.usage or Usage()
                    return
        self.wrong.append(f"the agent ended: {await agent.ending()}")


def _logged(root: Path) -> tuple[int | None, str]:
    """How often the model has answered, by the session's log, and which one it was."""
    rounds, model = 0, ""
    try:
        log = FileStore(root / "home" / "trunkline" / "sessions").peek(_SESSION)
    except Fault:
        return None, ""
    for item in log.records:
        if not isinstance(item, Gap) and isinstance(item.event, Journaled):
            record = item.event.record
            rounds += record.get("role") == "assistant"
            model = record["name"] if record.get("role") == "model" else model
    return rounds, model


def _cost(model: str, usage: Usage) -> float | None:
    """US dollars, where the price is known. No request of these tasks is so long that it costs more than others."""
    name = model.rpartition("/")[2]
    price = PRICES.get(plain_name(name))
    return None if price is None else cost(name, usage, price.replace(above=None))
