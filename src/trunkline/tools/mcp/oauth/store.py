"""What logins to MCP servers have brought: one record for each server, by its name and its URL.

The secrets of a record are in the system's keyring. Where there is none, they are in the record's own file, which is
for its user alone, as all of them are. A record is for one name and one URL: a server of the same name somewhere else,
which a workspace or a host may bring, has no use of it.

All of it may wait for a disk or for a keyring: call it in a thread.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from trunkline.base import jsontext, keyring, paths
from trunkline.base.keyring import FindKeyring, Keyring
from trunkline.base.regular import read_regular
from trunkline.base.replacing import PRIVATE_FILE, replace_private
from trunkline.base.values import Value
from trunkline.core.agent import AddMcpServer
from trunkline.tools.mcp.connection import McpError
from trunkline.tools.mcp.transport import place

#: Under which name the entries are found in the system's own tools.
SERVICE = "trunkline-mcp"
#: Tokens may be a few thousand characters long. What is far longer is none of ours.
MOST_BYTES = 1 << 20

_ENDING = ".json"
_TABLES = ("tokens", "client", "metadata")

T = TypeVar("T")


class KeyringSilent(McpError):
    """The keyring does not answer: somebody has to unlock it."""


class Login(Value):
    """What one login has brought. The tables are as the SDK writes them."""

    server: str
    url: str
    tokens: Mapping[str, Any]
    client: Mapping[str, Any]
    """Who we are to the authorization server."""
    metadata: Mapping[str, Any]
    """Where that is: what is needed of what it says of itself."""
    resource: Mapping[str, Any] | None = None
    """What the server says of itself."""
    expires_at: float | None = None
    """When the access token is over, in seconds since 1970; None: nobody knows."""

    def __repr__(self) -> str:
        return f"Login(server={self.server!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        found = (self.tokens.get("access_token"), self.tokens.get("refresh_token"), self.client.get("client_secret"))
        return tuple(secret for secret in found if isinstance(secret, str) and secret)


class KeptLogin(Value):
    """What can be said of a login without its secrets."""

    server: str
    place: str
    kept: Literal["keyring", "file"]
    expires_at: float | None = None
    renewable: bool = False
    """Whether it can go on without anybody logging in."""
    key: str = ""

    def over(self, now: float) -> bool:
        """Whether it is of no use any more."""
        return not self.renewable and self.expires_at is not None and self.expires_at <= now


class LoginStore:
    """The records of this user."""

    def __init__(self, environ: Mapping[str, str] = os.environ, find: FindKeyring | None = None) -> None:
        self._directory = os.path.join(paths.state_dir(environ), "mcp-logins")
        self._find = find

    def kept(self, spec: AddMcpServer) -> KeptLogin | None:
        """What is known of the login to a server; does not ask the keyring."""
        found = self._read(_key(spec))
        return None if found is None else _kept(found, _key(spec))

    def load(self, spec: AddMcpServer) -> Login | None:
        """The login to a server; see `read`."""
        return self.read(_key(spec))

    def read(self, key: str) -> Login | None:
        """A login; None: there is none that can be read.

        Raises:
            KeyringSilent: the keyring does not answer.
        """
        found = self._read(key)
        if found is None:
            return None
        if found.get("kept") == "keyring":
            text = self._asked(lambda ring: ring.get_password(SERVICE, key), None)
            found = _parsed(text.encode()) if text else None
        else:
            found = found.get("login")
        return _login(found)

    def save(self, login: Login) -> KeptLogin:
        """Keep it, in place of an earlier one.

        Raises:
            OSError: it cannot be written.
        """
        with self._alone():
            return self._save(login)

    def replace(self, old: Login, new: Login) -> bool:
        """Keep a login in place of the one that it came of; whether that was still there.

        Raises:
            KeyringSilent: the keyring does not answer.
            OSError: it cannot be written.
        """
        with self._alone():
            there = self.read(_key(old))
            if there is None or there.tokens != old.tokens:
                return False
            self._save(new)
            return True

    def _save(self, login: Login) -> KeptLogin:
        key = _key(login)
        secret = jsontext.dumps(_table(login)).decode()
        try:
            in_keyring = self._asked(lambda ring: _put(ring, key, secret), False)
        except KeyringSilent:
            in_keyring = False
        kept = KeptLogin(
            login.server,
            place(login.url),
            "keyring" if in_keyring else "file",
            login.expires_at,
            bool(login.tokens.get("refresh_token")),
            key,
        )
        record = {field: getattr(kept, field) for field in kept.__fields__ if field != "key"}
        self._write(key, record if in_keyring else {**record, "login": _table(login)})
        return kept

    def remove(self, key: str) -> None:
        """Forget a login.

        Raises:
            KeyringSilent: the keyring, which has its secrets, does not answer; nothing was removed.
            OSError: its file cannot be removed.
        """
        with self._alone():
            found = self._read(key)
            if found is not None and found.get("kept") == "keyring":
                self._asked(lambda ring: ring.delete_password(SERVICE, key), None)
            for path in (self._path(key), self._lock(key)):
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def forget(self, spec: AddMcpServer) -> None:
        """Forget the login to a server; see `remove`."""
        self.remove(_key(spec))

    def listed(self) -> list[KeptLogin]:
        """All of them."""
        try:
            names = sorted(os.listdir(self._directory))
        except OSError:
            return []
        keys = (name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))
        return [_kept(found, key) for key in keys if (found := self._read(key)) is not None]

    def begin_renewing(self, spec: AddMcpServer) -> int | None:
        """Be the one who renews a login: a refresh token may be good for once, and other processes have the same one.

        Returns:
            A file to close afterwards; None: somebody else renews it just now.

        Raises:
            OSError: the file cannot be made.
        """
        paths.ensure_dir(self._directory)
        handle = os.open(self._lock(_key(spec)), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return handle

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else changes a record meanwhile: a login that is renewed must not come back after it was removed."""
        paths.ensure_dir(self._directory)
        handle = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _asked(self, question: Callable[[Keyring], T], otherwise: T) -> T:
        try:
            return keyring.asked(question, otherwise, self._find)
        except TimeoutError:
            raise KeyringSilent from None

    def _path(self, key: str) -> str:
        return os.path.join(self._directory, f"{key}{_ENDING}")

    def _lock(self, key: str) -> str:
        return os.path.join(self._directory, f"{key}.lock")

    def _read(self, key: str) -> dict[str, Any] | None:
        try:
            return _parsed(read_regular(self._path(key), MOST_BYTES).data)
        except OSError:
            return None

    def _write(self, key: str, record: Mapping[str, Any]) -> None:
        paths.ensure_dir(self._directory)
        replace_private(self._path(key), jsontext.dumps(record))


