"""What can go wrong, once for all wires.

    Fault                        kind, message, retryable, hint
    ├── ProtocolError
    │   ├── LocalProtocolError   we broke the protocol: a defect of ours
    │   └── RemoteProtocolError  the peer broke it
    ├── ConfigError              configuration or initialisation; fatal before `ready`
    │   ├── NoModel              nobody said which model is to answer
    │   ├── SessionExists        the id is taken
    │   ├── SessionNotFound      there is nothing to resume
    │   ├── SessionHeld          another process has it open
    │   └── SessionDamaged       the log cannot be read
    ├── ProviderError            the model's service: rate limit, credentials, overload, connection
    │   └── TooLong              the conversation does not fit into what the model or its service takes
    ├── ToolError                a tool failed in a way that ends more than the tool
    ├── AgentBusy                one turn at a time, and this wire does not queue
    ├── AgentFailed              the agent vanished or broke its contract
    │   └── AgentCrashed         it raised what nobody foresaw
    ├── AgentTimeout             it did not answer in time
    ├── Unsupported              this agent cannot do that
    │   └── Mistyped             what was typed looks like a command, and is none
    ├── UnknownCall              no such tool call is waiting for an answer
    ├── Cancelled                the user stopped it
    └── InternalError            a defect of ours

`TABLE` gives each kind its form on all four wires. A fault becomes an event as `Failed(kind, message, retryable)`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from trunkline.base.values import Value

JsonStreamCode = Literal["provider_error", "tool_error", "config_error", "protocol_error", "internal_error"]


class WireForm(Value):
    """How one kind of fault looks on each wire."""

    jsonstream: JsonStreamCode
    """The `error.code`."""
    retryable: bool
    """Unless the fault itself knows better."""
    agentproc_exit: int
    """The exit code; the text goes out as `AGENT_ERROR:`."""
    http: int
    """The status on the agent social network."""
    tryll: int
    """The `ErrorResponse.code`."""


TABLE: dict[str, WireForm] = {
    #                            jsonstream       retry  exit  http  tryll
    "local_protocol": WireForm("internal_error", False, 1, 500, 5001),
    "remote_protocol": WireForm("protocol_error", False, 1, 400, 5001),
    "config": WireForm("config_error", False, 1, 400, 3003),
    "session_exists": WireForm("config_error", False, 1, 409, 3003),
    "session_not_found": WireForm("config_error", False, 1, 404, 3001),
    "session_held": WireForm("config_error", True, 1, 409, 3004),
    "session_damaged": WireForm("config_error", False, 1, 500, 3003),
    "provider": WireForm("provider_error", False, 1, 502, 4001),
    "tool": WireForm("tool_error", False, 1, 500, 4001),
    "busy": WireForm("protocol_error", True, 1, 409, 3004),
    "agent": WireForm("internal_error", False, 1, 500, 4001),
    "crashed": WireForm("internal_error", False, 1, 500, 4001),
    "timeout": WireForm("internal_error", True, 124, 504, 4002),
    "unsupported": WireForm("protocol_error", False, 1, 422, 5002),
    "mistyped": WireForm("config_error", False, 1, 400, 5002),
    "unknown_call": WireForm("protocol_error", False, 1, 404, 5002),
    "cancelled": WireForm("internal_error", False, 130, 499, 4001),
    "internal": WireForm("internal_error", False, 1, 500, 4001),
}


class Fault(Exception):
    """Base of all of them. `hint` says what to do next; it is part of the text that people see."""

    kind: ClassVar[str] = "internal"

    def __init__(self, message: str, *, retryable: bool | None = None, hint: str | None = None) -> None:
        super().__init__(f"{message} {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.retryable = TABLE[self.kind].retryable if retryable is None else retryable

    def say(self, *, message: str | None = None, hint: str | None = None) -> None:
        """Say it in other words, or say more."""
        self.message = self.message if message is None else message
        self.hint = self.hint if hint is None else hint
        self.args = (f"{self.message} {self.hint}" if self.hint else self.message,)

    def add(self, warnings: Iterable[str]) -> None:
        """Say also what is odd about the configuration: that may be the reason."""
        if odd := " ".join(warnings):
            self.say(hint=f"{self.hint} {odd}" if self.hint else odd)


class ProtocolError(Fault):
    """Bytes or commands that the protocol does not allow. Raise one of its two children."""

    def __init__(self, message: str, *, retryable: bool | None = None, hint: str | None = None) -> None:
        if type(self) is ProtocolError:
            raise TypeError("`ProtocolError` is abstract: say whose fault it is")
        super().__init__(message, retryable=retryable, hint=hint)


class LocalProtocolError(ProtocolError):
    """We tried to send what the protocol does not allow."""

    kind = "local_protocol"


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol does not allow."""

    kind = "remote_protocol"


class ConfigError(Fault):
    """The configuration cannot work."""

    kind = "config"


class NoModel(ConfigError):
    """Nobody said which model is to answer. Who can look for one may do so."""

    def __init__(
        self, message: str, *, hint: str | None = None, provider: str | None = None, base_url: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider = provider
        self.base_url = base_url
        """Where to look, if that was said."""


class SessionExists(ConfigError):
    """A new session was asked for under an id that is taken."""

    kind = "session_exists"


class SessionNotFound(ConfigError):
    """There is no session to resume."""

    kind = "session_not_found"


class SessionHeld(ConfigError):
    """Another process has the session open."""

    kind = "session_held"

    ending = False
    """Whether that process is known to be ending."""
    above = False
    """Whether it is known to be the one that started us, or started that one."""


class SessionDamaged(ConfigError):
    """The session's log cannot be read."""

    kind = "session_damaged"


class ProviderError(Fault):
    """The model's service failed."""

    kind = "provider"


class TooLong(ProviderError):
    """The conversation is too long: for the model's window, or for what its service takes in one request."""


class ToolError(Fault):
    """A tool failed in a way that ends more than the tool."""

    kind = "tool"


class AgentBusy(Fault):
    """The agent is in a turn, and this wire does not queue messages."""

    kind = "busy"


class AgentFailed(Fault):
    """The agent vanished or broke its contract."""

    kind = "agent"


class AgentCrashed(AgentFailed):
    """The agent raised what nobody foresaw. The text is a programmer's: wires that people read show another one."""

    kind = "crashed"


class AgentTimeout(Fault):
    """The agent did not answer in time."""

    kind = "timeout"


class Unsupported(Fault):
    """This agent cannot do that."""

    kind = "unsupported"


class Mistyped(Unsupported):
    """What somebody typed looks like a command, and is none. Not the host's mistake, which only passed it on."""

    kind = "mistyped"


class UnknownCall(Fault):
    """No tool call of that id waits for an answer."""

    kind = "unknown_call"


class Cancelled(Fault):
    """The user stopped it."""

    kind = "cancelled"


class InternalError(Fault):
    """A defect of ours."""

    kind = "internal"


def of(error: BaseException) -> Fault:
    """The fault that an exception amounts to: itself, or an `AgentCrashed` that names it."""
    if isinstance(error, Fault):
        return error
    return AgentCrashed(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
