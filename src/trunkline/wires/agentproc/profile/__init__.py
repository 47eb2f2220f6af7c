"""What a bridge knows of an agent: how to start it, what it may cost, how to read it.

`Profile` is the value; `file` reads it from YAML, `launch` makes an argument list and an environment of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from trunkline.base.values import Value

Protocol = Literal["0.1", "0.4", "auto"]

DEFAULT_TIMEOUT_SECS = 1800.0
#: About eleven days: what waits for a process counts milliseconds in 32 bits. Whoever writes more means "for ever".
LONGEST_TIMEOUT_SECS = 1_000_000.0
DEFAULT_KILL_GRACE_SECS = 5.0
DEFAULT_MAX_REPLY_CHARS = 8000
DEFAULT_TRUNCATION_SUFFIX = "\n\n…(truncated)"
DEFAULT_SESSION_LINE_PREFIX = "AGENT_SESSION:"


class Profile(Value):
    """One agent as a bridge sees it. Texts still hold their placeholders and `${VARIABLES}`."""

    command: tuple[str, ...]
    """The program and its first arguments: the profile's `command`, split on white space unless it is of 0.4."""
    args: tuple[str, ...] = ()
    stdin: Literal["none", "message"] = "none"
    cwd: str | None = None
    strange_cwd: bool = False
    """Whether `cwd` was not chosen by the profile: what lies there is no part of the agent. No file says it."""
    env: Mapping[str, str] = {}
    plain_env: Mapping[str, str] = {}
    """Variables that are given as they are, over those of `env`. No file has them: whoever runs the agent does."""
    env_allowlist: tuple[str, ...] | None = None
    """Only these may be taken from the bridge's environment; `None`: all of it."""
    timeout_secs: float | None = DEFAULT_TIMEOUT_SECS
    """The longest turn, counted from the start of the process; `None`: no limit."""
    kill_grace_secs: float = DEFAULT_KILL_GRACE_SECS
    max_reply_chars: int = DEFAULT_MAX_REPLY_CHARS
    truncation_suffix: str = DEFAULT_TRUNCATION_SUFFIX
    include_stderr_in_reply: bool = False
    send_error_reply: bool = True
    streaming: bool = True
    session_line_prefix: str = DEFAULT_SESSION_LINE_PREFIX
    protocol: Protocol = "0.1"
    permission: bool = False
    """0.4: the agent may ask before it uses a tool."""
    stream: str | None = None
    """The agent speaks neither dialect, but a stream of its own: the name of what reads it (`streams`)."""
    allow_unsafe: bool = False
    """Run it although a message may be read as code (`safety`). Not part of AgentProc."""
    resume_args: tuple[str, ...] = ()
    """Arguments for a turn that goes on with a session, in front of `args`. Not part of AgentProc."""
    name: str = ""
    description: str = ""
    directory: str | None = None
    """Where the profile's file lies: `{{PROFILE_DIR}}`, and what a relative `cwd` is relative to."""
    warnings: tuple[str, ...] = ()
    """What is odd about the file and no reason to refuse it."""

    def placed(self, directory: str) -> Profile:
        """The same, to be run in a directory if the profile does not say where."""
        return self if self.cwd is not None else self.replace(cwd=directory, strange_cwd=True)
