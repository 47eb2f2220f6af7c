"""What agents have in common that are a program of their own, started for each conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trunkline.base.process import child_env
from trunkline.base.programs import program_problem
from trunkline.core.agent import Capabilities, OpenRequest

#: How hosts in the field introduce rules that come ahead of a message, or as history.
_RULES_HEADING = "[Assistant System Rules]\n"


class ProgramAgent:
    """Knows its program, and what that last said of itself."""

    def __init__(
        self, argv: Sequence[str], name: str, env: Mapping[str, str] | None, resume: bool, hint: str = ""
    ) -> None:
        """`env` is added to our environment. `hint` says how to get the program where it is missing."""
        self._argv = tuple(argv)
        self._name = name
        self._env = dict(env or {})
        self._hint = hint
        self._capabilities = Capabilities(approval=True, thinking=True, mcp=True, images=None, resume=resume)

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        """What the program last said of itself; before it was ever started, what the protocol allows."""
        return self._capabilities

    def problem(self) -> str | None:
        """Why it cannot answer here, if that can be told without trying: there is no such program."""
        return program_problem(self._argv[0], child_env(extra=self._env), self._hint)


def context_of(request: OpenRequest) -> list[str]:
    """What a new session of the program is told first: the instructions, and what was said before."""
    rules = [_RULES_HEADING + request.instructions] if request.instructions else []
    return [*rules, *request.history]
