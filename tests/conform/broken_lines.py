"""Bad habits in single lines, and at the start."""

from __future__ import annotations

import os
import select
import time

from tests.conform.good_agent import Call, Fatal, GoodAgent
from tests.conform.habits import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@habit("js.line.object")
class Banner(GoodAgent):
    def say_ready(self) -> None:
        self.write(b"Welcome to the agent!\n")
        super().say_ready()


@habit("js.line.object")
class List(GoodAgent):
    def say_ready(self) -> None:
        super().say_ready()
        self.write(b'["progress", 1]\n')


@habit("js.line.utf8")
class Latin1(GoodAgent):
    def say_ready(self) -> None:
        super().say_ready()
        self.write('{"type":"info","msg_id":null,"message":"\xfcber"}\n'.encode("latin-1"))


@habit("js.line.terminated")
class LastLineUnfinished(GoodAgent):
    def on_eof(self) -> None:
        super().on_eof()
        self.write(b'{"type":"info","msg_id":null,"message":"bye"}')


@habit("js.shape.stream_start", among=("js.shape.*",))
class StartWithoutId(GoodAgent):
    def begin(self) -> None:
        self.emit("stream_start")


class _Alters(GoodAgent):
    """Changes the members of one type of event."""

    altered = ""

    def emit(self, type: str, **members: Any) -> None:
        if type == self.altered:
            self.alter(members)
        super().emit(type, **members)

    def alter(self, members: dict[str, Any]) -> None:
        raise NotImplementedError


@habit("js.shape.text_delta")
class TextIsNumber(_Alters):
    altered = "text_delta"

    def alter(self, members: dict[str, Any]) -> None:
        members["text"] = 5


@habit("js.shape.thinking")
class ThinkingWithoutText(_Alters):
    altered = "thinking"

    def alter(self, members: dict[str, Any]) -> None:
        del members["text"]


@habit("js.shape.tool_request")
class RequestWithoutDescription(_Alters):
    altered = "tool_request"

    def alter(self, members: dict[str, Any]) -> None:
        del members["tool"]["description"]


@habit("js.shape.tool_request")
class ArgsAreText(_Alters):
    altered = "tool_request"

    def alter(self, members: dict[str, Any]) -> None:
        members["tool"]["args"] = "file_path=a.txt"


@habit("js.shape.tool_running", "js.tool.name", among=("js.shape.*", "js.tool.name"))
class RunningWithoutName(_Alters):
    altered = "tool_running"

    def alter(self, members: dict[str, Any]) -> None:
        del members["tool_name"]


@habit("js.shape.tool_result")
class UnknownOutputType(_Alters):
    altered = "tool_result"

    def alter(self, members: dict[str, Any]) -> None:
        members["output_type"] = "html" if members["output_type"] == "text" else members["output_type"]


@habit("js.shape.tool_cancelled", among=("js.shape.*",))
class CancelledWithoutReason(_Alters):
    altered = "tool_cancelled"

    def alter(self, members: dict[str, Any]) -> None:
        del members["reason"]


@habit("js.shape.stream_end")
class UsageIsText(_Alters):
    altered = "stream_end"

    def alter(self, members: dict[str, Any]) -> None:
        members["usage"]["input_tokens"] = "12"


@habit("js.shape.error", among=("js.shape.*",))
class RetryableIsText(_Alters):
    altered = "error"

    def alter(self, members: dict[str, Any]) -> None:
        members["error"]["retryable"] = "no"


@habit("js.shape.error", among=("js.shape.*",))
class EngineError(_Alters):
    altered = "error"

    def alter(self, members: dict[str, Any]) -> None:
        members["error"]["code"] = "engine_error"


@habit("js.shape.info")
class InfoWithoutMessage(_Alters):
    altered = "info"

    def alter(self, members: dict[str, Any]) -> None:
        del members["message"]


@habit("js.tool.category", among=("js.shape.*", "js.tool.category"))
class EditExecutes(_Alters):
    altered = "tool_request"

    def alter(self, members: dict[str, Any]) -> None:
        if members["tool"]["name"] == "Edit":
            members["tool"]["category"] = "exec"


@habit("js.tool.description", among=("js.shape.*", "js.tool.description"))
class DescriptionOfTwoLines(_Alters):
    altered = "tool_request"

    def alter(self, members: dict[str, Any]) -> None:
        members["tool"]["description"] += "\nwith care"


@habit("js.tool.description", among=("js.shape.*", "js.tool.description"))
class EmptyDescription(_Alters):
    altered = "tool_request"

    def alter(self, members: dict[str, Any]) -> None:
        members["tool"]["description"] = ""


@habit("js.tool.image", among=("js.shape.*", "js.tool.image"))
class ImageIsPath(_Alters):
    altered = "tool_result"

    def alter(self, members: dict[str, Any]) -> None:
        if members["output_type"] == "image":
            members["output"] = "/tmp/an image.png"


@habit("js.ready.arrives", among=("js.ready.arrives",))
class NeverReady(GoodAgent):
    def say_ready(self) -> None:
        """Nothing."""


@habit("js.ready.first")
class InfoBeforeReady(GoodAgent):
    def say_ready(self) -> None:
        self.emit("info", msg_id=None, message="starting")
        super().say_ready()


@habit("js.ready.once")
class TwoReadies(GoodAgent):
    def say_ready(self) -> None:
        super().say_ready()
        super().say_ready()


@habit("js.ready.version")
class ShortVersion(GoodAgent):
    version = "0.1"


@habit("js.ready.compatible")
class OtherMajorVersion(GoodAgent):
    version = "1.0.0"


@habit("js.ready.session-id")
class NullSessionId(GoodAgent):
    def say_ready(self) -> None:
        self.emit("ready", version=self.version, session_id=None, capabilities=self.capabilities())


@habit("js.ready.capabilities")
class CapabilitiesAreWords(GoodAgent):
    def capabilities(self) -> Any:
        return ["tool_approval", "thinking"]


@habit("js.ready.early-message")
class ForgetsWhatCameEarly(GoodAgent):
    def say_ready(self) -> None:
        time.sleep(0.2)
        while select.select([0], [], [], 0)[0] and os.read(0, 65536):
            pass
        super().say_ready()


@habit("js.flags.accepted")
class KnowsFewFlags(GoodAgent):
    def parse_flags(self) -> None:
        if "--max-turns" in self.argv:
            raise Fatal("unknown flag --max-turns")
        super().parse_flags()


@habit("js.flags.auto-approve")
class AutoApproveForShow(GoodAgent):
    def parse_flags(self) -> None:
        super().parse_flags()
        self.flags.pop("--auto-approve", None)


@habit("js.flags.workspace")
class WorkspaceForShow(GoodAgent):
    def parse_flags(self) -> None:
        super().parse_flags()
        self.flags.pop("--workspace", None)


@habit("js.tool.order", among=("js.tool.order", "js.tool.flow", "js.shape.*"))
class ResultTwice(GoodAgent):
    def tell(self, call: Call, status: str, output: str, more: dict[str, Any]) -> None:
        super().tell(call, status, output, more)
        super().tell(call, status, output, more)
