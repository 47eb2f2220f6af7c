"""A real PostgreSQL server in a directory of its own, reached through a socket in it, and nobody else's business.

The programs are those on the `PATH`, or those of Debian's package, which are not on it. PostgreSQL refuses to run as
root: then it runs as `postgres`, the user of that package, or as `nobody`.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

#: On a busy machine making the files takes a few seconds, and so does the first start.
START_SECONDS = 60
#: A fast stop ends all connections and writes a checkpoint.
STOP_SECONDS = 20

_LOOK_SECONDS = 0.02
_USERS = ("postgres", "nobody")
#: Nothing here has to outlive the machine.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
}


class Postgres:
    """A server that runs."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self._programs = programs
        self.directory = directory
        self._child: subprocess.Popen[bytes] | None = None

    def url(self, database: str) -> str:
        """The URL of one of its databases."""
        return f"postgresql:///{database}?host={self.directory}&user=postgres"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new, empty database, until the end of the block."""
        name = f"t{uuid4().hex[:16]}"
        self.run(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.run(f"DROP DATABASE {name} WITH (FORCE)")

    def run(self, sql: str) -> None:
        """Run one statement, outside of a transaction."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10) as connection:
            connection.execute(sql.encode())

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        log = self.directory / "log"
        command = [str(self._programs / "postgres"), "-D", str(self.directory / "data"), "-k", str(self.directory)]
        command += [*settings, "--logging_collector=on", f"--log_directory={self.directory}", "--log_filename=log"]
        # Not by `trunkline.base.process`: some tests end its watchdog, and with it all that it watches.
        self._child = subprocess.Popen(
            [*_as_other(), *command],
            cwd=self.directory,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _wait_for(self, self._child, log)

    def stop(self) -> None:
        """End it and all its connections. May be called again."""
        child, self._child = self._child, None
        if child is None:
            return
        # Not SIGTERM, which waits for the clients to leave.
        child.send_signal(signal.SIGINT)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def programs() -> Path | None:
    """Where PostgreSQL's programs are, the newest if there are several; None if there are none."""
    found = shutil.which("initdb")
    if found and shutil.which("postgres"):
        return Path(found).resolve().parent
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    return max(versions, key=lambda path: [int(number) for number in re.findall(r"\d+", str(path))], default=None)


def available() -> bool:
    """Whether a server can be started here."""
    try:
        _as_other()
    except LookupError:
        return False
    return programs() is not None


@contextmanager
def server() -> Iterator[Postgres]:
    """A server with nothing in it, until the end of the block."""
    found = programs()
    if found is None:
        raise LookupError("PostgreSQL is not installed")
    # Not below a test's own directory: that is closed to other users, and a socket's path must be short.
    directory = Path(tempfile.mkdtemp(prefix="trunkline-pg-"))
    postgres = Postgres(found, directory)
    try:
        if os.geteuid() == 0:
            user = _other_user()
            os.chown(directory, user.pw_uid, user.pw_gid)
        _make(found, directory)
        postgres.start()
        yield postgres
    finally:
        try:
            postgres.stop()
        finally:
            shutil.rmtree(directory)


_shared: list[tuple[Postgres, ExitStack]] = []
_users = 0


@contextmanager
def shared_server() -> Iterator[Postgres]:
    """The one server of this process, for all who ask for one at the same time."""
    # pytest takes a fixture for another one in each folder that imports it, and each would start a server of its own.
    global _users
    if not _shared:
        with ExitStack() as stack:
            found = stack.enter_context(server())
            _shared.append((found, stack.pop_all()))
    _users += 1
    try:
        yield _shared[0][0]
    finally:
        _users -= 1
        if not _users:
            _shared.pop()[1].close()


def _make(programs: Path, directory: Path) -> None:
    command = [str(programs / "initdb"), "-D", str(directory / "data"), "-U", "postgres", "--auth=trust"]
    command += ["--encoding=UTF8", "--locale=C", "--no-sync"]
    done = subprocess.run(
        [*_as_other(), *command], cwd=directory, env=_environment(), capture_output=True, text=True, check=False,
        timeout=START_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _as_other() -> list[str]:
    """What goes before a command so that it is not run by root."""
    if os.geteuid() != 0:
        return []
    user = _other_user()
    tool = shutil.which("setpriv")
    if tool is None:
        raise LookupError("`setpriv` is not installed")
    return [tool, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _other_user() -> pwd.struct_passwd:
    names = {user.pw_name for user in pwd.getpwall()}
    for name in _USERS:
        if name in names:
            return pwd.getpwnam(name)
    raise LookupError("there is no user but root")


def _environment() -> dict[str, str]:
    # Variables such as PGDATA would be obeyed, and messages be translated.
    return {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))} | {"LC_ALL": "C"}


def _wait_for(postgres: Postgres, child: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + START_SECONDS
    while child.poll() is None and time.monotonic() < deadline:
        try:
            postgres.run("SELECT 1")
        except psycopg.OperationalError:
            time.sleep(_LOOK_SECONDS)
            continue
        return
    said = log.read_text()[-2000:] if log.exists() else ""
    postgres.stop()
    raise AssertionError(f"PostgreSQL did not start: {said}")
