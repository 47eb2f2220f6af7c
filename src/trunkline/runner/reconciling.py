"""Writes whose answer was lost: looked for on the network, and never sent again by themselves.

A write is noted before it is sent and struck out when its fate is known, so that neither a lost answer nor a crash
leaves one behind unnoticed. Before the next decision each is looked for. What is not there cannot come any more once
its signature is too old for the network; only then it counts as not written.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trunkline.runner.contract import Action
from trunkline.runner.inbox import Inbox
from trunkline.runner.state import AgentState, Kept
from trunkline.wires.sns.drive import Sns, SnsError
from trunkline.wires.sns.messages import WINDOW_MS

#: How far the network's clock may be from ours.
SKEW_SECONDS = 60.0
#: After this long a write that is not there will not be any more.
LATE_SECONDS = WINDOW_MS / 1000 + SKEW_SECONDS
#: A write that cannot be looked for any longer than this is given up.
GIVE_UP_SECONDS = 24 * 60 * 60
#: Lookups in one cycle: each is an exchange with the network.
MAX_LOOKUPS = 10
#: Comments that are looked through: all that a network gives at once.
MAX_COMMENTS = 200

_NOT_FOUND = 404
_LOST = "It did not arrive. If it still matters, decide on it again."
_GIVEN_UP = "It could not be found out whether it arrived."


class Writes:
    """The writes of one agent that are on their way."""

    def __init__(self, state: AgentState, sns: Sns, inbox: Inbox) -> None:
        self._state = state
        self._sns = sns
        self._inbox = inbox
        self._arrived: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def arrived(self, action: Action) -> dict[str, Any] | None:
        """What the very same write came to, if this cycle found out that it had arrived after all.

        The agent that decides on it again may not have understood that: it would stand there twice.
        """
        told = action.told()
        return next((found for written, found in self._arrived if written == told), None)

    def is_open(self, action: Action) -> bool:
        """Whether the very same write was sent, and its fate is not known."""
        told = action.told()
        return any(write.data == told for write in self._state.open_writes())

    def begin(self, action: Action) -> int:
        """It is about to be sent."""
        return self._state.begin_write(action.told())

    def end(self, key: int) -> None:
        """Its fate is known."""
        self._state.end_write(key)

    async def reconcile(self, handle: str, communities: list[Mapping[str, Any]]) -> None:
        """Look for those whose fate is not known, and tell the agent of each that is found out."""
        self._arrived.clear()
        for write in self._state.open_writes()[:MAX_LOOKUPS]:
            age = time.time() - write.at
            try:
                found = await self._find(write, handle, communities)
            except SnsError as error:
                if error.status != _NOT_FOUND:
                    if age > GIVE_UP_SECONDS:
                        self._settle(write, {"ok": False, "error": _GIVEN_UP})
                    continue
                found = None
            if found is not None:
                self._arrived.append((write.data, found))
                self._settle(write, {"ok": True, **found})
            elif age > LATE_SECONDS:
                self._settle(write, {"ok": False, "error": _LOST})

    def _settle(self, write: Kept, result: dict[str, Any]) -> None:
        action = write.data
        names = ("action", "communitySlug", "threadId", "title", "status")
        told = {name: action[name] for name in names if name in action}
        self._inbox.tell({"type": "write_feedback", **told, "result": result}, [str(action.get("action"))])
        self._state.end_write(write.key)

    async def _find(self, write: Kept, handle: str, communities: list[Mapping[str, Any]]) -> dict[str, Any] | None:
        action = write.data
        since = write.at - SKEW_SECONDS
        match action.get("action"):
            case "create_thread":
                threads = [
                    thread
                    for community in communities
                    if community.get("slug") == action.get("communitySlug")
                    for thread in _objects(community.get("threads"))
                    if _same(thread.get("title"), action.get("title"))
                ]
                return _matching(threads, "threadId", action, handle, since)
            case "comment":
                comments = await self._comments(str(action["threadId"]))
                return _matching(comments, "commentId", action, handle, since)
        thread = (await self._sns.thread(str(action["threadId"]))).get("thread")
        return {"status": action.get("status")} if _status(thread) == action.get("status") else None

    async def _comments(self, thread_id: str) -> list[Mapping[str, Any]]:
        try:
            found = await self._sns.thread_comments(thread_id, MAX_COMMENTS)
        except SnsError as error:
            if error.status is None:
                raise
            # A network without that route shows the thread to everybody.
            found = await self._sns.thread(thread_id)
        return _objects(found.get("comments"))


def _matching(
    posts: list[Mapping[str, Any]], name: str, action: Mapping[str, Any], handle: str, since: float
) -> dict[str, Any] | None:
    for post in posts:
        written = _moment(post.get("createdAt"))
        is_ours = post.get("author") == handle and (written is None or written >= since)
        if is_ours and _same(post.get("body"), action.get("body")):
            return {name: post.get("id")}
    return None


def _same(one: Any, other: Any) -> bool:
    """Networks take white space off both ends."""
    return isinstance(one, str) and isinstance(other, str) and one.strip() == other.strip()


def _status(thread: Any) -> str | None:
    if not isinstance(thread, Mapping):
        return None
    if thread.get("isResolved"):
        return "resolved"
    return "rejected" if thread.get("isRejected") else "pending"


def _moment(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
