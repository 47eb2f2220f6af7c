"""Bad habits with sessions, turns, updates and contents."""

from __future__ import annotations

import os

from tests.conform.acp.good_agent import LONG_SECONDS, GoodAgent, Refusal, Session
from tests.conform.acp.habits_of_agents import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Sessions


@habit("session.new", among=("session.new", "session.relative"))
class SessionsHaveNoId(GoodAgent):
    def do_session_new(self, params: dict[str, Any]) -> Any:
        super().do_session_new(params)
        return {"session_id": "s"}


@habit("session.unique", among=("session.new", "session.unique", "session.cwd"))
class HasOneSession(GoodAgent):
    def new_id(self) -> str:
        return "the-one"


@habit("session.relative")
class TakesRelativeDirectories(GoodAgent):
    def on_relative(self) -> None:
        """Fine."""


@habit("session.cwd")
class StaysWhereItIs(GoodAgent):
    def cwd(self, params: dict[str, Any]) -> str:
        super().cwd(params)
        return os.getcwd()


@habit("session.unknown")
class KnowsEverySession(GoodAgent):
    def on_unknown_session(self, id: str) -> Session:
        return self.make("/")


@habit("session.parallel")
class MixesItsSessions(GoodAgent):
    def update(self, session: Session, update: dict[str, Any]) -> None:
        super().update(next(iter(self.sessions.values())), update)


@habit("session.mcp")
class WaitsForItsServers(GoodAgent):
    def do_session_new(self, params: dict[str, Any]) -> Any:
        if params.get("mcpServers"):
            os._exit(1)
        return super().do_session_new(params)


# Turns


@habit("prompt.answer", "prompt.again")
class SaysNothingInATurn(GoodAgent):
    def say(self, session: Session, text: str) -> None:
        if text in ("hel", "lo"):
            return
        super().say(session, text)


@habit("prompt.answer", "prompt.before", among=("prompt.answer", "prompt.before", "prompt.stop-reason"))
class EndsBeforeItSpeaks(GoodAgent):
    def turn(self, id: Any, session: Session, text: str) -> None:
        self.respond(id, {"stopReason": "end_turn"})
        for piece in self.answer(session, text):
            self.say(session, piece)


@habit("prompt.before")
class HasALastWord(GoodAgent):
    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        super().end_turn(id, session, reason)
        self.say(session, "and by the way")


@habit("prompt.answer", "prompt.stop-reason")
class EndsForNoReason(GoodAgent):
    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        super().end_turn(id, session, "done" if reason == "end_turn" else reason)


@habit("prompt.answer")
class AlwaysRunsOut(GoodAgent):
    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        super().end_turn(id, session, "max_tokens" if reason == "end_turn" else reason)


@habit("prompt.again", "prompt.remembers")
class TakesOnePrompt(GoodAgent):
    def prompted(self, params: dict[str, Any]) -> tuple[Session, str]:
        session, text = super().prompted(params)
        if session.prompts:
            raise Refusal(-32603, "One is enough")
        return session, text


@habit("prompt.remembers")
class Forgets(GoodAgent):
    def answer(self, session: Session, text: str) -> Iterator[str]:
        del session.history[:-1]
        return super().answer(session, text)


@habit("prompt.unicode")
class KnowsAsciiOnly(GoodAgent):
    def say(self, session: Session, text: str) -> None:
        super().say(session, text.encode("ascii", "replace").decode())


@habit("prompt.blocks")
class ReadsOneBlock(GoodAgent):
    def prompted(self, params: dict[str, Any]) -> tuple[Session, str]:
        blocks = params.get("prompt")
        if isinstance(blocks, list) and len(blocks) > 1:
            raise Refusal(-32602, "One at a time")
        return super().prompted(params)


@habit("prompt.empty")
class IgnoresEmptyPrompts(GoodAgent):
    def turn(self, id: Any, session: Session, text: str) -> None:
        if text:
            super().turn(id, session, text)


# Updates


@habit("update.shape", among=("update.shape", "update.content"))
class UpdatesHaveOtherNames(GoodAgent):
    def extras(self, session: Session) -> None:
        self.update(session, {"sessionUpdate": "weather", "sun": True})


