"""Supervised child processes, without an event loop. Everything in Trunkline that spawns goes through here.

    with spawn(["git", "status"]) as child:
        for name, data in pump(child):          # `trunkline.base.process_pump`
            ...
        code = child.wait()

What is promised of each child:

- it leads a session and a process group of its own, and inherits no file of ours: not standard input, not standard
  output, no descriptor above 2; standard error only when asked;
- it ends as a tree: SIGTERM to the group, a grace, SIGKILL to all that belongs to it, in bounded time; what the leader
  leaves behind when it ends by itself is killed by `close`;
- its number is not given back to the system before the tree is gone, so that a signal never meets a stranger;
- when this process ends in whatever way, `kill -9` included, the watchdog ends the tree (`process_guard`, `watchdog`).

A descendant that has left the session is found by the cookie in its environment (Linux), or through its parent as
long as that lives. What cleared its environment *and* called `setsid` *and* lost its parent is not found. Systems
without `/proc` know the process group only. `docs/explanation/processes.md` says more.

`process_async` has the same for an event loop; this module does not import asyncio.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias

from trunkline.base.process_errors import SpawnError, SpawnReason, explain, unprepared
from trunkline.base.process_guard import guard, make_pipe, open_null
from trunkline.base.process_tree import KILL_SECONDS, SIGNAL_EXIT, OwnTree, exit_code, new_cookie
from trunkline.base.programs import program_file
from trunkline.base.watchdog import COOKIE_SEPARATOR, TREE_VARIABLE

__all__ = [
    "DRAIN_SECONDS",
    "GRACE_SECONDS",
    "KILL_SECONDS",
    "TREE_VARIABLE",
    "Child",
    "Input",
    "Output",
    "PipeName",
    "SpawnError",
    "SpawnReason",
    "StderrTail",
    "child_env",
    "exit_code",
    "spawn",
]

Input: TypeAlias = Literal["null", "pipe"]
Output: TypeAlias = Literal["null", "pipe", "inherit"]
PipeName: TypeAlias = Literal["stdin", "stdout", "stderr"]

#: How long a tree may take to obey SIGTERM, unless the caller says otherwise: people wait for it.
GRACE_SECONDS = 1.0
#: How long a pipe is read after the leader's end: its own output is there already, a grandchild's may never end.
DRAIN_SECONDS = 0.25
#: What is kept of standard error for messages: a screenful.
TAIL_BYTES = 8192

_STDERR_FD = 2
#: The trees that this process is in: it was started in them, and does not leave them.
_OUTER_TREES = os.environ.get(TREE_VARIABLE)


class Child:
    """One spawned leader with its tree and its pipes. Use it as a context manager, or call `close`.

    `stdin`, `stdout` and `stderr` are our ends as file descriptors, `None` where there is no pipe (any more).
    """

    def __init__(self, tree: OwnTree, cookie: str, pipes: tuple[int | None, int | None, int | None]) -> None:
        self.stdin, self.stdout, self.stderr = pipes
        self._tree = tree
        self._cookie = cookie
        self._owner = os.getpid()
        self._closed = False

    @property
    def pid(self) -> int:
        """The leader's process number; its own until the tree is gone."""
        return self._tree.pid

    @property
    def pgid(self) -> int:
        """The leader's process group, which is also its session."""
        return self._tree.pid

    @property
    def gone(self) -> bool:
        """Whether the whole tree has ended and the leader's number was given back."""
        return self._tree.gone

    def poll(self) -> int | None:
        """The leader's exit code as `exit_code` gives it, `None` while it runs."""
        return self._tree.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the leader's end and return its exit code. What it left behind lives until `close`.

        Raises:
            TimeoutError: it still runs after `timeout` seconds.
        """
        code = self._tree.wait(timeout)
        if code is None:
            raise TimeoutError(f"process {self.pid} still runs after {timeout} seconds")
        return code

    def terminate_tree(self, grace: float = GRACE_SECONDS) -> int:
        """End the tree: SIGTERM to the group, `grace` seconds for all of it, SIGKILL to what is left.

        Takes at most `grace` + `KILL_SECONDS`, may be called again and from several threads, and after the end.
        Returns the leader's exit code.
        """
        if self._is_ours():
            self._tree.terminate(grace)
        return self._settle()

    def kill_tree(self) -> int:
        """End the tree at once by SIGKILL. Otherwise like `terminate_tree`."""
        if self._is_ours():
            self._tree.kill()
        return self._settle()

    def finish_if_clear(self, *, ended: bool = False) -> bool:
        """Give the leader back to the system if it is cheap to tell that it has ended and left nothing; never waits.

        Whoever knows that it has `ended`, by its pidfd, spares a question.
        """
        if self._is_ours() and self._tree.finish_if_clear(ended=ended):
            self._settle()
        return self._tree.gone

    def detach(self, name: PipeName) -> int | None:
        """Hand our end of a pipe over: the caller closes it from now on."""
        fd: int | None = getattr(self, name)
        setattr(self, name, None)
        return fd

    def close_pipe(self, name: PipeName) -> None:
        """Close our end of a pipe; the end of `stdin` is the end of the child's input. May be called again."""
        fd = self.detach(name)
        if fd is not None:
            os.close(fd)

    def close_pipes(self) -> None:
        """Close our ends of all pipes. May be called again."""
        if self.stdin is not None:
            self.close_pipe("stdin")
        if self.stdout is not None:
            self.close_pipe("stdout")
        if self.stderr is not None:
            self.close_pipe("stderr")

    def close(self) -> None:
        """Kill what is left of the tree, close our pipes, tell the watchdog. May be called again."""
        if self._closed:
            return
        self._closed = True
        if not self.gone and not self.finish_if_clear():
            self.kill_tree()
        self.close_pipes()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed:
            if self._is_ours():
                warnings.warn(f"process {self.pid} was never closed", ResourceWarning, source=self, stacklevel=2)
            self.close()

    def _is_ours(self) -> bool:
        """A process forked from this one has a copy of this object, but the tree is not its to end."""
        return os.getpid() == self._owner

    def _settle(self) -> int:
        if self._tree.gone:
            guard.release(self._cookie)
        code = self._tree.poll()
        return SIGNAL_EXIT + signal.SIGKILL if code is None else code


