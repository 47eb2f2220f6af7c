"""Bad habits with sessions that are kept, and with modes."""

from __future__ import annotations

from tests.conform.acp.good_agent import GoodAgent, Session
from tests.conform.acp.habits_of_agents import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@habit("load.replays")
class ReplaysNothing(GoodAgent):
    def replay(self, session: Session) -> None:
        """Nothing."""


@habit("load.replays")
class ReplaysItselfOnly(GoodAgent):
    def replay(self, session: Session) -> None:
        session.history = [each for each in session.history if each[0] != "user"]
        super().replay(session)


@habit("load.replays")
class ReplaysTooLate(GoodAgent):
    def on_request(self, message: dict[str, Any]) -> None:
        super().on_request(message)
        if message["method"] == "session/load" and (session := self.sessions.get(message["params"]["sessionId"])):
            super().replay(session)

    def replay(self, session: Session) -> None:
        """Later."""


@habit("load.goes-on", "resume.goes-on")
class LoadsForShow(GoodAgent):
    def stored(self, params: dict[str, Any]) -> Session:
        known = params.get("sessionId") in self.sessions
        session = super().stored(params)
        if not known:
            del self.sessions[session.id]
        return session


@habit("load.unknown", "resume.unknown")
class LoadsAnything(GoodAgent):
    def handle(self, method: str, params: Any) -> Any:
        found = params.get("sessionId") if isinstance(params, dict) else None
        if method in ("session/load", "session/resume") and str(found).startswith("conform-"):
            return {}
        return super().handle(method, params)


@habit("resume.silent")
class ResumesAloud(GoodAgent):
    def do_session_resume(self, params: dict[str, Any]) -> Any:
        return self.do_session_load(params)


@habit("list.shape")
class ListsIdsOnly(GoodAgent):
    def listed(self, id: str, cwd: str) -> dict[str, Any]:
        return {"sessionId": id}


@habit("list.has")
class ListsNothing(GoodAgent):
    def do_session_list(self, params: dict[str, Any]) -> Any:
        if "cursor" in params:
            self.on_cursor()
        return {"sessions": []}


@habit("list.cwd")
class ListsEverything(GoodAgent):
    def is_listed(self, cwd: str, wanted: Any) -> bool:
        return True


@habit("list.cursor")
class TakesAnyCursor(GoodAgent):
    def on_cursor(self) -> None:
        """Fine."""


@habit("close.cancels", "close.gone")
class ClosesForShow(GoodAgent):
    def close_session(self, session: Session) -> None:
        """Nothing."""


@habit("close.gone")
class TakesPromptsForClosedOnes(GoodAgent):
    def close_session(self, session: Session) -> None:
        self.on_cancel(session)


@habit("close.unknown")
class ClosesAnything(GoodAgent):
    def do_session_close(self, params: dict[str, Any]) -> Any:
        return super().do_session_close(params) if params.get("sessionId") in self.sessions else {}


@habit("fork.new", "fork.remembers")
class ForksIntoItself(GoodAgent):
    def do_session_fork(self, params: dict[str, Any]) -> Any:
        session = self.stored(params)
        return {"sessionId": session.id}


@habit("fork.remembers")
class ForksAreEmpty(GoodAgent):
    def do_session_fork(self, params: dict[str, Any]) -> Any:
        found = super().do_session_fork(params)
        self.sessions[found["sessionId"]].history.clear()
        return found


@habit("delete.gone")
class DeletesNothing(GoodAgent):
    def do_session_delete(self, params: dict[str, Any]) -> Any:
        return {}


@habit("mode.shape")
class IsInNoMode(GoodAgent):
    def modes(self, session: Session) -> Any:
        return {**super().modes(session), "currentModeId": "another"}


@habit("mode.set")
class HasModesForShow(GoodAgent):
    def do_session_set_mode(self, params: dict[str, Any]) -> Any:
        return super().do_session_set_mode({**params, "modeId": params["modeId"].replace("free", "x")})


@habit("mode.unknown")
class TakesAnyMode(GoodAgent):
    def do_session_set_mode(self, params: dict[str, Any]) -> Any:
        return {}
