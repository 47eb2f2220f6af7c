"""What command-line agents print, read as what an agent says.

Programs that speak neither dialect of AgentProc have a stream of their own: JSON lines, or plain text. There is one
module for each format, imported when it is needed; all fulfil `codec.Reader`:

- `Partial` for each piece of the answer as it comes, with the role `thinking` for reasoning,
- `SessionId` when the program has named its conversation,
- at the end one `Result` with the whole answer, or an `Error` that people can read,
- `Ignored` for what is no part of the stream.

Some of them are more than read: their programs are talked to while they run, and ask before they act. Those fulfil
`codec.Dialogue`.
"""

from __future__ import annotations

from importlib import import_module

from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.codec import Dialogue, Reader

#: The name of a stream -> the module in this folder whose `Stream` reads it.
_MODULES = {
    "aider": "aider",
    "claude": "claude",
    "claude-control": "claude_control",
    "codex": "codex",
    "codex-app-server": "codex_app_server",
    "cursor": "cursor",
    "gemini": "gemini",
    "goose": "goose",
    "grok": "grok",
    "kimi": "kimi",
    "opencode": "opencode",
    "pi": "pi",
    "recursive": "recursive",
    "text": "text",
}


#: Those whose programs can ask, in the order of their names.
DIALOGUES = ("claude-control", "codex-app-server")


def names() -> tuple[str, ...]:
    """The streams that can be read, in alphabetical order."""
    return tuple(_MODULES)


def make(name: str) -> Reader:
    """A reader for one run of a program with that stream.

    Raises:
        ConfigError: there is no such stream.
    """
    if name not in _MODULES:
        raise ConfigError(f"There is no stream `{name}`.", hint=f"Use one of {', '.join(names())}.")
    reader: Reader = import_module(f"{__name__}.{_MODULES[name]}").Stream()
    return reader


def converse(name: str) -> Dialogue:
    """What talks to one run of a program, for one of the `DIALOGUES`."""
    dialogue: Dialogue = import_module(f"{__name__}.{_MODULES[name]}").Stream()
    return dialogue


def is_dead_session(error: str) -> bool:
    """Whether a failed turn says that the session it was to go on with does not exist (any more).

    It looks for what each program says in that case, word for word. A turn that failed so did nothing, and can be
    begun anew without a session.
    """
    from trunkline.wires.agentproc.streams.dead import is_dead_session

    return is_dead_session(error)
