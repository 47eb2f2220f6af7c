"""A profile and a turn, made into what is spawned: arguments, environment, working directory, input.

The environment, what comes later wins:

1. The bridge's own, without `AGENT_*`, which may be left from a turn that the bridge itself is part of. With
   `env_allowlist`, or in protocol 0.4, only what every program needs (`BASE_VARIABLES`) and what is on the list.
2. The profile's `env`, with placeholders and `${NAME}` filled in; then its `plain_env`, as it is.
3. The turn, as `AGENT_*`, unless the agent speaks protocol 0.4 or one of its own: then it is told on standard input.

Nothing that a turn brings is looked at for placeholders or variables, and no shell sees any of it. Whatever the locale
says, texts are UTF-8 for the agent.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trunkline.base import trace_context
from trunkline.base.own_python import safe_python
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.codec import VARIABLES, Dialogue, turn_environment, whole
from trunkline.wires.agentproc.messages import Attachment, TurnRequest
from trunkline.wires.agentproc.profile import Profile, Protocol
from trunkline.wires.agentproc.profile.placeholders import FROM_THE_CHAT, Values, expand, fill, from_the_chat, used

#: The most bytes that Linux takes as one argument, or as one variable with its name; the last is a NUL.
MAX_STRING = 32 * 4096
#: No text of fewer characters has more bytes than that.
_SURELY_SHORT = MAX_STRING // 4 - 64

#: What a program needs to find programs, its user's files, its language, a temporary directory, whom to trust, and
#: where its work belongs.
BASE_VARIABLES = frozenset((
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE",
    # Where command-line agents keep their settings and their login.
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS",
    # The certificates of a company's proxy.
    "SSL_CERT_FILE", "SSL_CERT_DIR",
    # Which trace the turn belongs to.
    *trace_context.VARIABLES.values(),
))  # fmt: skip

#: The texts of a turn that a program receives.
_TEXTS = ("message", "session_id", "session_name", "from_user")

_OWN_PREFIX = "AGENT_"
_LOCALE_PREFIX = "LC_"


class Launch(Value, hot=True):
    """All that is needed to start the agent for one turn."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    """`None`: where the bridge runs."""
    stdin: bytes | None
    """What the agent reads before the end of its input; `None`: it has none at all."""
    interactive: bool = False
    """The input stays open, for the answers to permission requests."""
    protocol: Protocol = "0.1"
    """How to read the agent, unless it has a stream of its own."""
    warnings: tuple[str, ...] = ()
    dialogue: Dialogue | None = None
    """What talks to a program that has a protocol of its own. `stdin` is how it begins."""
    root: str | None = None
    """The directory that must be there if `cwd`, below it, is the session's own and may have to be made."""


def launch(profile: Profile, turn: TurnRequest, environ: Mapping[str, str]) -> Launch:
    """What to spawn for a turn, in a bridge with this environment.

    Raises:
        ConfigError: this turn cannot be given to this agent.
    """
    if not turn.message and not turn.attachments:
        raise ConfigError("There is nothing to say: the message is empty.", hint="Give it a text or an attachment.")
    speaks_json = profile.protocol != "0.1" and profile.stream is None
    has_line = speaks_json and (profile.protocol == "0.4" or profile.stdin == "none")
    dialogue = None if profile.stream is None else _dialogue(profile.stream)
    interactive = dialogue is not None or (has_line and profile.permission)
    turn = _as_meant(profile, turn, interactive)
    values = _Values(profile, turn)
    warnings: list[str] = []
    argv = _argv(profile, turn, values, environ)
    env = _inherited(profile, environ)
    cwd = root = None
    if profile.cwd is not None:
        cwd, root = _cwd(profile, profile.cwd, values, environ), _root(profile, profile.cwd, values, environ)
        # As a shell does it; else programs that believe it would work where the bridge does.
        env["PWD"] = cwd
    if profile.env or profile.plain_env:
        env |= _own_variables(profile, values, environ, warnings)
    if dialogue is not None:
        argv += dialogue.arguments(env)
        begin = dialogue.begin(_as_text(turn))
        return Launch(argv, env, cwd, begin, interactive, warnings=tuple(warnings), dialogue=dialogue, root=root)
    protocol = profile.protocol
    if protocol == "auto" and has_line and _is_too_long(_for_system(turn.message), len("AGENT_MESSAGE=")):
        # Without its message an agent of 0.1 would answer something else: better that it is found out not to speak 0.4.
        protocol = "0.4"
        warnings.append("the message is too long for `AGENT_MESSAGE`, so this turn uses only protocol 0.4")
    if not speaks_json or protocol == "auto":
        env |= _turn_variables(profile, turn, warnings)
    stdin = _stdin(profile, turn, has_line)
    return Launch(argv, env, cwd, stdin, interactive, protocol, tuple(warnings), root=root)


