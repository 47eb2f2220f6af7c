"""Writes whose answer was lost: looked for on the network, and never sent again by themselves.

A write is noted before it is sent and struck out when its fate is known, so that neither a lost answer nor a crash
leaves one behind unnoticed. Before the next decision each is looked for. What is not there cannot come any more once
its signature is too old for the network; only then it counts as not written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from trunkline.runner.contract import ContractAction
from trunkline.runner.finishing import finished, on_disk
from trunkline.runner.inbox import Inbox
from trunkline.runner.state import RunnerMemory, StateRow
from trunkline.wires.sns.drive import Sns, SnsError
from trunkline.wires.sns.messages import WINDOW_MS

#: How far the network's clock may be from ours: else it would not have accepted the write.
SKEW_SECONDS = WINDOW_MS / 1000
#: This long after it was signed, a write that is not there will not be any more: the signature counts for the first
#: half by the network's clock, and that may be behind ours by the other half.
LATE_SECONDS = WINDOW_MS / 1000 + SKEW_SECONDS
#: A write that cannot be looked for any longer than this is given up.
GIVE_UP_SECONDS = 24 * 60 * 60
#: Lookups in one cycle: each is an exchange with the network.
MAX_LOOKUPS = 10
#: Writes that are looked for. More mean that the network cannot be asked at all; the oldest are given up.
MAX_WRITES = 100
#: Comments that are looked through at first: all that a network gives at once.
MAX_COMMENTS = 200
#: Pages of a thread that are looked through for one comment.
MAX_PAGES = 20

_NOT_FOUND = 404
_LOST = "It did not arrive. If it still matters, decide on it again."
_GIVEN_UP = "It could not be found out whether it arrived."


class _TooMany(SnsError):
    """There is more to look through than is looked through."""


class Writes:
    """The writes of one agent that are on their way."""

    def __init__(self, state: RunnerMemory, sns: Sns, inbox: Inbox) -> None:
        self._state = state
        self._sns = sns
        self._inbox = inbox
        self._arrived: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def arrived(self, action: ContractAction) -> dict[str, Any] | None:
        """What the very same write came to, if this cycle found out that it had arrived after all.

        The agent that decides on it again may not have understood that: it would stand there twice.
        """
        told = action.told()
        return next((found for written, found in self._arrived if written == told), None)

    async def is_open(self, action: ContractAction) -> bool:
        """Whether the very same write was sent, and its fate is not known."""
        told = action.told()
        return any(write.data == told for write in await on_disk(self._state.open_writes))

    async def begin(self, action: ContractAction) -> int:
        """It is about to be sent."""
        return await on_disk(lambda: self._state.begin_write(action.told()))

    async def end(self, key: int, id: Any = None) -> None:
        """Its fate is known; `id`: of the post that it became."""
        await on_disk(lambda: self._state.end_write(key, id if isinstance(id, str) else None))

    async def reconcile(self, handle: str, communities: list[Mapping[str, Any]]) -> None:
        """Look for those whose fate is not known, and tell the agent of each that is found out."""
        self._arrived.clear()
        writes = await on_disk(self._state.open_writes)
        for write in writes[:-MAX_WRITES]:
            await self._settle(write, {"ok": False, "error": _GIVEN_UP})
        for write in writes[-MAX_WRITES:][:MAX_LOOKUPS]:
            await self._reconcile(write, handle, communities)

    async def _reconcile(self, write: StateRow, handle: str, communities: list[Mapping[str, Any]]) -> None:
        age = write.age
        try:
            found = await self._find(write, handle, communities)
        except SnsError as error:
            if error.status != _NOT_FOUND:
                if age > GIVE_UP_SECONDS:
                    await self._settle(write, {"ok": False, "error": _GIVEN_UP})
                return
            found = None
        if found is not None:
            self._arrived.append((write.data, found))
            await self._settle(write, {"ok": True, **found})
        # It was noted before its nonce was asked for, and signed after that.
        elif age > LATE_SECONDS + self._sns.timeout:
            await self._settle(write, {"ok": False, "error": _LOST})

    async def _settle(self, write: StateRow, result: dict[str, Any]) -> None:
        action = write.data
        names = ("action", "communitySlug", "threadId", "title", "status")
        told = {name: action[name] for name in names if name in action}
        feedback = {"type": "write_feedback", **told, "result": result}
        id = result.get("commentId", result.get("threadId"))

        async def settle() -> None:
            await self._inbox.tell(feedback, [str(action.get("action"))])
            await self.end(write.key, id)

        # Both, or it would be told again.
        await finished(settle())

    async def _find(self, write: StateRow, handle: str, communities: list[Mapping[str, Any]]) -> dict[str, Any] | None:
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
                return await self._matching(threads, "threadId", action, handle, since)
            case "comment":
                async for comments in self._comments(str(action["threadId"])):
                    if found := await self._matching(comments, "commentId", action, handle, since):
                        return found
                return None
        thread = (await self._sns.thread(str(action["threadId"]))).get("thread")
        return {"status": action.get("status")} if _status(thread) == action.get("status") else None

    async def _comments(self, thread_id: str) -> AsyncIterator[list[Mapping[str, Any]]]:
        """The newest, as an agent sees them; then all, as everybody does: jokes are only there.

        Raises:
            SnsError: they cannot be asked for, or there are too many.
        """
        try:
            yield _objects((await self._sns.thread_comments(thread_id, MAX_COMMENTS)).get("comments"))
        except SnsError as error:
            # A network without that route shows the thread to everybody.
            if error.status is None:
                raise
        after = None
        for _ in range(MAX_PAGES):
            page = await self._sns.thread(thread_id, after)
            yield _objects(page.get("comments"))
            after = page.get("nextAfter")
            if not isinstance(after, str):
                return
        raise _TooMany(f"The thread `{thread_id}` has too many comments.")

    async def _matching(
        self, posts: list[Mapping[str, Any]], name: str, action: Mapping[str, Any], handle: str, since: float
    ) -> dict[str, Any] | None:
        """The post that a write became. One that another write became is not it, though it says the same."""
        for post in posts:
            id, written = str(post.get("id")), _moment(post.get("createdAt"))
            is_ours = post.get("author") == handle and (written is None or written >= since)
            if is_ours and _same(post.get("body"), action.get("body")) and not await self._is_known(id):
                return {name: post.get("id")}
        return None

    async def _is_known(self, id: str) -> bool:
        return await on_disk(lambda: self._state.is_written(id))


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
