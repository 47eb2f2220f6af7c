"""Profiles as people write them: YAML files, flat or with everything under `agentproc:`.

    load(path)      a file
    parse(text)     its text
    find(name)      a file, or a profile that comes with this package

What cannot be meant is refused, with file, line and key; what can be passed over is passed over, and noted in the
profile's `warnings` with the same. A profile that hands a message to something that may run it is refused, too, unless
it says `allow_unsafe: true` (`safety`).
"""

from __future__ import annotations

import os
from typing import cast

from trunkline.base import document
from trunkline.base.document import DocumentError, Part
from trunkline.base.nearest import hint_for
from trunkline.base.regular import NotRegular
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.codec import VARIABLES
from trunkline.wires.agentproc.messages import DIALECTS
from trunkline.wires.agentproc.profile import LONGEST_TIMEOUT_SECS, Profile, Protocol
from trunkline.wires.agentproc.profile.contradictions import NEW_STYLE, contradictions
from trunkline.wires.agentproc.profile.placeholders import NAMES, mistaken, used
from trunkline.wires.agentproc.profile.safety import danger

#: What errors call the whole of it.
WHAT = "the profile"
#: A tree that is being ended holds up whoever ended it.
LONGEST_KILL_GRACE_SECS = 3600.0

#: Every key of a profile, in the order of the documentation.
KEYS = (
    "command", "args", "resume_args", "stdin", "cwd", "env", "env_allowlist", "timeout_secs", "kill_grace_secs",
    "max_reply_chars", "truncation_suffix", "include_stderr_in_reply", "send_error_reply", "streaming",
    "session_line_prefix", "protocol", "permission", "stream", "allow_unsafe", "name", "description",
)  # fmt: skip
#: What files may say about themselves besides: read by people and catalogues, not by us.
ABOUT = ("name", "description", "cli", "cli_install", "tested", "maintainer", "tags", "notes", "version", "homepage")
#: Keys that other runners know, and what to do without them.
ELSEWHERE = {
    "executor": "Trunkline runs `command` instead.",
    "budget_secs": "Use `timeout_secs`, which is the whole time of a turn.",
    "deadline": "Use `timeout_secs`, which is the whole time of a turn.",
    "run_lock": "It is not needed: no process outlives its turn.",
    "env_inherit": "List what the agent may see in `env_allowlist`.",
    "cli_session_first_line_prefix": "It is called `session_line_prefix`.",
}  # fmt: skip
#: Other words for our keys, as other programs have them.
SYNONYMS = {
    **dict.fromkeys(("cmd", "program", "executable", "exec", "run", "entrypoint"), "command"),
    **dict.fromkeys(("arguments", "argv", "parameters", "params", "options", "flags"), "args"),
    **dict.fromkeys(("environment", "environ", "envs", "vars", "variables"), "env"),
    **dict.fromkeys(("workdir", "working_dir", "working_directory", "work_dir", "dir", "directory", "path"), "cwd"),
    **dict.fromkeys(("timeout", "timeout_seconds", "time_limit", "max_time"), "timeout_secs"),
    **dict.fromkeys(("kill_grace", "grace", "grace_secs"), "kill_grace_secs"),
    **dict.fromkeys(("max_chars", "max_length", "limit"), "max_reply_chars"),
    **dict.fromkeys(("input",), "stdin"),
    **dict.fromkeys(("stream_partials", "partials"), "streaming"),
}
_PROTOCOLS = (*DIALECTS, "auto")
#: Keys that only protocol 0.1 has, besides `{{MESSAGE}}`.
_OLD_STYLE = ("stdin", "session_line_prefix")
_PLACEHOLDERS = ", ".join(f"`{{{{{name}}}}}`" for name in NAMES)
_COMMAND_LIST = "Write the program alone here, and the rest as `args`."


