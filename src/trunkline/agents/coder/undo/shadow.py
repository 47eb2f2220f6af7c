"""Contents of files in a git store of our own, one for each workspace, in the state directory.

Git is only given bytes, and only gives bytes back: it never sees the workspace, so that nothing in there counts for it,
be it hooks, filters, attributes, nested repositories or the user's own `.git`. Whatever is kept comes in by
`fast-import`, which takes no lock on an index and leaves nothing behind that counts when it is killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from trunkline.agents.coder.undo.faults import NoCheckpoint, StoreBusy
from trunkline.base import paths
from trunkline.core.ids import new_id
from trunkline.store import locks

#: What an empty repository consists of. Made by hand: that takes no process.
_EMPTY = {
    "HEAD": "ref: refs/heads/none\n",
    "config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n",
}
#: Quick rather than small, and not forced to the disk: after a power cut the last turns cannot be undone.
_SETTINGS = (
    *("-c", "core.compression=1"),
    *("-c", "core.fsync=none"),
    *("-c", "gc.auto=0"),
    *("-c", "core.hooksPath=/dev/null"),
)
#: How long git may take to end when it has been told everything: it writes what it has in memory.
END_SECONDS = 30.0
#: Housekeeping leaves alone what came in within this time: a turn that is under way may have it in mind alone.
RECENT_SECONDS = 24 * 3600.0
#: How often is looked whether another process is done with the store.
_LOOK_SECONDS = 0.01
#: In how many directories the names of what is kept are spread in the trees that hold on to it.
_SPREAD = 2


class ShadowStore:
    """The contents of one workspace's files. All methods may block: they are for threads."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._git = os.path.join(place, "git")
        self._is_stopped = False
        """Whether nobody waits for the housekeeping any more."""
        self._tidying: subprocess.Popen[bytes] | None = None

    def make(self) -> None:
        """See that it is there.

        Raises:
            NoCheckpoint: it cannot be made, or there is no git.
        """
        if shutil.which("git") is None:
            raise NoCheckpoint("`git` was not found.", hint="Install it to have changes kept.")
        if os.path.exists(os.path.join(self._git, "HEAD")):
            return
        try:
            for part in ("objects", "refs"):
                paths.ensure_dir(os.path.join(self._git, part))
            for name, text in reversed(_EMPTY.items()):
                with open(os.path.join(self._git, name), "w", encoding="ascii") as file:
                    file.write(text)
        except OSError as error:
            raise NoCheckpoint(paths.unusable(error)) from None

    @contextmanager
    def locked(self, seconds: float) -> Iterator[None]:
        """Have the store for oneself. A process that died has let go of it.

        Raises:
            NoCheckpoint: somebody else has it for longer than that.
        """
        deadline = time.monotonic() + seconds
        try:
            paths.ensure_dir(self.place)
            fd = os.open(os.path.join(self.place, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, locks.PRIVATE_FILE)
        except OSError as error:
            raise NoCheckpoint(paths.unusable(error)) from None
        try:
            while not locks.lock(fd):
                if time.monotonic() > deadline:
                    raise StoreBusy("Another session in this workspace is keeping what it changes.")
                time.sleep(_LOOK_SECONDS)
            yield
        finally:
            os.close(fd)

    @contextmanager
    def keeping(self) -> Iterator[Keeper]:
        """Takes in contents. They are kept when this is left, all of them or none.

        Raises:
            NoCheckpoint: they cannot be kept.
        """
        keeper = Keeper(self._start)
        try:
            yield keeper
            keeper.finish()
        except (OSError, subprocess.SubprocessError) as error:
            raise NoCheckpoint(f"git could not keep what is changed: {error}.") from None
        finally:
            keeper.drop()

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], bytes]]:
        """Gives a function that gives contents by their names.

        Raises:
            NoCheckpoint: one is not there, or git does not work.
        """
        process: subprocess.Popen[bytes] | None = None

        def read(name: str) -> bytes:
            nonlocal process
            process = process or self._start("cat-file", "--batch")
            return _read_one(*_pipes(process), name)

        try:
            yield read
        except (OSError, subprocess.SubprocessError) as error:
            raise NoCheckpoint(f"git could not read what was kept: {error}.") from None
        finally:
            if process is not None:
                _end(process)

    def hunks(self, old: str, new: str) -> str:
        """What makes one content of the other, as the hunks of a unified diff; empty if one of them is no text.

        Raises:
            NoCheckpoint: git does not work.
        """
        told = self._told(self._start("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--unified=3", old, new))
        _, _, found = told.partition(b"\n@@")
        return f"@@{found.decode('utf-8', 'replace')}" if found else ""

    def hold_only(self, names: Iterable[str]) -> None:
        """Let go of all contents but these, and free their room: the whole of the store's housekeeping.

        What came in within the last day stays: a turn may be about to name it. Whenever this ends before its end, all
        that is to stay is still held: by the old names, or by the new one.

        Raises:
            NoCheckpoint: git does not work, or it was stopped.
        """
        old = self._old_refs()
        there = self._there(names)
        with self.keeping() as keeper:
            for name in there:
                keeper.hold(name)
        # Not before git has said that the new name is there.
        for ref in old:
            with suppress(FileNotFoundError):
                os.unlink(ref)
        self._tidy("repack", "-a", "-d", "-q", "--depth=0", "--window=0")
        self._tidy("prune", f"--expire={int(time.time() - RECENT_SECONDS)}")

    def stop(self) -> None:
        """Break off the housekeeping that another thread is at: the next one goes on with it."""
        self._is_stopped = True
        if (process := self._tidying) is not None:
            process.kill()

    def size(self) -> int:
        """How many bytes it takes."""
        found = 0
        for folder, _, files in os.walk(os.path.join(self._git, "objects")):
            for name in files:
                with suppress(OSError):
                    found += os.lstat(os.path.join(folder, name)).st_size
        return found

    def _old_refs(self) -> list[str]:
        try:
            found = list(os.scandir(os.path.join(self._git, "refs", "kept")))
        except FileNotFoundError:
            return []
        return [ref.path for ref in found if ref.stat().st_mtime < time.time() - RECENT_SECONDS]

    def _there(self, names: Iterable[str]) -> list[str]:
        """Those of the contents that the store has."""
        told = self._tidy("cat-file", "--batch-check", said="".join(f"{name}\n" for name in names).encode())
        found = (line.split() for line in told.decode("ascii", "replace").splitlines())
        return [words[0] for words in found if words[1:2] == ["blob"]]

    def _tidy(self, *words: str, said: bytes = b"") -> bytes:
        """Run a step of the housekeeping."""
        process = self._tidying = self._start(*words)
        if self._is_stopped:
            # Looked at after the process can be seen: who stops it now ends it as well.
            process.kill()
        try:
            return self._told(process, said)
        finally:
            self._tidying = None

    def _told(self, process: subprocess.Popen[bytes], said: bytes = b"") -> bytes:
        """What git says. One that did not come to its end has not said everything."""
        try:
            told = process.communicate(said, timeout=10 * END_SECONDS)[0]
            if process.returncode != 0:
                raise OSError(f"it ended with {process.returncode}")
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise NoCheckpoint(f"git does not work on `{self._git}`: {error}.") from None
        finally:
            _end(process)
        return told

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        program = shutil.which("git")
        if program is None:
            raise NoCheckpoint("`git` was not found.", hint="Install it to have changes kept.")
        return subprocess.Popen(
            [program, *_SETTINGS, *words],
            env={**_environment(), "GIT_DIR": self._git},
            # Not in the workspace, which may hold anything.
            cwd=self.place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )


