"""Sessions: begun, found, listed, removed; and what is said in them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_args

from trunkline.base.asgi_answers import answer
from trunkline.base.values import Value
from trunkline.base.vocabulary import MODES, Mode
from trunkline.core.events import Outcome, UserMessage
from trunkline.core.faults import ConfigError, SessionNotFound
from trunkline.core.ids import ID_RULE, can_be_id
from trunkline.core.keeper import LISTED, When
from trunkline.core.turns import State
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, FLAG, MOMENT, TEXT, array, maybe, obj
from trunkline.exchange.live_session import LiveSession
from trunkline.exchange.reach import check_command, check_reach
from trunkline.exchange.session_rows import LONGEST_TITLE, MOST_LISTED, FoundSession, SessionQuery, SessionRow

#: How turns end.
OUTCOMES: tuple[str, ...] = get_args(Outcome)
#: A session that is not at work: a log and a row.
ASLEEP = "asleep"


class NewSession(Value):
    """A session with an agent; with the id of one that exists, that one."""

    agent: str
    session_id: str | None = None
    workspace: str | None = None


class NewMessage(Value):
    """Something to answer. The same `msg_id` twice is one message."""

    text: str
    msg_id: str | None = None
    files: tuple[str, ...] = ()
    when: When = "queue"


class NewMode(Value):
    """How much is approved unasked."""

    mode: Mode


async def open_session(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/sessions`."""
    wanted = await call.body(NewSession)
    if wanted.session_id is not None:
        _check_id("session_id", wanted.session_id)
    entry = call.exchange.directory.find(wanted.agent)
    if wanted.workspace is not None:
        await _check_paths(call, "workspace", [wanted.workspace], entry.settings.workspace)
    live = await call.exchange.switchboard.open(
        wanted.agent, wanted.session_id, workspace=wanted.workspace, by=call.person.name
    )
    return {"id": live.id, "agent": live.agent}