def find(name_or_path: str) -> Profile:
    """The profile of that name that comes with us; if there is none, the one in a file of that name.

    A bare name is never a file of a directory that somebody merely works in, if it can be one of ours; `./codex` is. A
    leading `~` is the home directory.

    Raises:
        ConfigError: there is neither, or it cannot be used.
    """
    from trunkline.wires.agentproc import hub

    if name_or_path in hub.names():
        return hub.load(name_or_path)
    path = os.path.expanduser(name_or_path)
    if os.path.exists(path) and not os.path.isdir(path):
        return load(path)
    if os.path.isdir(path):
        raise ConfigError(f"`{path}` is a directory.", hint="Give the path of a profile in it.")
    if is_path(name_or_path):
        raise ConfigError(f"There is no profile `{os.path.abspath(path)}`.", hint="Check the path.")
    hint = hint_for(name_or_path, hub.names()) or "See `trunkline agentproc hub list`, or give the path of a file."
    raise ConfigError(f"There is no profile `{name_or_path}`.", hint=hint)


def is_path(name_or_path: str) -> bool:
    """Whether it can only be meant as the path of a file."""
    return os.sep in name_or_path or name_or_path.startswith("~") or name_or_path.endswith((".yaml", ".yml"))


def load(path: str) -> Profile:
    """The profile in a file.

    Raises:
        ConfigError: it cannot be read, or cannot be used.
    """
    try:
        return _profile(document.read(path, WHAT, as_written=True), path, os.path.dirname(os.path.abspath(path)))
    except DocumentError as error:
        raise ConfigError.of(error) from None
    except NotRegular:
        problem = "it is a directory" if os.path.isdir(path) else "it is not a file"
        raise ConfigError(f"The profile `{path}` cannot be read: {problem}.") from None
    except OSError as error:
        raise ConfigError(f"The profile `{path}` cannot be read: {os.strerror(error.errno or 0)}.") from None


def parse(text: str, source: str, directory: str | None) -> Profile:
    """The profile that a text describes. `source` is what errors call it, `directory` where it belongs.

    Raises:
        ConfigError: it cannot be used.
    """
    try:
        data = text.encode("utf-8", "surrogatepass")
        return _profile(document.parse(data, source, WHAT, as_written=True), source, directory)
    except DocumentError as error:
        raise ConfigError.of(error) from None


def _profile(root: Part, source: str, directory: str | None) -> Profile:
    if not root.is_mapping:
        problem = "is empty." if root.is_null else "must be a mapping."
        raise root.wrong(problem, "Write `command: PROGRAM`.")
    for part in root.walk():
        if "\0" in part.as_text:
            raise part.wrong("holds a NUL character, which no program can receive.", "Remove it.")
    return _Reading(source, directory, root.all_members()).profile()


