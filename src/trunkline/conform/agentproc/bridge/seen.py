"""What a bridge made of a turn, seen from outside: as text for people, or as an object for programs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from trunkline.base import jsontext
from trunkline.base.values import Value

#: How a bridge tells: `auto` looks whether the last line of its output is an object with the members below.
Output = Literal["auto", "text", "json"]

#: The members of that object; further ones do no harm.
MEMBERS = ("reply", "partials", "session_id", "error", "exit_code")

#: Where a bridge that prints text tells the session's id: on a line of standard error such as `session: ID`, with no
#: more than its own name in front.
_SESSION_LINE = re.compile(r"^(?:[\w .-]+: ?)?session: ?(?P<id>.*)$", re.MULTILINE)


class SeenTurn(Value):
    """A turn that has ended."""

    stdout: str
    stderr: str
    status: int
    """The exit status of the bridge itself."""
    seconds: float
    data: Mapping[str, Any] | None
    """The object, where it prints one."""

    @property
    def reply(self) -> str:
        """What was sent as the reply. Text has one line feed at its end that is not part of it."""
        return self.stdout.removesuffix("\n") if self.data is None else str(self.data["reply"])

    @property
    def partials(self) -> str:
        """What was shown of the partials: standard error, too, where text is printed."""
        return f"{self.stdout}\n{self.stderr}" if self.data is None else "".join(map(str, self.data["partials"]))

    @property
    def complaint(self) -> str:
        """What the user is told of a failure."""
        return f"{self.stdout}{self.stderr}".strip() if self.data is None else str(self.data["error"] or "").strip()

    @property
    def shown(self) -> str:
        """All that came out."""
        if self.data is None:
            return f"{self.stdout}\n{self.stderr}"
        return f"{self.partials}\n{self.reply}\n{self.complaint}"

    @property
    def session(self) -> str | None:
        """The id for the next turn; None when the bridge does not tell."""
        if self.data is not None:
            return str(self.data["session_id"] or "")
        found = _SESSION_LINE.findall(self.stderr)
        return str(found[-1]).strip() if found else None

    @property
    def code(self) -> int:
        """The turn's exit code."""
        found = None if self.data is None else self.data["exit_code"]
        return found if isinstance(found, int) else self.status


def object_of(stdout: str, output: Output) -> Mapping[str, Any] | None:
    """The object on the last line, if that is how this bridge tells."""
    if output == "text":
        return None
    try:
        found = jsontext.loads(stdout.rstrip("\n").rsplit("\n", 1)[-1].encode("utf-8", "surrogatepass"))
    except ValueError:
        return None
    return found if isinstance(found, dict) and all(name in found for name in MEMBERS) else None
