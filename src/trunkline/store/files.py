"""Sessions as files: one append-only log for each, in one directory, for one process at a time.

The file is locked as long as the log is open. A crash can only cut its end short, and `open` then cuts it back to the
last whole record. What it cuts off is kept beside the log as `NAME.log.damaged-N` if it holds a line feed: then it is
more than the one record that was being written when the process died. Damage further up is left alone, and reads as
a `Gap`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from trunkline.base import paths
from trunkline.core.faults import ConfigError, SessionDamaged, SessionExists, SessionNotFound
from trunkline.core.ids import new_id
from trunkline.core.log import SessionInfo
from trunkline.store import locks, logfile, names, view
from trunkline.store.filelog import FileLog
from trunkline.store.glance import SessionGlance, glance
from trunkline.store.logfile import CHUNK, Header, NotALog
from trunkline.store.view import SessionView

_ENDING, _FILES = ".log", ".files"
#: What may end the name of a file that a client brought.
_ENDINGS = re.compile(r"\.[A-Za-z0-9]{1,10}")
#: Bytes of all files that are brought to a session: whoever may talk must not fill the disk by that.
MOST_BROUGHT = 512 * 1024 * 1024
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC


class FileStore:
    """A `SessionStore` in a directory, which is created with the first session."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = os.path.abspath(os.fspath(directory))

    def create(
        self, session: str, workspace: str, agent: str | None = None, given: Mapping[str, str] | None = None
    ) -> FileLog:
        """A new session. A file of that name that is no log, after a crash or damage, is set aside.

        `agent` is who answers in it, for those who want to know when they open it again; `given` the options that it
        was begun with, as they would be given again.

        Raises:
            SessionExists: the id is taken.
            SessionHeld: another process has it open.
            ConfigError: the id is empty or absurdly long, or the file cannot be made.
        """
        path = self._path(session)
        about = Header(session, workspace, round(time.time(), 6), agent=agent, given=given or None)
        header = logfile.encode_header(about)
        if len(header) > logfile.LONGEST_HEADER:
            raise ConfigError(f"A session id of {len(session)} characters is too long.", hint="Choose a shorter one.")
        with _explained(path):
            made = paths.ensure_dir(self._directory)
            fd = _create(path, session, header)
        made_in = (self._directory, *map(os.path.dirname, made))
        return FileLog(fd, path, session, about, start=len(header), size=len(header), last=0, made=made_in)

    def open(self, session: str) -> FileLog:
        """An existing session. Makes nothing, except that a damaged end is cut off.

        Raises:
            SessionNotFound: there is none of that id.
            SessionHeld: another process has it open.
            SessionDamaged: it does not begin like a log that this version can read.
            ConfigError: the id is empty, or the file cannot be opened.
        """
        path = self._path(session)
        with _explained(path):
            try:
                fd = locks.take(path, session, _FLAGS)
            except FileNotFoundError:
                raise _not_found(session) from None
            try:
                header, start = _checked_header(fd, session)
                size, last = _cut_damaged_end(fd, path, start)
            except BaseException:
                os.close(fd)
                raise
        log = FileLog(fd, path, session, header, start=start, size=size, last=last)
        log.recover()
        return log

    def peek(self, session: str) -> SessionView:
        """An existing session, only to be looked at, also while another process is writing it.

        Nothing is locked and nothing is repaired. The records are those that there are when the first is asked for.

        Raises:
            SessionNotFound: there is none of that id.
            SessionDamaged: its log does not begin like one, or is another session's.
            ConfigError: the id is empty, or the file cannot be opened.
        """
        path = self._path(session)
        with _explained(path):
            try:
                found = view.view(path)
            except FileNotFoundError:
                raise _not_found(session) from None
            except NotALog as error:
                raise SessionDamaged(f"The log `{path}` cannot be read: {error}.") from None
        _check_id(found.info.id, session)
        return found

    def glance(self, session: str) -> SessionGlance:
        """What it is about, for a list; nothing, if it cannot be read."""
        return glance(self._path(session))

    def remove(self, session: str) -> None:
        """Forget a session for good.

        Raises:
            SessionNotFound: there is none of that id.
            SessionHeld: another process has it open.
            ConfigError: it cannot be opened.
            OSError: it cannot be removed.
        """
        held = self.open(session)
        try:
            self.forget_files(session)
            os.unlink(self._path(session))
        finally:
            held.close()

    def forget_log(self, session: str) -> None:
        """Remove a session's log, and keep what was brought to it: the log is somewhere else, too.

        Raises:
            SessionNotFound: there is none of that id.
            SessionHeld: another process has it open.
        """
        held = self.open(session)
        try:
            os.unlink(self._path(session))
        finally:
            held.close()

    def keep_file(self, session: str, name: str, data: bytes) -> str:
        """Keep a file that was brought to a session, for as long as that is; gives its path.

        `name` says what it is: of it, the ending stays.

        Raises:
            ConfigError: it cannot be written, or there would be too much of them.
        """
        directory = self.files_of(session)
        ending = os.path.splitext(name)[1]
        path = os.path.join(directory, new_id() + (ending if _ENDINGS.fullmatch(ending) else ""))
        with _explained(path):
            paths.ensure_dir(directory)
            if len(data) + sum(entry.stat().st_size for entry in os.scandir(directory)) > MOST_BROUGHT:
                most = MOST_BROUGHT // (1024 * 1024)
                hint = "Begin another session, or name a file of this machine instead."
                raise ConfigError(
                    f"The files that were brought to this session may have {most} MiB at most.", hint=hint
                )
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, locks.PRIVATE_FILE)
            with open(fd, "wb") as file:
                file.write(data)
        return path

    def forget_files(self, session: str) -> None:
        """Remove what was brought to a session, as far as that can be."""
        import shutil  # hardly ever needed, and an agent's start is short

        shutil.rmtree(self.files_of(session), ignore_errors=True)

    def files_of(self, session: str) -> str:
        """The directory of the files that were brought to a session."""
        return os.path.join(self._directory, names.file_name(session) + _FILES)

    def latest(self, workspace: str, agent: str | None = None) -> str:
        """The session used last in a directory; with `agent`, that agent's, unless there are only others'."""
        found: SessionInfo | None = None
        newest = 0.0
        for updated, path in self._newest_first():
            if found is not None and updated < newest:
                break
            info = _info(path)
            # Coarse clocks give many files one time; the session that began last is the better guess then.
            if info is None or info.workspace != workspace or (agent is not None and info.agent not in (None, agent)):
                continue
            if found is None or info.created > found.created:
                found, newest = info, updated
        if found is None and agent is not None:
            return self.latest(workspace)
        if found is None:
            raise SessionNotFound(f"No sessions found in `{workspace}`")
        return found.id

    def list(self) -> list[SessionInfo]:
        """All sessions, the one used last first. Files that are no logs are left out."""
        found = (_info(path) for _, path in self._newest_first())
        return sorted((info for info in found if info), key=lambda info: (info.updated, info.created), reverse=True)

    def _newest_first(self) -> Iterator[tuple[float, str]]:
        with _explained(self._directory):
            try:
                entries = os.scandir(self._directory)
            except FileNotFoundError:
                return iter(())
            with entries:
                logs = [(_time_of(entry), entry.path) for entry in entries if entry.name.endswith(_ENDING)]
        return iter(sorted(((updated, path) for updated, path in logs if updated is not None), reverse=True))

    def _path(self, session: str) -> str:
        return os.path.join(self._directory, names.file_name(session) + _ENDING)