class _Reading:
    """One profile while it is read."""

    def __init__(self, source: str, directory: str | None, members: dict[str, Part]) -> None:
        self._source = source
        self._directory = directory
        self._warnings: list[str] = []
        nested = members.get("agentproc")
        self._about = members
        self._fields = members
        if nested is not None and nested.is_mapping:
            self._fields = nested.all_members()
            self._warn_of_unknown(members, ("agentproc", *ABOUT))
        self._warn_of_unknown(self._fields, (*KEYS, *ABOUT))

    def profile(self) -> Profile:
        fields = {key: field for key, field in self._fields.items() if not field.is_null}
        protocol = self._protocol(fields)
        command = self._command(fields, protocol)
        default = Profile(command)
        profile = Profile(
            command=command,
            args=fields["args"].texts_written() if "args" in fields else (),
            stdin="message" if "stdin" in fields and self._stdin(fields["stdin"]) == "message" else "none",
            cwd=fields["cwd"].text(empty=False) if "cwd" in fields else None,
            env=self._env(fields),
            env_allowlist=self._allowlist(fields),
            timeout_secs=self._timeout(fields),
            kill_grace_secs=self._kill_grace(fields),
            max_reply_chars=fields["max_reply_chars"].count()
            if "max_reply_chars" in fields
            else default.max_reply_chars,
            truncation_suffix=_text(fields, "truncation_suffix", default.truncation_suffix),
            include_stderr_in_reply=_flag(fields, "include_stderr_in_reply", default.include_stderr_in_reply),
            send_error_reply=_flag(fields, "send_error_reply", default.send_error_reply),
            streaming=_flag(fields, "streaming", default.streaming),
            session_line_prefix=self._session_line_prefix(fields),
            protocol=protocol,
            permission=_flag(fields, "permission", default.permission),
            stream=self._stream(fields),
            allow_unsafe=_flag(fields, "allow_unsafe", default.allow_unsafe),
            resume_args=fields["resume_args"].texts_written() if "resume_args" in fields else (),
            name=self._own_words("name"),
            description=self._own_words("description"),
            directory=self._directory,
        )
        if protocol == "auto" and "protocol" not in fields and not profile.allow_unsafe and danger(profile) is not None:
            # What would run its input is none that reads a turn there.
            split = command if len(command) > 1 else self._command(fields, "0.1")
            profile = profile.replace(protocol="0.1", command=split)
        self._refuse_danger(profile, fields)
        self._warn_of_contradictions(profile, fields)
        self._warn_of_mistaken(fields)
        return profile.replace(warnings=tuple(self._warnings))

    # Single fields

    def _protocol(self, fields: dict[str, Part]) -> Protocol:
        """What it says; else `auto`, unless it has what only 0.1 knows."""
        if "protocol" in fields:
            return cast(Protocol, fields["protocol"].choice(_PROTOCOLS))
        return "0.1" if _is_old_style(fields) else "auto"

    def _command(self, fields: dict[str, Part], protocol: Protocol) -> tuple[str, ...]:
        """The program and its first words: in 0.1 it is split, in 0.4 never.

        Where that is not known, it is split unless other keys of 0.4 are there, or a program lies at the whole of it.
        """
        if "command" in fields:
            whole = fields["command"].text(empty=False, list_hint=_COMMAND_LIST)
            is_unknown = protocol == "auto" and not _is_old_style(fields)
            is_new = is_unknown and any(key in fields for key in NEW_STYLE)
            if protocol == "0.4" or is_new or (is_unknown and self._is_program(whole.strip(), fields)):
                return (whole.strip(),)
            words = tuple(whole.split())
            if any(word.startswith(("'", '"')) for word in words):
                problem = "is split at every space, also in quotes. Put arguments with spaces in `args`."
                self._warnings.append(fields["command"].told(problem))
            return words
        if "executor" in fields:
            raise fields["executor"].wrong("is not known here.", "Name the program to run as `command`.")
        # A key that nobody knows may be the one that was meant.
        hint = " ".join(self._warnings) or "Write `command: PROGRAM`."
        raise ConfigError(f"{self._source}: `command` is missing.", hint=hint)

    def _is_program(self, command: str, fields: dict[str, Part]) -> bool:
        """Whether the whole of a command, spaces and all, is the path of a file."""
        if not may_be_one_path(command):
            return False
        here = self._directory or os.getcwd()
        path = os.path.expanduser(command.replace("{{PROFILE_DIR}}", here))
        # A relative one is found from where the agent runs.
        cwd = fields["cwd"].as_text.replace("{{PROFILE_DIR}}", here) if "cwd" in fields else os.curdir
        return os.path.isfile(os.path.join(here if "cwd" in fields else "", os.path.expanduser(cwd), path))

    def _stdin(self, field: Part) -> str:
        return field.choice(("none", "message"))

    def _env(self, fields: dict[str, Part]) -> dict[str, str]:
        if "env" not in fields:
            return {}
        found = {}
        for name, field in fields["env"].all_members().items():
            if not name or "=" in name or "\0" in name:
                raise field.wrong("cannot be the name of a variable.", "Rename it.")
            if name in VARIABLES:
                self._warnings.append(field.told("has no effect: that variable belongs to the protocol."))
            found[name] = field.written('Write "" for an empty value, or remove the line.')
        return found

    def _allowlist(self, fields: dict[str, Part]) -> tuple[str, ...] | None:
        if "env_allowlist" not in fields:
            return None
        for item in fields["env_allowlist"].items():
            name = item.written("Remove the line.")
            if "$" in name or "=" in name or not name.strip():
                raise item.wrong("must be the name of a variable.", "Write `NAME`, not `${NAME}` or `NAME=value`.")
        return fields["env_allowlist"].texts_written()

    def _timeout(self, fields: dict[str, Part]) -> float | None:
        if "timeout_secs" not in fields:
            return Profile(()).timeout_secs
        seconds = fields["timeout_secs"].seconds()
        if seconds > LONGEST_TIMEOUT_SECS:
            problem = f"is more than {LONGEST_TIMEOUT_SECS:.0f} and counts as no limit; `0` says so."
            self._warnings.append(fields["timeout_secs"].told(problem))
            return None
        return seconds or None

    def _kill_grace(self, fields: dict[str, Part]) -> float:
        if "kill_grace_secs" not in fields:
            return Profile(()).kill_grace_secs
        seconds = fields["kill_grace_secs"].seconds()
        if seconds > LONGEST_KILL_GRACE_SECS:
            raise fields["kill_grace_secs"].wrong(f"must be at most {LONGEST_KILL_GRACE_SECS:.0f} seconds.")
        return seconds

    def _session_line_prefix(self, fields: dict[str, Part]) -> str:
        if "session_line_prefix" not in fields:
            return Profile(()).session_line_prefix
        field = fields["session_line_prefix"]
        prefix = field.text(empty=False)
        if "\n" in prefix or "\r" in prefix:
            raise field.wrong("must not hold a line feed: it is the beginning of a line.")
        if prefix in ("AGENT_PARTIAL:", "AGENT_ERROR:"):
            raise field.wrong(f"must not be `{prefix}`, which says something else.")
        return prefix

    def _stream(self, fields: dict[str, Part]) -> str | None:
        if "stream" not in fields:
            return None
        from trunkline.wires.agentproc import streams

        return fields["stream"].choice(streams.names())

    def _own_words(self, key: str) -> str:
        field = self._fields.get(key) or self._about.get(key)
        return "" if field is None or field.is_null else field.written("")

    # What is wrong between fields

    def _refuse_danger(self, profile: Profile, fields: dict[str, Part]) -> None:
        found = None if profile.allow_unsafe else danger(profile)
        if found is None:
            return
        field = fields[found.key]
        if isinstance(found.item, str):
            field = field.all_members()[found.item]
        elif found.key != "command":
            field = field.items()[found.item]
        raise field.wrong(f"is refused: {found.why}.", f"{found.hint} `allow_unsafe: true` runs it as it is.")

    def _warn_of_contradictions(self, profile: Profile, fields: dict[str, Part]) -> None:
        for key, problem in contradictions(profile, fields):
            self._warnings.append(fields[key].told(problem))

    def _warn_of_mistaken(self, fields: dict[str, Part]) -> None:
        """`{{message}}` and its like, which stay as they are."""
        for field in _texts(fields):
            for written, meant in mistaken(field.as_text):
                hint = f"Did you mean `{meant}`?" if meant else f"The placeholders are {_PLACEHOLDERS}."
                self._warnings.append(
                    field.told(f"holds `{written}`, which is not a placeholder and is left as it is. {hint}")
                )

    def _warn_of_unknown(self, members: dict[str, Part], known: tuple[str, ...]) -> None:
        for key, field in members.items():
            if key in known:
                continue
            last = field.key
            if last == "executor" and "command" in members:
                # Other runners start `command` as well where they do not know the executor.
                continue
            if last in ELSEWHERE:
                self._warnings.append(field.told(f"is not used here. {ELSEWHERE[last]}"))
            elif last in KEYS:
                self._warnings.append(field.told("is ignored: it must be under `agentproc`, like the others."))
            elif not last.startswith("x-"):
                hint = hint_for(last, known, SYNONYMS)
                self._warnings.append(str(field.unknown(hint)))


def may_be_one_path(command: str) -> bool:
    """Whether a command with spaces may be one path.

    It must say where: what a name means, the `PATH` says, and no file that lies somewhere. A relative one with nothing
    but options behind it is none.
    """
    first, *rest = command.split()
    if first.startswith(("/", "~", "{{PROFILE_DIR}}")):
        return bool(rest)
    return first.startswith(".") and any(not word.startswith("-") for word in rest)


def _is_old_style(fields: dict[str, Part]) -> bool:
    """Whether it has what only protocol 0.1 knows."""
    has_message = any("MESSAGE" in used(field.as_text) for field in _texts(fields))
    return has_message or any(key in fields for key in _OLD_STYLE)


def _texts(fields: dict[str, Part]) -> list[Part]:
    """All that may hold placeholders."""
    texts = [fields[key] for key in ("command", "cwd") if key in fields]
    texts += [item for key in ("args", "resume_args") if key in fields for item in fields[key].items()]
    return texts + list(fields["env"].all_members().values() if "env" in fields else ())


def _flag(fields: dict[str, Part], key: str, default: bool) -> bool:
    return fields[key].flag() if key in fields else default


def _text(fields: dict[str, Part], key: str, default: str) -> str:
    return fields[key].text() if key in fields else default
