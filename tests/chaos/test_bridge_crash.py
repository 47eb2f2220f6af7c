"""A whole bridge that is killed with -9, at many places and in the middle of a turn, and started again.

No message is lost, none is answered twice or run twice, what was interrupted is told, and no agent is left running.

The first test counts the steps that a bridge takes on disk, at the platform and in its agent, and dies at one of them;
a process that has imported everything forks a child for each place. The second one kills the command itself while a
real agent process is at work.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.base.processes import is_alive, marked, until
from tests.support.chat_platform import LIMITS, MemoryPlatform, Message
from trunkline.chat.bridge import Bridge
from trunkline.chat.delivery.disk import ChatDisk
from trunkline.chat.delivery.rows import Rows
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.opening import Opener
from trunkline.chat.platform import Button, Inbound, Pressed
from trunkline.chat.senders import Senders
from trunkline.chat.settings import BridgeSettings
from trunkline.core.agent import Agent, Capabilities, OpenRequest
from trunkline.core.events import Event, TextDelta, TurnEnded, UserMessage
from trunkline.core.usage import NOTHING_USED
from trunkline.store.files import FileStore

pytestmark = pytest.mark.process

MESSAGES = ("m0", "m1", "/help", "m2")
WORDS = 4
#: Of each kind of steps, so many places to die are tried; of those that decide about losing and doubling, all.
PLACES = {"notes": 100, "outbox": 8, "other statements": 8, "platform": 8, "agent": 4}
#: Dozens of processes, one after the other: four seconds of work, and a busy machine gives it little at a time.
PATIENCE_SECONDS = 180.0


Place = tuple[str, int]


class Steps:
    """Counts the steps of a process, by their kind, and kills it at one of them."""

    def __init__(self, fatal: Place | None = None) -> None:
        self.taken: Counter[str] = Counter()
        self._fatal = fatal

    def __call__(self, kind: str) -> None:
        self.taken[kind] += 1
        if (kind, self.taken[kind]) == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class CountedDisk(ChatDisk):
    """A database each of whose statements is a place to die."""

    steps = Steps()

    def execute(self, statement: str, *parameters: object) -> Any:
        kind = next((kind for kind in ("notes", "outbox") if kind in statement), "other statements")
        self.steps(kind)
        result = super().execute(statement, *parameters)
        self.steps(kind)
        return result


class FilePlatform(MemoryPlatform):
    """A platform whose messages, and how far they were taken, are in files."""

    def __init__(self, directory: Path, step: Steps) -> None:
        super().__init__(LIMITS.replace(edit_seconds=0.005))
        self._shown = directory / "shown"
        self._taken = directory / "taken"
        self._step = step
        self._load()

    async def receive(self) -> AsyncIterator[Inbound | Pressed]:
        taken = int(self._taken.read_text()) if self._taken.exists() else 0
        for number, text in enumerate(MESSAGES[taken:], taken):
            yield Inbound(f"id{number}", "c", "1", text, private=True)
            self._step("platform")
            self._taken.write_text(str(number + 1))

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        self._step("platform")
        if key not in self._keys:
            self._write({"key": key, "text": text})
        self._step("platform")
        return self._keys[key].id

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        self._step("platform")
        self._write({"edit": message, "text": text})
        self._step("platform")

    def _write(self, change: dict[str, str]) -> None:
        with self._shown.open("a", encoding="utf-8") as file:
            file.write(json.dumps(change) + "\n")
        self._load()

    def _load(self) -> None:
        self.chats.clear()
        self._keys.clear()
        for line in self._shown.read_text(encoding="utf-8").splitlines() if self._shown.exists() else ():
            change = json.loads(line)
            if "edit" in change:
                next(each for each in self.chats["c"] if each.id == change["edit"]).text = change["text"]
            else:
                message = Message(f"out{len(self.chats['c'])}", change["text"], (), None)
                self.chats["c"].append(message)
                self._keys[change["key"]] = message


class CountedAgent:
    """Answers word by word, and writes down each time that it was asked."""

    name = "counted"
    capabilities = Capabilities(resume=True)
    session_id = None

    def __init__(self, directory: Path, step: Steps) -> None:
        self._asked = directory / "asked"
        self._step = step

    async def open(self, request: OpenRequest) -> CountedAgent:
        return self

    async def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        self._step("agent")
        with self._asked.open("a") as file:
            file.write(f"{message.text}\n")
        for word in range(WORDS):
            self._step("agent")
            # Before, not after: the last word comes with the end, and has been shown to nobody by then.
            await asyncio.sleep(0.003)
            yield TextDelta(f"{message.text}w{word} ")
        yield TurnEnded("success", NOTHING_USED)

    async def decide(self, *arguments: Any) -> None: ...

    async def configure(self, *arguments: Any) -> None: ...

    async def cancel(self) -> None: ...

    async def close(self) -> None: ...


async def serve(directory: Path, steps: Steps) -> None:
    """A bridge that does all the work that is left."""
    CountedDisk.steps = Steps()
    store = ChatStore(database=CountedDisk(str(directory / "chat.db")))
    # A kill takes nothing from the kernel: waiting for the disk would only take time.
    store.execute("PRAGMA synchronous = OFF")
    CountedDisk.steps = steps

    def make(spec: str, options: Mapping[str, Any]) -> Agent:
        return CountedAgent(directory, steps)

    settings = BridgeSettings("a", agents={"a": "a"}, workspace=str(directory))
    opener = Opener(settings, make=make, sessions=FileStore(directory / "sessions"), environ={})
    platform = FilePlatform(directory, steps)
    bridge = Bridge(platform, store, opener, Senders(("memory:1",)), files=str(directory / "files"))
    await bridge.start()
    await bridge.serve()
    await bridge.close()
    store.close()


def child(directory: Path, fatal: Place | None = None) -> int:
    """How a process ended that did the work, or died at a step of it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            logging.disable()
            asyncio.run(serve(directory, Steps(fatal)))
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def crash_at_many_places(root: Path) -> int:
    """Die at many places, each time from a fresh start; gives how often it came to that."""
    chance = random.Random(7)
    whole = root / "whole"
    whole.mkdir()
    steps = Steps()
    asyncio.run(serve(whole, steps))
    check(whole, "nowhere")
    deaths = 0
    for kind, number in _places(steps.taken):
        directory = root / f"{kind} {number}"
        directory.mkdir()
        deaths += child(directory, (kind, number)) == -signal.SIGKILL
        # And once more, while the traces of the first crash are being cleared up.
        child(directory, ("notes", chance.randrange(1, 8)))
        assert child(directory) == 0, f"after {kind} {number}"
        check(directory, f"{kind} {number}")
    return deaths


