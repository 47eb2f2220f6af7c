"""Between the protocol and what is offered by it: requests as plain JSON in, results as plain JSON out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from trunkline.core.keeper import SessionKeeper
from trunkline.wires.mcp.messages import Json


class Caller(Protocol):
    """The client behind a request, for as long as the request is under way."""

    @property
    def keeper(self) -> SessionKeeper:
        """The sessions that this client may use."""

    @property
    def who(self) -> str:
        """Whose client it is: one with another name has nothing to do with it."""

    @property
    def can_be_asked(self) -> bool:
        """Whether it shows forms to its user."""

    @property
    def answers_by_asking_again(self) -> bool:
        """Whether a question is the result of its request, which it makes again with the answer: since 2026-07-28."""

    async def progress(self, done: float, message: str) -> None:
        """Tell how it goes, if the client wants to know. `done` only ever grows."""

    async def ask(self, message: str, form: Mapping[str, Any]) -> Json | None:
        """Have its user fill in a form, in the middle of the request; None if that was not possible."""


#: Answers a request: its parameters are those of the method in the specification, and so is what it returns.
Handler = Callable[[Caller, Mapping[str, Any]], Awaitable[Json]]


class Offer(Protocol):
    """What a server offers."""

    @property
    def name(self) -> str:
        """The server's name."""

    @property
    def instructions(self) -> str:
        """What a model should know about it."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What answers each method. Methods that are not there are refused, and the capabilities follow from them.

        A `RemoteProtocolError` is the error -32602; another `Fault` is the result of a tool that failed, and
        elsewhere an error with its words.
        """