def _dialogue(stream: str) -> Dialogue | None:
    from trunkline.wires.agentproc import streams

    return streams.converse(stream) if stream in streams.DIALOGUES else None


class _Values:
    """What placeholders stand for. Most profiles have none, so it is found out when one is met."""

    __slots__ = ("_profile", "_turn")

    def __init__(self, profile: Profile, turn: TurnRequest) -> None:
        self._profile = profile
        self._turn = turn

    def __getitem__(self, name: str) -> str:
        if name == "PROFILE_DIR":
            # A profile that lies nowhere is here.
            return self._profile.directory if self._profile.directory is not None else os.getcwd()
        value: str = getattr(self._turn, name.lower())
        return value


def _as_meant(profile: Profile, turn: TurnRequest, interactive: bool) -> TurnRequest:
    """The turn as this profile allows and needs it."""
    changes: dict[str, Any] = {}
    if turn.streaming and not profile.streaming:
        changes["streaming"] = False
    if turn.permission is not interactive:
        changes["permission"] = interactive
    if profile.stream is not None and turn.attachments:
        # The program knows nothing of our variables: what it is to look at must be in what it is told.
        mentions = "\n".join(map(_mention, turn.attachments))
        changes["message"] = f"{turn.message}\n\n{mentions}" if turn.message else mentions
    return turn.replace(**changes) if changes else turn


def _mention(attachment: Attachment) -> str:
    named = f" ({attachment.name})" if attachment.name else ""
    return f"Attached {attachment.type}{named}: {attachment.url}"


def _bytes(text: str) -> bytes:
    """The text as UTF-8; bytes that our own arguments brought are as they were, halves of characters are replaced."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return whole(text).encode()


def _for_system(text: str) -> str:
    """The text that the system turns into these bytes, whatever the locale is."""
    return text if text.isascii() else os.fsdecode(_bytes(text))


def _argv(profile: Profile, turn: TurnRequest, values: Values, environ: Mapping[str, str]) -> tuple[str, ...]:
    resume_args = profile.resume_args if turn.session_id else ()
    program, *first = profile.command
    templates = (_at_home(program, environ), *first, *resume_args, *profile.args)
    if profile.cwd is None or profile.strange_cwd or from_the_chat(profile.cwd):
        templates = safe_python(templates)
    argv = tuple([_for_system(fill(text, values)) for text in templates])
    for text in argv:
        if "\0" in text or len(text) > _SURELY_SHORT:
            _check(text, "An argument", 0, "Let the agent read it from standard input: use `stdin: message`.")
    return argv


def _cwd(profile: Profile, template: str, values: Values, environ: Mapping[str, str]) -> str:
    chosen = [name for name in used(template) if name in FROM_THE_CHAT]
    if chosen and not leads_down(template, values):
        raise ConfigError(
            f"`{{{{{chosen[0]}}}}}` would lead outside the profile's `cwd`, or to what all chats share.",
            hint="Use a name without `..` that does not begin with `/` and is neither empty nor `.`.",
        )
    return _directory(profile, template, values, environ)


def _directory(profile: Profile, template: str, values: Values, environ: Mapping[str, str]) -> str:
    filled = fill(template, values)
    if template.startswith("~"):
        filled = _at_home(filled, environ)
    # A relative one is relative to the profile, wherever the bridge runs.
    return os.path.abspath(os.path.join(profile.directory or "", _for_system(filled)))


def _root(profile: Profile, template: str, values: Values, environ: Mapping[str, str]) -> str | None:
    """What of `cwd` stands in front of the session's own part of it; `None` if it has none."""
    chosen = [name for name in used(template) if name in FROM_THE_CHAT]
    if not chosen or "MESSAGE" in chosen:
        # What every message may change is no place to keep things.
        return None
    parts = template.split(os.sep)
    first = next(index for index, part in enumerate(parts) if from_the_chat(part))
    above = os.sep.join(parts[:first])
    return _directory(profile, above or (os.sep if first else os.curdir), values, environ)


def leads_down(template: str, values: Values) -> bool:
    """Whether each part of a path that the chat has a say in leads to a directory below the parts before it.

    Dots of the template and of a value can make a step together: so it is the whole part that is looked at.
    """
    for part in template.split(os.sep):
        if from_the_chat(part) is None:
            continue
        path = fill(part, values)
        step = os.path.normpath(path)
        if "\0" in path or step == os.curdir or step.startswith(os.sep) or step.split(os.sep)[0] == os.pardir:
            return False
    return True


