"""Bad habits with tools: asking, waiting, running, telling."""

from __future__ import annotations

from tests.conform.good_agent import Call, GoodAgent
from tests.conform.habits import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@habit("js.tool.request", among=("js.tool.request",))
class NeverAsks(GoodAgent):
    def allows(self, call: Call) -> bool:
        return True


@habit("js.tool.pause")
class WritesBeforeItMay(GoodAgent):
    def request(self, call: Call) -> None:
        super().request(call)
        if call.name == "Write":
            with open(call.args["file_path"], "w") as file:
                file.write("hello\n")


@habit("js.tool.pause", "js.tool.turn-waits", "js.tool.any-order", "js.tool.one-of-two",
       "js.tool.unknown-while-pending")  # fmt: skip
class DoesNotWait(GoodAgent):
    def request(self, call: Call) -> None:
        super().request(call)
        call.state = "approved"


@habit("js.tool.turn-waits", "js.tool.settled", among=("js.tool.turn-waits", "js.tool.settled", "js.tool.request"))
class EndsWhileItWaits(GoodAgent):
    def use(self, calls: list[Call]) -> Iterator[float]:
        if any(not self.allows(call) for call in calls):
            for call in calls:
                self.request(call)
        else:
            yield from super().use(calls)


@habit("js.tool.flow", "js.tool.default-scope", "js.tool.any-order", "js.tool.one-of-two", "js.tool.parallel",
       "js.tool.diff", "js.tool.error-status", "js.tool.repeated-answer", "js.tool.unknown-while-pending",
       among=("js.tool.flow", "js.tool.d*", "js.tool.[aoepru]*"))  # fmt: skip
class IgnoresApproval(GoodAgent):
    def on_tool_approve(self, command: dict[str, Any]) -> None:
        if self.pending(command["call_id"]) is None:
            self.refuse("no such call")


@habit("js.tool.flow", among=("js.tool.flow", "js.tool.request", "js.tool.pause"))
class NeverTellsResults(GoodAgent):
    def tell(self, call: Call, status: str, output: str, more: dict[str, Any]) -> None:
        """Nothing."""


@habit("js.tool.default-scope")
class NeedsScope(GoodAgent):
    def problem_of(self, command: dict[str, Any]) -> str | None:
        if command["type"] == "tool_approve" and "scope" not in command:
            return "scope is missing"
        return super().problem_of(command)


@habit("js.tool.diff")
class EditTellsText(GoodAgent):
    def tell(self, call: Call, status: str, output: str, more: dict[str, Any]) -> None:
        super().tell(call, status, output, {} if call.name == "Edit" else more)


@habit("js.tool.diff")
class DiffWithoutFile(GoodAgent):
    def tell(self, call: Call, status: str, output: str, more: dict[str, Any]) -> None:
        more.pop("metadata", None)
        super().tell(call, status, output, more)


@habit("js.tool.error-status")
class AllIsWell(GoodAgent):
    def tell(self, call: Call, status: str, output: str, more: dict[str, Any]) -> None:
        super().tell(call, "success", output, more)


@habit("js.tool.stdio", "js.tool.error-status", among=("js.tool.stdio", "js.tool.error-status"))
class SharesItsPipes(GoodAgent):
    def begin_tool(self, call: Call) -> None:
        if call.name == "Bash":
            import subprocess

            call.process = subprocess.Popen(["sh", "-c", call.args["command"]], start_new_session=True)

    def result_of(self, call: Call) -> tuple[str, str, dict[str, Any]]:
        return "success", "", {}


@habit("js.tool.parallel", "js.tool.any-order", "js.tool.one-of-two")
class OneAfterTheOther(GoodAgent):
    def use(self, calls: list[Call]) -> Iterator[float]:
        for call in calls:
            yield from super().use([call])


@habit("js.tool.any-order", "js.tool.one-of-two")
class FirstComeFirstServed(GoodAgent):
    def pending(self, call_id: str) -> Call | None:
        if super().pending(call_id) is None:
            return None
        return next(call for call in self.calls.values() if call.state == "pending")


@habit("js.tool.any-order")
class OneApprovesAll(GoodAgent):
    def on_tool_approve(self, command: dict[str, Any]) -> None:
        super().on_tool_approve(command)
        if command["call_id"] in self.calls:
            for call in self.calls.values():
                call.state = "approved" if call.state == "pending" else call.state


@habit("js.tool.one-of-two")
class OneDenialDeniesAll(GoodAgent):
    def cancel(self, call: Call, reason: str) -> None:
        for other in self.calls.values():
            if other.state != "over":
                super().cancel(other, reason)


@habit("js.tool.unknown-approve", "js.tool.unknown-while-pending")
class IgnoresWrongApprovals(GoodAgent):
    def on_tool_approve(self, command: dict[str, Any]) -> None:
        if self.pending(command["call_id"]) is not None:
            super().on_tool_approve(command)


@habit("js.tool.unknown-deny", "js.tool.repeated-answer")
class IgnoresWrongDenials(GoodAgent):
    def on_tool_deny(self, command: dict[str, Any]) -> None:
        if self.pending(command["call_id"]) is not None:
            super().on_tool_deny(command)


@habit("js.tool.unknown-while-pending")
class WrongIdsReleaseTheRest(GoodAgent):
    def on_tool_approve(self, command: dict[str, Any]) -> None:
        super().on_tool_approve(command)
        if command["call_id"] not in self.calls:
            for call in self.calls.values():
                call.state = "approved" if call.state == "pending" else call.state


@habit("js.tool.call-id")
class SameIdsInEveryTurn(GoodAgent):
    def use(self, calls: list[Call]) -> Iterator[float]:
        for number, call in enumerate(calls):
            call.id = f"call-{number}"
        return super().use(calls)


@habit("js.tool.name")
class ForgetsTheName(GoodAgent):
    def tell(self, call: Call, status: str, output: str, more: dict[str, Any]) -> None:
        name, call.name = call.name, "tool" if call.name == "Write" else call.name
        super().tell(call, status, output, more)
        call.name = name
