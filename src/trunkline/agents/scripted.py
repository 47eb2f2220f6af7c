"""The agent that plays a script: every flow of a conversation, without a model.

Which turn of the script answers a message:

1. the first whose `when` is found in the message;
2. else the next one without `when`, in order; after the last of them, that one again.

Its place in the script is kept in the session's journal, so a resumed session goes on where it was.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from trunkline.agents import attachments
from trunkline.agents.player import PROGRESS_SECONDS, Player
from trunkline.agents.script import Say, Script, ScriptTurn
from trunkline.core.agent import AddHistory, AddMcpServer, Capabilities, Change, Decision, Journal, OpenRequest
from trunkline.core.events import Event, Failed, SessionIdentified, UserMessage
from trunkline.core.faults import Unsupported

#: Each record holds the whole place, so only the newest counts; older ones are dropped when there are that many.
_KEPT_RECORDS = 32


class ScriptedAgent:
    """Opens conversations that follow a script."""

    name = "scripted"

    def __init__(self, script: Script, *, progress_seconds: float = PROGRESS_SECONDS) -> None:
        self._script = script
        self._progress_seconds = progress_seconds

    @property
    def capabilities(self) -> Capabilities:
        return self._script.capabilities

    async def open(self, request: OpenRequest) -> ScriptedConversation:
        return ScriptedConversation(self._script, request, self._progress_seconds)


class ScriptedConversation:
    """One dialogue, somewhere in its script."""

    def __init__(self, script: Script, request: OpenRequest, progress_seconds: float = PROGRESS_SECONDS) -> None:
        self._script = script
        self._workspace = request.workspace
        self._place = _Place(request.journal)
        self._history = list(request.history)
        self._progress_seconds = progress_seconds
        self._session_id: str | None = None
        self._call_ids: set[str] = set()
        self._player: Player | None = None
        self._playing: set[Player] = set()

    @property
    def session_id(self) -> str | None:
        return self._session_id

    def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        # Here and not in the generator, which runs later: a `cancel` in between counts.
        turn, groups = self._choose(message)
        words = (
            {}
            if self._script.verbatim
            else {
                "input": message.text,
                "turn": str(self._place.messages),
                "history": "\n".join(self._history),
                "files": ", ".join(message.files),
                **groups,
            }
        )
        player = Player(
            turn,
            words,
            new_id=self._new_id,
            workspace=self._workspace,
            preface=attachments.notices(message, self._workspace),
            progress_seconds=self._progress_seconds,
        )
        self._player = player
        return self._play(player)

    async def _play(self, player: Player) -> AsyncIterator[Event]:
        self._playing.add(player)
        try:
            while (event := await player.next()) is not None:
                if isinstance(event, SessionIdentified):
                    self._session_id = event.session_id
                yield event
        finally:
            await player.stop()
            self._playing.discard(player)

    async def decide(self, call_id: str, decision: Decision) -> None:
        if self._player is not None:
            self._player.decide(call_id, decision)

    async def configure(self, change: Change) -> None:
        # A script has no model, so its options change nothing; a tool server would promise tools that never come.
        if isinstance(change, AddHistory):
            self._history.append(change.text)
        elif isinstance(change, AddMcpServer):
            raise Unsupported("The agent `scripted` uses only the tools of its script, so it cannot use an MCP server.")

    async def cancel(self) -> None:
        if self._player is not None:
            self._player.cancel()

    async def close(self) -> None:
        for player in tuple(self._playing):
            await player.stop()

    def _choose(self, message: UserMessage) -> tuple[ScriptTurn, dict[str, str]]:
        """The turn that answers a message, and the named groups of its `when`."""
        for turn in self._script.turns:
            if turn.when is not None and (found := re.search(turn.when, message.text)):
                self._place.advance(plain=False)
                return turn, {name: text or "" for name, text in found.groupdict().items()}
        plain = [turn for turn in self._script.turns if turn.when is None]
        turn = plain[min(self._place.plain, len(plain) - 1)] if plain else self._nothing_to_say()
        self._place.advance(plain=True)
        return turn, {}

    def _nothing_to_say(self) -> ScriptTurn:
        problem = f"The script `{self._script.name}` has no turn for this message. Add one without `when`."
        return ScriptTurn(steps=(Say(Failed("config", problem)),), outcome="error")

    def _new_id(self, wanted: str | None) -> str:
        """An id for a tool call that this conversation has not used: the wanted one, if possible."""
        stem = wanted or f"call-{self._place.messages}"
        number = 1
        call_id = wanted or f"{stem}-{number}"
        while call_id in self._call_ids:
            number += 1
            call_id = f"{stem}-{number}"
        self._call_ids.add(call_id)
        return call_id


class _Place:
    """How far the script has been played: `messages` answered, `plain` of them by turns without `when`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.messages = 0
        self.plain = 0
        for record in journal.records:
            match record:
                case {"agent": "scripted", "messages": int(messages), "plain": int(plain)}:
                    self.messages, self.plain = messages, plain

    def advance(self, *, plain: bool) -> None:
        """One more message is being answered."""
        self.messages += 1
        self.plain += plain
        record: dict[str, Any] = {"agent": "scripted", "messages": self.messages, "plain": self.plain}
        self._journal.append(record)
        if len(self._journal.records) >= _KEPT_RECORDS:
            self._journal.replace([record])
