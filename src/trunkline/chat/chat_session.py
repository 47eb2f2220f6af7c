"""The session that a conversation has with its agent: opened when it is needed, kept between messages and restarts.

A session belongs to one agent in one workspace. If the name of the agent stands for another one now, or the workspace
is another, or the agent cannot read what was kept, a new session begins, and the chat is told.

What is kept counts when it is on the disk, and not before.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from urllib.parse import quote

from trunkline.chat.channel import Channel
from trunkline.chat.context import BridgeContext
from trunkline.chat.delivery.backoff import lasting
from trunkline.chat.delivery.store import KeptChat
from trunkline.chat.plain import inline
from trunkline.core.agent import Decision
from trunkline.core.faults import Fault, UnknownCall
from trunkline.core.session import Session

logger = logging.getLogger(__name__)

#: Longer names of chats are none of a platform's; file systems take 255 bytes.
LONGEST_NAME = 200
#: What may stand in a name for people, a directory's name and an argument alike.
_PLAIN = "!#$+:=@~"

DEAD_SESSION = "This is a new session: it does not know the earlier conversation."


def name_of(platform: str, chat: str) -> str:
    """What a chat is called for agents that want a name: another one for each, and the same one for ever.

    It can be the name of a directory, and is never taken for an option.
    """
    name = f"{platform}-{quote(chat, safe=_PLAIN, errors='surrogatepass')}"
    if len(name) <= LONGEST_NAME:
        return name
    from hashlib import sha256

    return f"{platform}-{sha256(chat.encode('utf-8', 'surrogatepass')).hexdigest()}"


class ChatSession:
    """The session of one chat. With `insist`, the settings' agent answers, whoever did before."""

    def __init__(self, context: BridgeContext, channel: Channel, *, insist: bool = False) -> None:
        self._context = context
        self._channel = channel
        self._chat = channel.chat
        self._insist = insist
        self.kept = context.store.conversation(context.platform.name, channel.chat)
        self.session: Session | None = None
        self._news = ""
        """What the chat is to hear of the session that is open, and has not heard yet."""
        self._fresh = False
        """Whether the session is to be left before the next message."""
        self._opening = asyncio.Lock()
        """Held while the session is opened or closed: nobody opens what is still being closed."""

    @property
    def agent(self) -> str:
        """The name of the agent that answers here."""
        stays = self.kept.agent in self._context.opener.settings.agents and not self._insist
        return self.kept.agent if stays else self._context.opener.settings.agent

    @property
    def going_on(self) -> KeptChat:
        """What is kept of the session that the next message goes on with; of a new one, nothing."""
        return KeptChat() if self._why_new() else self.kept

    async def opened(self) -> Session:
        """The session, as it is or opened now.

        Raises:
            ConfigError: it cannot be had.
        """
        async with self._opening:
            if self.session is not None and self.session.is_closing:
                # Somebody else has removed it, or it is another node's.
                await self._close()
            if self.session is None:
                self.session, self._news = await self._open()
            session = self.session
            await lasting(lambda: self._begin(session))
            return session

    async def _open(self) -> tuple[Session, str]:
        """The session, and what the chat is to hear of it."""
        agent, id = self.agent, self.kept.session_id
        open_session = partial(self._context.opener.open, agent, chat=name_of(self._context.platform.name, self._chat))
        why = self._why_new()
        if id is None or why:
            return await open_session(), why
        try:
            return await open_session(id), ""
        except Fault as fault:
            if fault.retryable:
                # Somebody else has it open, say. It is not lost.
                raise
            why = str(fault)
        except ValueError:
            logger.exception("the session `%s` cannot be continued", id)
            why = "The agent cannot read the earlier session."
        # If there cannot be a new one either, the old one is not to blame, and stays kept.
        return await open_session(), f"{why} {DEAD_SESSION}"

    def _why_new(self) -> str:
        """Why the kept session is none of this agent's, in this workspace; empty if it is, or there is none."""
        kept, agent, settings = self.kept, self.agent, self._context.opener.settings
        if kept.agent and kept.agent != agent:
            was, now = inline(kept.agent), inline(agent)
            return f"The agent here was `{was}`. From now on `{now}` answers, in a new session."
        if kept.session_id is None:
            return ""
        if kept.spec not in ("", settings.agents[agent]):
            return f"The agent `{inline(agent)}` has changed. {DEAD_SESSION}"
        if kept.workspace not in ("", settings.workspace):
            return f"The workspace has changed. {DEAD_SESSION}"
        return ""

    def _begin(self, session: Session) -> None:
        """Keep which session it is, and whose, and tell the chat what is new about that: both or neither."""
        settings, agent = self._context.opener.settings, self.agent
        before = self.kept if self.kept.session_id == session.id else KeptChat()
        now = before.replace(agent=agent, session_id=session.id, spec=settings.agents[agent])
        with self._context.store.together():
            if self._news:
                self._channel.remark(self._news)
            self._keep(now.replace(workspace=settings.workspace))
            self._context.store.when_kept(self._told)

    def _told(self) -> None:
        self._news = ""

    def seen(self, seq: int, turn: int) -> None:
        """Keep how much of the session the chat has, where a later run of the bridge goes on from there: up to this
        event, in this turn of the chat's; 0: in none.

        Raises:
            ConfigError: it could not be written to the disk.
        """
        if self._context.opener.shares:
            self._keep(self.kept.replace(seen=seq, turn=turn))

    def decide(self, call_id: str, decision: Decision, by: str = "") -> None:
        """Tell the session what somebody decided about a call; `by`: who, if others are to know.

        Raises:
            UnknownCall: it does not wait for that, or is closed.
        """
        if self.session is None:
            raise UnknownCall("The session is closed.")
        self.session.answer(call_id, decision, by)

    async def learnt(self, session: Session) -> None:
        """Keep what the agent calls the session, for people who look for it."""
        called = session.state.agent_session
        if session is self.session and not self._fresh and called != self.kept.agent_session:
            await lasting(lambda: self._keep(self.kept.replace(agent_session=called)))

    def renew(self, agent: str | None = None) -> None:
        """Begin a new session with the next message, maybe with another agent."""
        insist = self._insist and agent is None
        store = self._context.store
        with store.together():
            self._keep(self.kept.replace(agent=agent or self.agent, session_id=None, agent_session=None))
            store.when_kept(lambda: self._to_renew(insist))

    def _to_renew(self, insist: bool) -> None:
        self._insist = insist
        self._fresh = True

    async def ready(self) -> None:
        """Leave the session that the next message is not to go on with."""
        if self._fresh:
            self._fresh = False
            await self.forget()

    async def forget(self) -> None:
        """Leave the session for good: the next message begins another."""
        await self.leave()
        await lasting(lambda: self._keep(self.kept.replace(session_id=None, agent_session=None)))

    async def leave(self) -> None:
        """Close the session. The next message opens it again."""
        async with self._opening:
            await self._close()

    async def _close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await self._context.opener.close(session)

    def _keep(self, kept: KeptChat) -> None:
        if kept != self.kept:
            self._context.store.keep(self._context.platform.name, self._chat, kept)
            self._context.store.when_kept(lambda: self._kept(kept))

    def _kept(self, kept: KeptChat) -> None:
        self.kept = kept