def _key(login: AddMcpServer | Login) -> str:
    """The same for all spellings of a server's address, and another for another address."""
    name, url = (login.server if isinstance(login, Login) else login.name), login.url or ""
    parts = urlsplit(url)
    address = f"{place(url)}{parts.path or '/'}?{parts.query}"
    return hashlib.sha256(f"{name}\0{address}".encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _put(ring: Keyring, key: str, secret: str) -> bool:
    ring.set_password(SERVICE, key, secret)
    return True


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        found = jsontext.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _table(login: Login) -> dict[str, Any]:
    return {field: getattr(login, field) for field in login.__fields__}


def _login(found: Any) -> Login | None:
    if not isinstance(found, dict) or not all(isinstance(found.get(each), dict) for each in _TABLES):
        return None
    expires_at, resource = found.get("expires_at"), found.get("resource")
    return Login(
        str(found.get("server", "")),
        str(found.get("url", "")),
        found["tokens"],
        found["client"],
        found["metadata"],
        resource if isinstance(resource, dict) else None,
        expires_at if isinstance(expires_at, int | float) else None,
    )


def _kept(found: Mapping[str, Any], key: str) -> KeptLogin:
    expires_at = found.get("expires_at")
    return KeptLogin(
        str(found.get("server", "")),
        str(found.get("place", "")),
        "keyring" if found.get("kept") == "keyring" else "file",
        expires_at if isinstance(expires_at, int | float) else None,
        found.get("renewable") is True,
        key,
    )