@habit("update.session")
class UpdatesAreNobodys(GoodAgent):
    def extras(self, session: Session) -> None:
        params = {"sessionId": "nobody", "update": {"sessionUpdate": "usage_update", "used": 1, "size": 2}}
        self.write({"jsonrpc": "2.0", "method": "session/update", "params": params})


@habit("update.content")
class ChunksAreTexts(GoodAgent):
    def chunk(self, session: Session, kind: str, text: str) -> None:
        self.update(session, {"sessionUpdate": kind, "content": text})


@habit("update.plan", "update.commands", "update.usage")
class ExtrasAreEmpty(GoodAgent):
    def extras(self, session: Session) -> None:
        self.update(session, {"sessionUpdate": "plan", "entries": ["x"]})
        self.update(session, {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "x"}]})
        self.update(session, {"sessionUpdate": "usage_update", "used": "10"})


# Cancelling


@habit("cancel.stops", "cancel.soon", "cancel.permission", "cancel.again")
class IsNotCancelled(GoodAgent):
    def on_cancel(self, session: Session) -> None:
        """Nothing."""


@habit("cancel.soon", "cancel.stops", "cancel.again")
class FinishesItsWork(GoodAgent):
    def wait(self, session: Session) -> None:
        import time

        time.sleep(LONG_SECONDS)


@habit("cancel.stops", "cancel.permission")
class CancelIsAnError(GoodAgent):
    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        if reason == "cancelled":
            self.error(id, -32800, "Cancelled")
        else:
            super().end_turn(id, session, reason)


@habit("cancel.stops", "cancel.permission")
class EndsAsUsual(GoodAgent):
    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        super().end_turn(id, session, "end_turn")


@habit("cancel.permission")
class UsesTheToolAllTheSame(GoodAgent):
    def ask(self, session: Session, params: dict[str, Any]) -> Any:
        reply = super().ask(session, params)
        if session.cancelled.is_set():
            self.use_tool(session, os.path.join(session.cwd, "conform-write.txt"))
        return reply


@habit("cancel.again", among=("cancel.again", "cancel.stops"))
class StaysCancelled(GoodAgent):
    def __init__(self) -> None:
        super().__init__()
        self.dead: set[str] = set()

    def on_cancel(self, session: Session) -> None:
        super().on_cancel(session)
        self.dead.add(session.id)

    def prompted(self, params: dict[str, Any]) -> tuple[Session, str]:
        session, text = super().prompted(params)
        if session.id in self.dead:
            raise Refusal(-32603, "Cancelled")
        return session, text


@habit("cancel.idle", among=("cancel.idle", "cancel.stops", "cancel.other"))
class CancelsTheNextTurn(GoodAgent):
    def on_cancel(self, session: Session) -> None:
        if not session.is_busy:
            session.mode = "cancelled"
        super().on_cancel(session)

    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        super().end_turn(id, session, "cancelled" if session.mode == "cancelled" else reason)


@habit("cancel.other")
class CancelsEverybody(GoodAgent):
    def on_cancel(self, session: Session) -> None:
        for each in list(self.sessions.values()):
            super().on_cancel(each)


# Contents


class Refuses(GoodAgent):
    """Takes no blocks of some type."""

    unwanted = ""

    def look_at(self, block: Any) -> None:
        if isinstance(block, dict) and block.get("type") == self.unwanted:
            raise Refusal(-32602, "Not that")
        super().look_at(block)


@habit("content.link")
class TakesNoLinks(Refuses):
    unwanted = "resource_link"


@habit("content.image")
class TakesNoImages(Refuses):
    unwanted = "image"


@habit("content.audio")
class TakesNoSound(Refuses):
    unwanted = "audio"


@habit("content.embedded")
class TakesNoResources(Refuses):
    unwanted = "resource"


@habit("content.unoffered", among=("content.unoffered", "content.link"))
class DiesOfImages(GoodAgent):
    def capabilities(self) -> dict[str, Any]:
        return {**super().capabilities(), "promptCapabilities": {}}

    def look_at(self, block: Any) -> None:
        if block["type"] == "image":
            os._exit(1)


@habit("content.unknown")
class TakesEverything(GoodAgent):
    def look_at(self, block: Any) -> None:
        """Fine."""
