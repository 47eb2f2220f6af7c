"""A bridge that is killed at every step of its work, and started again: nothing is lost, and nothing is doubled.

The bridge here is the least that can be called one: it notes what came in, answers it by streaming, and ends it. Each
of its steps on disk and each request to the platform is a place to die, before it and after it. A process that has
imported everything forks one child for each place; the child is killed with SIGKILL, and others finish its work.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.loop import run
from tests.support.patience import PATIENCE_SECONDS
from tests.support.scripted_platform import LIMITS, ScriptedPlatform, Shown
from trunkline.chat.delivery.answer import StreamedAnswer
from trunkline.chat.delivery.disk import ChatDisk
from trunkline.chat.delivery.losses import LOST
from trunkline.chat.delivery.outbox import Outbox
from trunkline.chat.delivery.rows import Rows, TextBody
from trunkline.chat.delivery.store import ChatStore
from trunkline.chat.platform import Button, Inbound

#: Every so many steps one is a place to die: a prime, so that all kinds of steps are met.
STRIDE = 7

MESSAGES = 5
WORDS = 30


class FilePlatform(ScriptedPlatform):
    """A platform whose messages are in a file, so that they outlive those who send them."""

    def __init__(self, path: Path, *, idempotent: bool, step: Callable[[], None]) -> None:
        super().__init__(LIMITS.replace(idempotent=idempotent, text_chars=80))
        self._path = path
        self._step = step
        self._replay()

    async def send(
        self, chat: str, text: str, *, key: str, buttons: Sequence[Button] = (), reply_to: str | None = None
    ) -> str:
        await asyncio.sleep(0.2)
        self._step()
        if not (self.limits.idempotent and key in self._keys):
            self._write({"chat": chat, "text": text, "key": key})
        self._step()
        return self._keys[key].id

    async def edit(self, chat: str, message: str, text: str, *, buttons: Sequence[Button] = ()) -> None:
        await asyncio.sleep(0.2)
        self._step()
        self._write({"edit": message, "text": text})
        self._step()

    def _write(self, change: dict[str, str]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(change) + "\n")
        self._replay()

    def _replay(self) -> None:
        self.messages.clear()
        for line in self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else ():
            change = json.loads(line)
            if "edit" in change:
                next(message for message in self.messages if message.id == change["edit"]).text = change["text"]
            else:
                message = Shown(f"m{len(self.messages) + 1}", change["chat"], change["text"], ())
                self.messages.append(message)
                self._keys[change["key"]] = message


class Steps:
    """Counts the steps of a process, and kills it at one of them."""

    def __init__(self, fatal: int) -> None:
        self.taken = 0
        self._fatal = fatal

    def __call__(self) -> None:
        self.taken += 1
        if self.taken == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)


class CountedDisk(ChatDisk):
    """A database each of whose statements is a place to die."""

    steps: Steps

    def execute(self, statement: str, *parameters: object) -> sqlite3.Cursor:
        self.steps()
        result = super().execute(statement, *parameters)
        self.steps()
        return result


def words(number: int) -> list[str]:
    """The answer to a message. No word stands in it twice, nor in another answer."""
    return [f"a{number}w{word}" for word in range(WORDS)]


async def bridge(directory: Path, *, idempotent: bool, steps: Steps) -> None:
    """Do all the work that is left."""
    CountedDisk.steps = Steps(0)
    store = ChatStore(database=CountedDisk(str(directory / "chat.db")))
    # A kill takes nothing from the kernel: waiting for the disk would only take time.
    store.execute("PRAGMA synchronous = OFF")
    CountedDisk.steps = steps
    platform = FilePlatform(directory / "shown", idempotent=idempotent, step=steps)
    outbox = Outbox(platform, store)
    await outbox.start()
    for note in store.interrupted("scripted"):
        with store.together():
            outbox.post(note.inbound.chat, f"interrupted{note.inbound.id}")
            store.end(note, "error")
    for number in range(MESSAGES):
        store.note("scripted", Inbound(str(number), f"chat{number % 2}", "me", "hello"))
    for note in store.waiting("scripted"):
        store.begin(note)
        answer = StreamedAnswer(outbox, note.inbound.chat)
        for word in words(int(note.inbound.id)):
            answer.feed(f"{word} ")
            await asyncio.sleep(0.1)
        with store.together():
            answer.complete(f"end{note.inbound.id}")
            store.end(note, "success")
    assert await outbox.drained(60)
    await outbox.close()
    store.close()


def crash_everywhere(root: Path, *, idempotent: bool, offset: int) -> int:
    """Die at many places, each time with a fresh start; gives how many there were."""
    chance = random.Random(offset)
    steps = Steps(0)
    ChatStore(str(root / "chat.db")).close()
    whole = _begun(root, "whole")
    run(bridge(whole, idempotent=idempotent, steps=steps))
    check(whole, idempotent=idempotent)
    places = range(1 + offset, steps.taken + 1, STRIDE)
    for place in places:
        directory = _begun(root, str(place))
        assert _child(directory, idempotent=idempotent, fatal=place) == -signal.SIGKILL
        # And once more, while the traces of the first crash are being cleared up.
        _child(directory, idempotent=idempotent, fatal=chance.randrange(1, 60))
        assert _child(directory, idempotent=idempotent, fatal=0) == 0
        check(directory, idempotent=idempotent)
    return len(places)


def _begun(root: Path, name: str) -> Path:
    """A directory with an empty database, which takes long to make."""
    directory = root / name
    directory.mkdir()
    shutil.copy(root / "chat.db", directory)
    return directory


def _child(directory: Path, *, idempotent: bool, fatal: int) -> int:
    """How a process ended that did the work, or died at a step of it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            run(bridge(directory, idempotent=idempotent, steps=Steps(fatal)))
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check(directory: Path, *, idempotent: bool) -> None:
    """Look at what people see in the end, and at what they would be told."""
    store = ChatStore(str(directory / "chat.db"))
    unsettled = Rows(store).unsettled()
    left = store.waiting("scripted") + store.interrupted("scripted") + Rows(store).unfinished("scripted")
    store.close()
    assert left == []
    platform = FilePlatform(directory / "shown", idempotent=idempotent, step=Steps(0))
    notices = [message for message in platform.messages if message.text == LOST]
    assert len(notices) <= len(unsettled)
    shown = " ".join(message.text for message in platform.messages if message not in notices).split()
    doubted = " ".join(row.body.text for row in unsettled if isinstance(row.body, TextBody)).split()
    assert len(shown) == len(set(shown)), "something was doubled"
    assert all(row.state == "unknown" for row in unsettled)
    if idempotent:
        assert not doubted
    for number in range(MESSAGES):
        ended, interrupted = f"end{number}", f"interrupted{number}"
        told = [word for word in (ended, interrupted) if word in shown or word in doubted]
        assert len(told) == 1, "a message was neither answered nor reported, or both"
        if told == [ended]:
            assert set(words(number)) <= {*shown, *doubted}, "something was lost"
        if not doubted:
            mine = [word for word in shown if word in words(number)]
            assert mine == words(number)[: len(mine)], "the order was lost"


@pytest.mark.process
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "not idempotent"])
def test_an_outbox_that_is_killed_at_any_step_neither_loses_nor_doubles_an_answer(
    tmp_path: Path, idempotent: bool
) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.chaos.test_outbox_crash import crash_everywhere\n"
        f"print(crash_everywhere(Path(sys.argv[1]), idempotent={idempotent}, offset={int(idempotent)}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
