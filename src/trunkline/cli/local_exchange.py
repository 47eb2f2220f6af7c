"""The exchange that runs here, for commands: where its home is, and what it says over the socket there.

Whoever can open that socket is its user, and may do everything. No event loop: commands are over soon.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from trunkline.base import exchange_home, jsontext, local_socket, paths
from trunkline.base.config_file import ConfigFileError
from trunkline.base.exchange_home import API_SOCKET
from trunkline.core.faults import AgentFailed, ConfigError, SessionNotFound

#: An exchange that does not let us in by then is as good as gone.
CONNECT_SECONDS = 0.8
#: How long an answer may take: agents may have to be started for it.
ANSWER_SECONDS = 60.0
#: Of so many sessions, the newest, the beginning of an id is enough: as many as the API lists at once.
LOOKED_THROUGH = 1000
#: What is told where a question cannot be asked: at a prompt that cannot be left, for one.
WAITS = "The agent waits for an answer: `trunkline approvals list` shows what for."
#: How often whoever waits looks whether the exchange is stopped: so that it is told within a second.
LOOK_SECONDS = 0.5


def home(directory: str = ".", environ: Mapping[str, str] = os.environ) -> str:
    """The home of the exchange: as the file in a directory says, else the usual one.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return exchange_home.find_home(directory, environ)
    except ConfigFileError as error:
        raise ConfigError(f"{error}.") from None


def connect(name: str, seconds: float = CONNECT_SECONDS) -> socket.socket:
    """A connection to one of the exchange's sockets.

    Raises:
        ConfigError: no exchange runs here, or it is stopped.
    """
    place = home()
    try:
        connection = local_socket.connected(place, name, seconds)
    except OSError:
        raise ConfigError(
            f"No exchange is running here: nothing answers in `{paths.homely(place)}`.",
            hint=_how_to_start(),
        ) from None
    try:
        check_runs(connection)
    except ConfigError:
        connection.close()
        raise
    return connection


def _how_to_start() -> str:
    """`trunkline up` alone would start the demonstration, not the exchange of the file that stands here."""
    if os.path.lexists(exchange_home.FILE):
        return f"Start it with `trunkline up --config {exchange_home.FILE}`."
    return "Start it with `trunkline up --config FILE`, or go to the directory of its `trunkline.toml`."


def check_runs(connection: socket.socket) -> None:
    """See whether the exchange at the other end runs. One that is busy does; nobody can tell it from one that hangs.

    Raises:
        ConfigError: it is stopped.
    """
    if (pid := local_socket.stopped_peer(connection)) is not None:
        raise ConfigError(
            f"The exchange is stopped, as process {pid}.", retryable=True, hint=f"`kill -CONT {pid}` lets it go on."
        )


class ExchangeRefused(ConfigError):
    """The exchange said no. `code` is the name of the reason, `body` all that it said."""

    def __init__(self, code: str, message: str, body: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.body = body


def request(method: str, path: str, body: Mapping[str, Any] | None = None, *, seconds: float = ANSWER_SECONDS) -> Any:
    """What the HTTP API answers, parsed. `seconds`: how long that may take.

    Raises:
        ConfigError: no exchange runs here.
        Refused: it said no.
        AgentFailed: it went away, or did not answer in time.
    """
    # Heavy, and only for this.
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection("localhost", timeout=seconds)
    connection.sock = connect(API_SOCKET)
    connection.sock.settimeout(seconds)
    try:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        connection.request(method, path, None if body is None else jsontext.dumps(dict(body)), headers)
        answer = connection.getresponse()
        status, data = answer.status, answer.read()
    except (OSError, HTTPException) as error:
        raise AgentFailed(f"The exchange went away before it had answered: {error}.", retryable=True) from None
    finally:
        connection.close()
    try:
        said = jsontext.loads(data) if data else None
    except ValueError:
        raise AgentFailed("The exchange gave an answer that is not JSON.") from None
    if status >= 400:
        why = said.get("error") if isinstance(said, dict) else None
        named = why if isinstance(why, dict) else {}
        message = str(named.get("message") or f"The exchange answered with the status {status}.")
        raise ExchangeRefused(str(named.get("code") or status), message, said if isinstance(said, dict) else {})
    return said


def of_session(method: str, session: str, what: str, body: Mapping[str, Any] | None = None) -> Any:
    """What the API answers about a session: that of the id, the only one whose id begins so, or, for `latest`, the
    newest.

    Raises:
        ConfigError: no exchange runs here, or there is no such session, or there are several.
        AgentFailed: it went away, or did not answer in time.
    """
    from urllib.parse import quote

    try:
        return request(method, f"/api/sessions/{quote(session, safe='')}/{what}", body)
    except ExchangeRefused as refused:
        if refused.code != SessionNotFound.kind:
            raise
        known = [str(each["id"]) for each in request("GET", f"/api/sessions?limit={LOOKED_THROUGH}")["sessions"]]
        found = known[:1] if session == "latest" else [id for id in known if id.startswith(session)]
        if len(found) > 1:
            told = f"The ids of {len(found)} sessions begin with `{session}`."
            raise ConfigError(told, hint="Give more of it.") from None
        if not found:
            raise
        return request(method, f"/api/sessions/{quote(found[0], safe='')}/{what}", body)
