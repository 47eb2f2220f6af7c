"""Bad habits about who may run what."""

from __future__ import annotations

from tests.conform.good_agent import Call, GoodAgent
from tests.conform.habits import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@habit("js.grant.once")
class OnceIsAlways(GoodAgent):
    def on_tool_approve(self, command: dict[str, Any]) -> None:
        super().on_tool_approve({**command, "scope": "always"})


@habit("js.grant.always", "js.grant.category", "js.grant.pending", "js.grant.modes")
class AlwaysIsOnce(GoodAgent):
    def grant(self, call: Call) -> None:
        """Nothing."""


@habit("js.grant.category")
class GrantsByTool(GoodAgent):
    def grant(self, call: Call) -> None:
        self.grants.add(call.name)
        self.release()

    def allows(self, call: Call) -> bool:
        return call.name in self.grants or super().allows(call)


@habit("js.grant.other-category")
class GrantsAll(GoodAgent):
    def grant(self, call: Call) -> None:
        self.grants |= {"info", "edit", "exec", "mcp"}
        self.release()


@habit("js.grant.pending")
class GrantsTheFutureOnly(GoodAgent):
    def grant(self, call: Call) -> None:
        self.grants.add(call.category)


@habit("js.grant.modes")
class ModesTakeGrantsBack(GoodAgent):
    def on_set_mode(self, command: dict[str, Any]) -> None:
        self.grants.clear()
        super().on_set_mode(command)


@habit("js.deny.cancelled", "js.deny.told-reason", "js.deny.no-reason")
class DeniesInSilence(GoodAgent):
    def cancel(self, call: Call, reason: str) -> None:
        call.state = "over"


@habit("js.deny.told-reason")
class KeepsTheReason(GoodAgent):
    def cancel(self, call: Call, reason: str) -> None:
        super().cancel(call, "denied")


@habit("js.deny.not-run")
class RunsWhatIsDenied(GoodAgent):
    def cancel(self, call: Call, reason: str) -> None:
        super().cancel(call, reason)
        call.state = "approved"


@habit("js.deny.not-run")
class WritesWhatIsDenied(GoodAgent):
    def cancel(self, call: Call, reason: str) -> None:
        super().cancel(call, reason)
        self.result_of(call)


@habit("js.deny.reason")
class ForgetsTheReason(GoodAgent):
    def cancel(self, call: Call, reason: str) -> None:
        super().cancel(call, reason)
        self.reason = "no"


@habit("js.deny.continues", "js.deny.not-run", "js.deny.reason")
class SulksAfterDenial(GoodAgent):
    def use(self, calls: list[Call]) -> Iterator[float]:
        yield from super().use(calls)
        if self.reason:
            yield 3600.0


@habit("js.deny.no-reason")
class EmptyReason(GoodAgent):
    def cancel(self, call: Call, reason: str) -> None:
        super().cancel(call, "" if reason == "User denied" else reason)


class _Modes(GoodAgent):
    """Has rules of its own for what a mode allows, once one was set."""

    was_set = False

    def on_set_mode(self, command: dict[str, Any]) -> None:
        self.was_set = True
        super().on_set_mode(command)

    def allows(self, call: Call) -> bool:
        return self.rule(call) if self.was_set else super().allows(call)

    def rule(self, call: Call) -> bool:
        raise NotImplementedError


@habit("js.mode.default", "js.mode.back")
class DefaultAllowsAll(_Modes):
    def rule(self, call: Call) -> bool:
        return self.mode == "default" or super().allows(call)

    def allows(self, call: Call) -> bool:
        return (self.was_set and self.mode == "default") or GoodAgent.allows(self, call)


@habit("js.mode.auto-edit.edit", "js.mode.pending")
class AutoEditAsksForEdits(_Modes):
    def rule(self, call: Call) -> bool:
        return call.name == "Read" or self.mode == "yolo"


@habit("js.mode.auto-edit.info")
class AutoEditAsksForReads(_Modes):
    def rule(self, call: Call) -> bool:
        return self.mode == "yolo" or (self.mode == "auto_edit" and call.category == "edit")


@habit("js.mode.auto-edit.exec", "js.mode.auto-edit.mcp", "js.mode.pending-other")
class AutoEditAllowsAll(_Modes):
    def rule(self, call: Call) -> bool:
        return call.name == "Read" or self.mode != "default"


@habit("js.mode.auto-edit.mcp")
class AutoEditAllowsMcp(_Modes):
    def rule(self, call: Call) -> bool:
        return call.name == "Read" or self.mode == "yolo" or (self.mode == "auto_edit" and call.category != "exec")


@habit("js.mode.yolo")
class YoloForShow(_Modes):
    def rule(self, call: Call) -> bool:
        return call.name == "Read" or (self.mode != "default" and call.category in ("info", "edit"))


@habit("js.mode.back")
class YoloForGood(GoodAgent):
    def on_set_mode(self, command: dict[str, Any]) -> None:
        if self.mode != "yolo":
            super().on_set_mode(command)


@habit("js.mode.pending")
class ModesAreForTheFuture(GoodAgent):
    def on_set_mode(self, command: dict[str, Any]) -> None:
        self.mode = command["mode"]


@habit("js.mode.pending-other")
class AnyModeReleasesAll(GoodAgent):
    def on_set_mode(self, command: dict[str, Any]) -> None:
        super().on_set_mode(command)
        for call in self.calls.values():
            call.state = "approved" if call.state == "pending" else call.state