class StderrTail:
    """The last bytes of a stream, for messages about a program that failed; memory is bounded."""

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._dropped = False

    def feed(self, data: bytes) -> None:
        """Add bytes, dropping the oldest."""
        self._kept += data[-self._limit :]
        surplus = len(self._kept) - self._limit
        self._dropped = self._dropped or surplus > 0 or len(data) > self._limit
        if surplus > 0:
            del self._kept[:surplus]

    def text(self) -> str:
        """What is kept, as text without the white space around it; `...` stands for what was dropped.

        The rest of a word whose beginning is lost is left out: it may be the half of a secret that nobody recognises.
        """
        text = self._kept.decode("utf-8", "replace")
        if not self._dropped:
            return text.strip()
        _, *rest = f"?{text}".split(None, 1)
        return f"...{''.join(rest).strip()}"


def spawn(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Input = "null",
    stdout: Input = "pipe",
    stderr: Output = "pipe",
) -> Child:
    """Start a program as the leader of a tree of its own.

    A bare program name is looked up in the `PATH` of `env` (ours unless given), a relative path from `cwd`.

    Raises:
        SpawnError: it could not be started; `reason` says why.
    """
    if not argv or not argv[0]:
        raise SpawnError("no program was named", "give at least the program's name", "bad-text")
    if not _exit_statuses.are_kept:
        _exit_statuses.keep()
    cookie = new_cookie()
    pipes = _Pipes()
    try:
        theirs = (pipes.open(stdin, is_input=True), pipes.open(stdout), pipes.open(stderr))
        guard.announce(cookie)
    except OSError as error:
        pipes.close_all()
        raise unprepared(error) from error
    begun = time.monotonic()
    try:
        pid = _start(argv, theirs, cwd, _marked(env, cookie))
    except Exception as error:
        guard.release(cookie)
        pipes.close_all()
        if isinstance(error, OSError | ValueError):
            raise explain(error, argv, cwd, env) from error
        raise
    pipes.close_theirs()
    guard.confirm(cookie, pid)
    return Child(OwnTree(pid, cookie, begun), cookie, (pipes.ours[0], pipes.ours[1], pipes.ours[2]))