async def list_sessions(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/sessions`."""
    return {"sessions": await found_sessions(call, call.number("limit", 1, MOST_LISTED) or LISTED)}


async def found_sessions(call: ApiCall, limit: int) -> list[Mapping[str, Any]]:
    """The sessions that a query asks for, newest first, as `GET /api/sessions` tells them.

    Raises:
        Refused: it asks for what cannot be.
        SessionNotFound: it asks for what is older than a session that is not there.
    """
    before = call.query("before")
    switchboard = call.exchange.switchboard
    if before is not None and await switchboard.row(before) is None:
        raise SessionNotFound(f"There is no session `{before[:80]}` here. Begin again without `before`.")
    outcome = call.query("outcome")
    check_outcome(outcome)
    wanted = SessionQuery(call.query("q") or "", call.query("agent"), call.query("by"), outcome)
    rows = await switchboard.session_rows.find(wanted, limit, before)
    await switchboard.awaited(row.id for row in rows)
    busy = await switchboard.busy()
    return [_listed(row, switchboard.live(row.id), busy) for row in rows]


async def show_session(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/sessions/{id}`."""
    switchboard = call.exchange.switchboard
    row, busy = await row_of(call), await switchboard.busy()
    accepted = await switchboard.messages.waiting(call.id)
    live = switchboard.live(call.id)
    queued = [] if live is None else [_waiting(live, each.message) for each in accepted if _waits(live, each.message)]
    return {**_members(row, live, busy), "queued": queued}


async def remove_session(call: ApiCall) -> Mapping[str, Any]:
    """`DELETE /api/sessions/{id}`."""
    await call.exchange.switchboard.remove(call.id)
    return {"id": call.id}


async def say(call: ApiCall) -> Any:
    """`POST /api/sessions/{id}/messages`."""
    wanted = await call.body(NewMessage)
    if wanted.msg_id is not None:
        _check_id("msg_id", wanted.msg_id)
    row = await row_of(call)
    await _check_paths(call, "files", wanted.files, row.workspace, call.exchange.switchboard.store.files_of(row.id))
    message = UserMessage(wanted.text, wanted.files, wanted.msg_id, call.person.name)
    # Attached: it is not let go of while the message is taken in.
    async with call.exchange.switchboard.attached(call.id) as live:
        check_command(call.person, live.session, message.text)
        turn = await call.exchange.switchboard.submit(live, message, wanted.when)
    return answer({"turn": turn}, 202)


async def stop(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/sessions/{id}/stop`."""
    await row_of(call)
    # One that is asleep is at rest already.
    live = call.exchange.switchboard.live(call.id)
    if live is None or live.session.status in (State.IDLE, State.CLOSED):
        return {"stopped": False}
    live.session.stop(call.person.name)
    return {"stopped": True}


async def set_mode(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/sessions/{id}/mode`."""
    wanted = await call.body(NewMode)
    async with call.exchange.switchboard.attached(call.id) as live:
        await live.set_mode(wanted.mode)
        return {"mode": wanted.mode}


def about(row: SessionRow) -> dict[str, Any]:
    """What is known of a session, whether it is awake or not."""
    return {
        "id": row.id,
        "agent": row.agent,
        "workspace": row.workspace,
        "by": row.by_person,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _members(row: SessionRow, live: LiveSession | None, busy: Collection[str]) -> Mapping[str, Any]:
    # Of a session that another node has awake, no more is known here than whether it works.
    asleep = State.RUNNING.value if row.id in busy else ASLEEP
    return {
        **about(row),
        "state": asleep if live is None else live.session.status.value,
        "turn": 0 if live is None else live.session.turn,
        "mode": None if live is None else live.session.mode,
        "clients": 0 if live is None else live.clients,
    }


def _waits(live: LiveSession, message: UserMessage) -> bool:
    """Whether it still does: the row of one that was withdrawn says so until its place has come."""
    return message.id is not None and live.session.waits(message.id)


def _waiting(live: LiveSession, message: UserMessage) -> Mapping[str, Any]:
    """A message that waits for its turn, as people see it."""
    return {"msg_id": message.id, "text": live.session.clean(message.text), "by": message.sender}


def _listed(row: FoundSession, live: LiveSession | None, busy: Collection[str]) -> Mapping[str, Any]:
    return {**_members(row, live, busy), "title": row.title or _first_words(live), "last_outcome": row.last_outcome}


def _first_words(live: LiveSession | None) -> str:
    """The beginning of the message that is being answered."""
    begun = None if live is None else live.session.state.open_turns.get(live.session.turn)
    return "" if live is None or begun is None else live.session.clean(begun.message.text[:LONGEST_TITLE])


async def row_of(call: ApiCall) -> SessionRow:
    """The session that the path names. After a start it has been woken, if something waits in it.

    Raises:
        SessionNotFound: there is none.
    """
    row = await call.exchange.switchboard.row(call.id)
    if row is None:
        raise SessionNotFound(f"There is no session `{call.id[:80]}` here.")
    await call.exchange.switchboard.awaited([row.id])
    return row


def check_outcome(outcome: str | None) -> None:
    """See that turns can end like this.

    Raises:
        Refused: they cannot.
    """
    if outcome is not None and outcome not in OUTCOMES:
        raise ApiRefused(400, f"`outcome` must be one of {', '.join(f'`{known}`' for known in OUTCOMES)}.")


def _check_id(name: str, id: str) -> None:
    """See that an id can be told on every wire."""
    if not can_be_id(id):
        raise ApiRefused(400, f"`{name}` must have {ID_RULE}.")


async def _check_paths(call: ApiCall, name: str, paths: Sequence[str], *places: str) -> None:
    """See that somebody with a token reaches no further than the agent was meant to.

    Raises:
        Refused: 400 if it is no path.
        Forbidden: it leads out of these places.
    """
    try:
        await check_reach(call.person, name, paths, *places, but=call.exchange.settings.home)
    except ConfigError as error:
        raise ApiRefused(400, str(error)) from None


_SESSION = obj(
    id=TEXT,
    agent=TEXT,
    workspace=TEXT,
    by=TEXT,
    created_at=MOMENT,
    updated_at=MOMENT,
    state={"enum": [ASLEEP, *(state.value for state in State)]},
    turn=COUNT,
    mode=maybe({"enum": list(MODES)}),
    clients=COUNT,
)
_LISTED = {
    **_SESSION,
    "required": [*_SESSION["required"], "title", "last_outcome"],
    "properties": {**_SESSION["properties"], "title": TEXT, "last_outcome": maybe(TEXT)},
}
_LIST_QUERY = {
    "q": TEXT,
    "agent": TEXT,
    "by": TEXT,
    "outcome": {"enum": list(OUTCOMES)},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LISTED},
    "before": TEXT,
}

ENDPOINTS = (
    ApiEndpoint(
        "POST", "/api/sessions", open_session, "talker", "Start a session, or continue one", NewSession,
        answer=obj(id=TEXT, agent=TEXT), statuses=(404, 409, 422, 500, 503),
    ),
    ApiEndpoint(
        "GET", "/api/sessions", list_sessions, "observer", "The sessions, newest first", query=_LIST_QUERY,
        answer=obj(sessions=array(_LISTED)), statuses=(404,),
    ),
    ApiEndpoint(
        "GET", "/api/sessions/{id}", show_session, "observer", "One session", answer=_SESSION, statuses=(404,),
    ),
    ApiEndpoint(
        "DELETE", "/api/sessions/{id}", remove_session, "admin", "End a session, and forget it", answer=obj(id=TEXT),
        statuses=(404,),
    ),
    ApiEndpoint(
        "POST", "/api/sessions/{id}/messages", say, "talker", "Say something", NewMessage, answer=obj(turn=COUNT),
        status=202, statuses=(404, 409, 429, 500, 503),
    ),
    ApiEndpoint(
        "POST", "/api/sessions/{id}/stop", stop, "talker", "Stop the turn in progress and drop the queue",
        answer=obj(stopped=FLAG), statuses=(404,),
    ),
    ApiEndpoint(
        "POST", "/api/sessions/{id}/mode", set_mode, "admin", "Change how much is approved unasked", NewMode,
        answer=obj(mode={"enum": list(MODES)}), statuses=(404, 500, 503),
    ),
)  # fmt: skip