class Keeper:
    """Contents on their way into a store."""

    def __init__(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None
        self._held: set[str] = set()

    def keep(self, name: str, data: bytes) -> None:
        """Take in a content, whose name is known."""
        if name not in self._held:
            self._tell(b"blob\ndata %d\n" % len(data), data, b"\n")
            self._held.add(name)

    def hold(self, name: str) -> None:
        """Hold on to a content that came in before."""
        self._held.add(name)

    def finish(self) -> None:
        """Have it all written, under a name of its own: nothing that others did can be in the way."""
        if not self._held:
            return
        self._tell(b"commit refs/kept/%s\ncommitter t <t> 0 +0000\ndata 0\n" % new_id().encode())
        for name in sorted(self._held):
            place = f"{name[:_SPREAD]}/{name[_SPREAD:]}"
            self._tell(f"M 100644 {name} {place}\n".encode())
        process = self._tell(b"\ndone\n")
        process.communicate(timeout=END_SECONDS)
        if process.returncode != 0:
            raise OSError("it ended with an error")

    def drop(self) -> None:
        """End what was not finished."""
        if self._process is not None:
            _end(self._process)

    def _tell(self, *pieces: bytes) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = self._start("fast-import", "--quiet", "--done", "--depth=0")
        told, _ = _pipes(self._process)
        for piece in pieces:
            told.write(piece)
        return self._process


def _environment() -> dict[str, str]:
    """Without anything of the user's that tells git where to look or what to do."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **own,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("git was started with pipes")
    return process.stdin, process.stdout


def _read_one(told: IO[bytes], heard: IO[bytes], name: str) -> bytes:
    told.write(name.encode() + b"\n")
    told.flush()
    head = heard.readline().split()
    if len(head) != 3 or head[1] != b"blob":
        raise NoCheckpoint("What a file held is no longer kept.")
    data = heard.read(int(head[2]))
    heard.read(1)
    return data


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