def child_env(
    base: Mapping[str, str] | None = None,
    extra: Mapping[str, str] | None = None,
    drop_prefixes: Sequence[str] = (),
) -> dict[str, str]:
    """An environment for a child: `base` (ours unless given) without the names that begin so, and then `extra`."""
    prefixes = tuple(drop_prefixes)
    source = os.environ if base is None else base
    kept = {name: value for name, value in source.items() if not name.startswith(prefixes)}
    return kept | dict(extra or {})


def _start(argv: Sequence[str], files: Sequence[int | None], cwd: str | None, env: Mapping[str, str]) -> int:
    """The process number of the program, which runs. Nobody else waits for it."""
    process = _Leader(
        argv,
        executable=None if os.sep in argv[0] else program_file(argv[0], env),
        stdin=files[0],
        stdout=files[1],
        stderr=files[2],
        cwd=cwd,
        env=env,
        start_new_session=True,
        close_fds=True,
    )
    # Else it would complain that nobody has waited for it.
    process.returncode = 0
    return process.pid


class _Leader(subprocess.Popen[bytes]):
    """The guard knows its number as soon as it has one.

    Until `Popen` is done, which lets other threads run in between, those that are ending trees of their own would take
    it for a member that somebody left behind, and look at it. Where dozens of trees begin and end, that was a quarter
    of all the work.
    """

    _number: int | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        try:
            super().__init__(*args, **options)
        except BaseException:
            if self._number is not None:
                guard.give_up(self._number)
            raise

    @property
    def pid(self) -> int:
        if self._number is None:
            raise AttributeError("it was not started")
        return self._number

    @pid.setter
    def pid(self, number: int | None) -> None:
        self._number = number
        if number is not None:
            guard.expect(number)


class _Pipes:
    """The files of one spawn, ours and theirs, until they have found their owners."""

    def __init__(self) -> None:
        self.ours: list[int | None] = []
        self._theirs: list[int] = []

    def open(self, kind: Output, *, is_input: bool = False) -> int | None:
        """What the child gets as its next standard file; `None`: our standard error."""
        if kind == "pipe":
            read, write = make_pipe()
            ours, theirs = (write, read) if is_input else (read, write)
        elif kind == "inherit" and _is_open(_STDERR_FD):
            self.ours.append(None)
            return None
        else:
            # Not `subprocess.DEVNULL`, which takes twice as long.
            ours, theirs = None, open_null()
        self.ours.append(ours)
        self._theirs.append(theirs)
        return theirs

    def close_theirs(self) -> None:
        while self._theirs:
            os.close(self._theirs.pop())

    def close_all(self) -> None:
        self.close_theirs()
        for fd in self.ours:
            if fd is not None:
                os.close(fd)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _marked(env: Mapping[str, str] | None, cookie: str) -> dict[str, str]:
    """The child's environment with its cookie behind those of the trees that we ourselves are in."""
    mark = f"{_OUTER_TREES}{COOKIE_SEPARATOR}{cookie}" if _OUTER_TREES else cookie
    return {**(os.environ if env is None else env), TREE_VARIABLE: mark}


class _ExitStatuses:
    """A host may have started us with SIGCHLD ignored, which throws the exit status of every child away."""

    def __init__(self) -> None:
        self.are_kept = False

    def keep(self) -> None:
        """See to it, once: only the main thread can, and what is done about the signal later is done on purpose."""
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.are_kept = True


_exit_statuses = _ExitStatuses()