def _create(path: str, session: str, header: bytes) -> int:
    """Make a log with its header, locked."""
    while True:
        try:
            fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, locks.PRIVATE_FILE)
        except FileExistsError:
            _make_room(path, session)
            continue
        try:
            # Whoever has found the new file before it was locked sees an empty one, and lets go of it at once.
            locks.wait(fd)
            if locks.is_at(fd, path):
                _write_header(fd, path, header)
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _write_header(fd: int, path: str, header: bytes) -> None:
    written = 0
    try:
        while written < len(header):
            written += os.write(fd, header[written:])
    except BaseException:
        os.unlink(path)
        raise


def _make_room(path: str, session: str) -> None:
    """See whether the file that is there is a session; if not, set it aside."""
    try:
        fd = locks.take(path, session, _FLAGS)
    except FileNotFoundError:
        return
    try:
        logfile.read_header(fd)
    except NotALog:
        aside, aside_path = _new_beside(path)
        os.close(aside)
        os.replace(path, aside_path)
    else:
        raise SessionExists(f"Session ID '{names.shown(session)}' already exists")
    finally:
        os.close(fd)


def _checked_header(fd: int, session: str) -> tuple[Header, int]:
    try:
        header, start = logfile.read_header(fd)
    except NotALog as error:
        raise SessionDamaged(
            f"The log of session '{names.shown(session)}' cannot be read: {error}.",
            hint="A new session of that id sets the file aside.",
        ) from None
    _check_id(header.session, session)
    return header, start


def _check_id(found: str, session: str) -> None:
    if names.key(found) != names.key(session):
        raise SessionDamaged(
            f"The log of session '{names.shown(session)}' cannot be read: it holds session '{names.shown(found)}'.",
            hint="Give the file its old name, or choose another id.",
        )


def _not_found(session: str) -> SessionNotFound:
    return SessionNotFound(f"Session '{names.shown(session)}' not found")


def _cut_damaged_end(fd: int, path: str, start: int) -> tuple[int, int]:
    """Cut off what follows the last whole record; gives the file's size then, and that record's number."""
    size = os.fstat(fd).st_size
    end, last = logfile.last_record(lambda length, offset: os.pread(fd, length, offset), start, size)
    if end < size:
        _keep(fd, path, end, size)
        os.ftruncate(fd, end)
    return end, last


def _keep(fd: int, path: str, start: int, end: int) -> None:
    """Copy a part of a damaged log to a file of its own, unless it is one record cut short."""
    offsets = range(start, end, CHUNK)
    if not any(b"\n" in os.pread(fd, CHUNK, offset) for offset in offsets):
        return
    aside, _ = _new_beside(path)
    with open(aside, "wb") as copy:
        for offset in offsets:
            copy.write(os.pread(fd, min(CHUNK, end - offset), offset))
        copy.flush()
        os.fsync(aside)


def _new_beside(path: str) -> tuple[int, str]:
    number = 1
    while True:
        name = f"{path}.damaged-{number}"
        try:
            return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, locks.PRIVATE_FILE), name
        except FileExistsError:
            number += 1


def _time_of(entry: os.DirEntry[str]) -> float | None:
    """When a file was written last; `None` if it is no file, or is not there any more."""
    try:
        return entry.stat().st_mtime if entry.is_file() else None
    except OSError:
        return None


def _info(path: str) -> SessionInfo | None:
    try:
        return view.info(path)
    except (NotALog, OSError):
        return None


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn what the system says into something a user can act on."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"The session log `{path}` cannot be opened: {error.strerror}.",
            hint=paths.elsewhere(path) or "Check the permissions and the free space there.",
        ) from error
