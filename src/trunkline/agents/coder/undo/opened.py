"""The calls of a session that are under way. Each is on the disk before it runs, and goes when what it has changed is
recorded: what is there of a process that is gone is what it was killed in the middle of.

    {"turn": ID, "at": 1700000000.5, "paths": {PATH: BEFORE}, "content": BASE64}    it names its file, which held that
    {"turn": ID, "at": 1700000000.5}                                                a command: see `manifest`
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from trunkline.agents.coder.undo import states
from trunkline.agents.coder.undo.lines import LineFile
from trunkline.agents.coder.undo.states import PathState


class OpenCall(NamedTuple):
    """A call that may be under way."""

    turn: str
    at: float
    """When its turn began."""
    paths: Mapping[str, PathState | None] | None = None
    """What was at the paths that it names; None: it is a command."""
    content: bytes = b""
    """What the file held."""


class OpenCalls(LineFile):
    """Those of one session; `place` is the beginning of its files' names."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place}.open")
        self.manifest = f"{place}.before"
        """The workspace as it was before the first command of those that are under way."""

    @property
    def used(self) -> float:
        """When one began, or the workspace was seen for the last time; 0 if that was never."""
        return max(super().used, LineFile(self.manifest).used)

    def begin(self, call: OpenCall) -> None:
        """To be called before it runs.

        Raises:
            NoCheckpoint: it cannot be written.
        """
        from base64 import b64encode

        line: dict[str, object] = {"turn": call.turn, "at": call.at}
        if call.paths is not None:
            line["paths"] = {path: states.to_json(state) for path, state in call.paths.items()}
            line["content"] = b64encode(call.content).decode("ascii")
        self.add(line)

    def read(self) -> list[OpenCall]:
        """All of them, oldest first. What makes no sense is skipped."""
        from base64 import b64decode

        found = []
        for line in self.lines()[0]:
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                call = OpenCall(str(line["turn"]), float(line["at"]))
                if "paths" in line:
                    named = {path: states.from_json(state) for path, state in line["paths"].items()}
                    call = call._replace(paths=named, content=b64decode(line["content"]))
                found.append(call)
        return found

    def turns(self) -> list[tuple[str, float]]:
        """The turns that they belong to, and when those began; without the contents, which may be large."""
        found = []
        for line in self.lines()[0]:
            with suppress(KeyError, TypeError, ValueError):
                found.append((str(line["turn"]), float(line["at"])))
        return found

    def clear(self) -> None:
        """There are none for now."""
        super().remove()

    def remove(self) -> None:
        """There are none, nor will there be."""
        super().remove()
        with suppress(FileNotFoundError):
            os.unlink(self.manifest)
