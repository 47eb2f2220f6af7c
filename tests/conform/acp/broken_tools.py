"""Bad habits with tools and permissions."""

from __future__ import annotations

from tests.conform.acp.good_agent import GoodAgent, Session
from tests.conform.acp.habits_of_agents import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Edits(GoodAgent):
    """Changes what it tells of its calls."""

    def update(self, session: Session, update: dict[str, Any]) -> None:
        if update["sessionUpdate"] == "tool_call":
            self.edit(update)
        super().update(session, update)

    def edit(self, call: dict[str, Any]) -> None:
        """For habits."""


@habit("tool.shape")
class CallsHaveNoTitle(Edits):
    def edit(self, call: dict[str, Any]) -> None:
        del call["title"]


@habit("tool.shape")
class CallsAreOfNoKind(Edits):
    def edit(self, call: dict[str, Any]) -> None:
        call["kind"] = "write"


@habit("tool.known", "tool.ends")
class IdsChange(GoodAgent):
    def end_call(self, session: Session, id: str, status: str) -> None:
        super().end_call(session, f"{id}-end", status)


@habit("tool.known", among=("tool.known", "tool.shape"))
class TellsOfNoCalls(Edits):
    def update(self, session: Session, update: dict[str, Any]) -> None:
        if update["sessionUpdate"] != "tool_call":
            super().update(session, update)

    def is_allowed(self, session: Session, id: str) -> bool:
        return True


@habit("tool.unique", "tool.final")
class HasOneId(GoodAgent):
    def call_id(self) -> str:
        return "the-call"

    def write_file(self, session: Session, name: str) -> str:
        super().write_file(session, name)
        return super().write_file(session, name)


@habit("tool.ends")
class CallsNeverEnd(GoodAgent):
    def end_call(self, session: Session, id: str, status: str) -> None:
        super().end_call(session, id, "in_progress")


@habit("tool.final")
class ChangesItsMind(GoodAgent):
    def end_call(self, session: Session, id: str, status: str) -> None:
        super().end_call(session, id, "failed")
        super().end_call(session, id, "completed")


@habit("tool.content")
class ContentsAreTexts(Edits):
    def edit(self, call: dict[str, Any]) -> None:
        call["content"].append({"type": "text", "text": "hello"})


@habit("tool.diff")
class DiffsHaveNoText(Edits):
    def edit(self, call: dict[str, Any]) -> None:
        del call["content"][0]["newText"]


@habit("tool.paths")
class PathsAreRelative(Edits):
    def edit(self, call: dict[str, Any]) -> None:
        call["content"][0]["path"] = "conform-write.txt"


@habit("tool.paths")
class LocationsAreRelative(Edits):
    def edit(self, call: dict[str, Any]) -> None:
        call["locations"][0]["path"] = "conform-write.txt"


@habit("tool.lines")
class LinesAreTexts(Edits):
    def edit(self, call: dict[str, Any]) -> None:
        call["locations"][0]["line"] = "1"


# Permissions


class Asks(GoodAgent):
    """Changes how it asks."""

    def ask(self, session: Session, params: dict[str, Any]) -> Any:
        return super().ask(session, self.changed(params))

    def changed(self, params: dict[str, Any]) -> dict[str, Any]:
        return params


JUDGES = ("permission.shape", "permission.options", "permission.choice", "permission.known")


@habit("permission.shape", "permission.choice", among=JUDGES)
class AsksWithoutOptions(Asks):
    def changed(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "options": []}


@habit("permission.shape", "permission.known", among=JUDGES)
class AsksAboutNothing(Asks):
    def changed(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**params, "toolCall": {"title": "Something"}}


@habit("permission.options", among=JUDGES)
class OptionsHaveOtherKinds(Asks):
    def options(self) -> list[dict[str, Any]]:
        return [*super().options(), {"optionId": "maybe", "name": "Maybe", "kind": "perhaps"}]


@habit("permission.options", among=JUDGES)
class OptionsShareAnId(Asks):
    def options(self) -> list[dict[str, Any]]:
        return [*super().options(), {"optionId": "no", "name": "Never", "kind": "reject_always"}]


@habit("permission.choice", among=JUDGES)
class TakesNoNo(Asks):
    def options(self) -> list[dict[str, Any]]:
        return super().options()[:2]


@habit("permission.known", among=JUDGES)
class AsksBeforeItTells(GoodAgent):
    def write_file(self, session: Session, name: str) -> str:
        self.calls += 1
        return super().write_file(session, name)

    def announce(self, session: Session, id: str, path: str) -> None:
        self.told = (id, path)

    def is_allowed(self, session: Session, id: str) -> bool:
        found = super().is_allowed(session, id)
        super().announce(session, *self.told)
        return found


@habit("permission.waits", "permission.reject", "permission.cancelled", "permission.error", "permission.unknown",
       among=("permission.[wrceu]*",))  # fmt: skip
class DoesNotWait(GoodAgent):
    def is_allowed(self, session: Session, id: str) -> bool:
        self.use_tool(session, session.cwd + "/conform-write.txt")
        return super().is_allowed(session, id)


@habit("permission.allow")
class NeverMay(GoodAgent):
    def is_yes(self, session: Session, reply: Any) -> bool:
        super().is_yes(session, reply)
        return False


@habit("permission.reject")
class ANoIsAYes(GoodAgent):
    def is_yes(self, session: Session, reply: Any) -> bool:
        found = super().is_yes(session, reply)
        result = reply.get("result")
        return found or bool(result and result["outcome"].get("optionId") == "no")


@habit("permission.cancelled")
class CancelledIsAYes(GoodAgent):
    def is_yes(self, session: Session, reply: Any) -> bool:
        found = super().is_yes(session, reply)
        result = reply.get("result")
        return found or bool(result and result["outcome"]["outcome"] == "cancelled")


@habit("permission.error")
class AnErrorIsAYes(GoodAgent):
    def is_yes(self, session: Session, reply: Any) -> bool:
        return super().is_yes(session, reply) or "error" in reply


@habit("permission.unknown")
class AnythingElseIsAYes(GoodAgent):
    def is_yes(self, session: Session, reply: Any) -> bool:
        found = super().is_yes(session, reply)
        result = reply.get("result")
        return found or bool(result and result["outcome"].get("optionId") not in ("no", None))


@habit("permission.once")
class OnceIsAlways(GoodAgent):
    def remembers(self, chosen: Any) -> bool:
        return chosen in ("yes", "always")


@habit("permission.always")
class AlwaysIsOnce(GoodAgent):
    def remembers(self, chosen: Any) -> bool:
        return False