def _at_home(path: str, environ: Mapping[str, str]) -> str:
    """The path, with a leading `~` as the home directory."""
    if path != "~" and not path.startswith("~/"):
        return path
    return (environ.get("HOME") or os.path.expanduser("~")) + path[1:]


def _inherited(profile: Profile, environ: Mapping[str, str]) -> dict[str, str]:
    allowed = profile.env_allowlist
    if allowed is None and profile.protocol != "0.4":
        return _without_turns(environ)
    kept = BASE_VARIABLES.union(allowed or ())
    return {
        name: value
        for name, value in environ.items()
        if (name in kept or name.startswith(_LOCALE_PREFIX)) and not name.startswith(_OWN_PREFIX)
    }


class _WithoutTurns:
    """An environment without what tells turns. Most turns find the same one: then the last result is copied."""

    def __init__(self) -> None:
        self._last: tuple[dict[str, str], dict[str, str]] = ({}, {})

    def __call__(self, environ: Mapping[str, str]) -> dict[str, str]:
        source, kept = self._last
        if source != environ:
            source = dict(environ)
            kept = {name: value for name, value in source.items() if not name.startswith(_OWN_PREFIX)}
            self._last = source, kept
        return dict(kept)


_without_turns = _WithoutTurns()


def _own_variables(profile: Profile, values: Values, environ: Mapping[str, str], warnings: list[str]) -> dict[str, str]:
    allowed = None if profile.env_allowlist is None else BASE_VARIABLES.union(profile.env_allowlist)

    def variable(name: str) -> str:
        if allowed is not None and name not in allowed and not name.startswith(_LOCALE_PREFIX):
            warnings.append(f"`${{{name}}}` in the profile's `env` is not on its `env_allowlist` and was left empty")
            return ""
        return environ.get(name, "")

    found = {}
    for name, template in profile.env.items():
        if name in VARIABLES:
            continue
        found[name] = _for_system(expand(template, values, variable))
        _check(found[name], f"The variable `{name}`", len(name) + 1, "Use `stdin: message` for long messages.")
    for name, value in profile.plain_env.items():
        found[name] = _for_system(value)
        _check(found[name], f"The variable `{name}`", len(name) + 1, "Use a file for what is longer.")
    return found


def _turn_variables(profile: Profile, turn: TurnRequest, warnings: list[str]) -> dict[str, str]:
    found = turn_environment(turn)
    for name, value in found.items():
        if not value.isascii():
            found[name] = _for_system(value)
    message = found["AGENT_MESSAGE"]
    if "\0" in message:
        raise ConfigError("The message holds a NUL character, which no program can receive.", hint="Remove it.")
    if len(message) > _SURELY_SHORT and _is_too_long(message, len("AGENT_MESSAGE=")):
        if profile.stdin != "message":
            raise ConfigError(
                f"The message is longer than the {MAX_STRING} bytes that one variable can hold.",
                hint="Shorten it, or use `stdin: message` in the profile and let the agent read its input.",
            )
        del found["AGENT_MESSAGE"]
        warnings.append("the message is too long for `AGENT_MESSAGE`; the agent finds it on its standard input alone")
    for name, value in found.items():
        if ("\0" in value or len(value) > _SURELY_SHORT) and name != "AGENT_MESSAGE":
            _check(value, f"`{name}`", len(name) + 1, "Use shorter names and addresses.")
    return found


def _stdin(profile: Profile, turn: TurnRequest, has_line: bool) -> bytes | None:
    if has_line:
        from trunkline.wires.agentproc.codec_ndjson import encode_turn

        return encode_turn(_as_text(turn))
    return _bytes(turn.message) if profile.stdin == "message" else None


def _as_text(turn: TurnRequest) -> TurnRequest:
    """The turn with texts that JSON can hold."""
    return turn.replace(**{field: _bytes(getattr(turn, field)).decode("utf-8", "replace") for field in _TEXTS})


def _check(text: str, what: str, named: int, hint: str) -> None:
    if "\0" in text:
        raise ConfigError(f"{what} holds a NUL character, which no program can receive.", hint="Remove it.")
    if _is_too_long(text, named):
        raise ConfigError(f"{what} is longer than the {MAX_STRING} bytes that a program can receive.", hint=hint)


def _is_too_long(text: str, named: int) -> bool:
    return len(text) > _SURELY_SHORT and len(os.fsencode(text)) + named >= MAX_STRING


def make_directory(path: str, root: str) -> None:
    """Make a session's own directory. Why it cannot be made, whoever wants to work there will tell."""
    with suppress(OSError):
        if os.path.isdir(root):
            os.makedirs(path, exist_ok=True)
