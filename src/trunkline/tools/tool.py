"""What every tool looks like to an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Literal, Protocol

from trunkline.base.values import Value
from trunkline.core.events import Category, OutputType

#: Called by a tool that takes long, with one line for people; may be called from the tool's task only. The line is
#: whole: who is told takes the secrets out, and cuts it then.
Report = Callable[[str], None]


#: The id of the call that a tool is run for, as its agent's clients know it: a client's terminal is shown with it.
CALL_ID: ContextVar[str] = ContextVar("call_id", default="")


class ToolOutput(Value):
    """What a tool gave."""

    text: str
    """For the model."""
    status: Literal["success", "error"] = "success"
    shown: str | None = None
    """For people, where that is something else, such as a diff."""
    output_type: OutputType = "text"
    """Of what people are shown."""
    metadata: Mapping[str, Any] | None = None
    images: tuple[tuple[str, str], ...] = ()
    """Pictures for the model: media type and base64."""
    foreign: bool = False
    """Whether others wrote some of it: what is in a file, on a page, or printed by a program."""


class Interrupted(asyncio.CancelledError):
    """A tool was cancelled, and has something to show for it: its output up to then."""

    def __init__(self, output: ToolOutput) -> None:
        super().__init__("the tool was cancelled")
        self.output = output


class Tool(Protocol):
    """One tool. Its methods get arguments that have what `parameters` requires, of the types it names.

    One about which nobody needs to be asked, or somebody always, says so by an attribute `asking`
    (`core.events.Asking`). One that permission rules call by another name says that by an attribute `rule_name`. One
    that is of use at times alone has an attribute `offered`, whether the model is told of it now, and a method
    `refusal(args)`, why a call cannot work; nobody is asked about such a call. One that is no mere look and yet changes
    no file by itself has a true attribute `changes_no_file`.
    """

    @property
    def name(self) -> str:
        """What the model calls it."""

    @property
    def category(self) -> Category:
        """What kind of approval it needs."""

    @property
    def description(self) -> str:
        """For the model: what it does, and how to use it well."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema of its arguments."""

    @property
    def limit(self) -> int:
        """The longest result, in characters; what is longer loses its middle."""

    @property
    def concurrent(self) -> bool:
        """Whether it may run beside other tools of the same round: it changes nothing."""

    def describe(self, args: Mapping[str, Any]) -> str:
        """One line for people about what a call would do."""

    def outside(self, args: Mapping[str, Any]) -> bool:
        """Whether a call would reach files outside the workspace, or change one that makes programs run."""

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        """Do it. A failure is an output, not an exception.

        Cancelling ends it at once and leaves nothing running. If there is some output by then, the cancellation goes
        on as `Interrupted`.
        """