def _places(taken: Counter[str]) -> Iterator[Place]:
    for kind, most in PLACES.items():
        step = max(1, taken[kind] // most)
        yield from ((kind, number) for number in range(1, taken[kind] + 1, step))


def check(directory: Path, place: str) -> None:
    """Look at what people see in the end."""
    store = ChatStore(str(directory / "chat.db"))
    left = [*store.waiting("memory"), *store.interrupted("memory"), *Rows(store).unfinished("memory")]
    unsettled = Rows(store).unsettled()
    store.close()
    shown = FilePlatform(directory, Steps()).shown()
    words = Counter(" ".join(shown).split())
    asked = Counter((directory / "asked").read_text().split())
    story = f"killed at {place}; shown: {shown}; asked: {asked}"
    assert not left, story
    assert not unsettled, story
    assert sum("`/retry` repeats the last message" in text for text in shown) == 1, story
    for name in ("m0", "m1", "m2"):
        answered = words[f"{name}w{WORDS - 1}"]
        interrupted = sum("was interrupted" in text and f"`{name}`" in text for text in shown)
        assert asked[name] <= 1, f"{name} was run twice; {story}"
        assert max(words[f"{name}w{word}"] for word in range(WORDS)) <= 1, f"{name} was doubled; {story}"
        assert answered + interrupted >= 1, f"{name} was lost; {story}"
        assert interrupted <= 1, f"{name} was told twice; {story}"
        if answered:
            assert all(words[f"{name}w{word}"] for word in range(WORDS)), f"a part of {name} was lost; {story}"


@pytest.mark.timeout(PATIENCE_SECONDS + 30)
def test_a_bridge_that_is_killed_at_any_step_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.chaos.test_bridge_crash import crash_at_many_places\n"
        "print(crash_at_many_places(Path(sys.argv[1])))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > sum(PLACES.values()) - PLACES["notes"]


PROFILE = """
command: sh
args: ["-c", "{script}"]
"""
WORKER = "echo $$ > {pid}; if [ -e {go} ]; then echo done: $AGENT_MESSAGE; else sleep 600; fi"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="descendants are found through /proc")
def test_the_command_killed_in_the_middle_of_a_turn_leaves_no_agent_and_tells_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = uuid4().hex
    monkeypatch.setenv("BRIDGE_CRASH_TEST", mark)
    pid, go = tmp_path / "pid", tmp_path / "go"
    profile = tmp_path / "agent.yaml"
    profile.write_text(PROFILE.format(script=WORKER.format(pid=pid, go=go)))
    command = [sys.executable, "-m", "trunkline", "bridge", "run", "terminal", "--agent", f"agentproc:{profile}"]

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as bridge:
        assert bridge.stdin is not None
        bridge.stdin.write(b"work\nand this\n")
        bridge.stdin.flush()
        until(lambda: pid.exists() and pid.read_text().strip(), PATIENCE_SECONDS)
        agent = int(pid.read_text())
        assert is_alive(agent)
        bridge.kill()
    until(lambda: not marked(mark), PATIENCE_SECONDS)
    assert not is_alive(agent)

    go.touch()
    again = subprocess.run(command, input=b"/retry\n", capture_output=True, cwd=tmp_path, timeout=PATIENCE_SECONDS)
    said = again.stdout.decode()
    assert again.returncode == 0, again.stderr
    assert said.count("was interrupted before this was answered: `work`") == 1
    assert said.count("done: work") == 1
    assert said.count("done: and this") == 1
    until(lambda: not marked(mark), PATIENCE_SECONDS)
