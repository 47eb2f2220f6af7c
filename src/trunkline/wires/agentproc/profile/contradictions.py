"""Keys of a profile that do not go together. The profile works; but a line of it does not do what it seems to."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trunkline.wires.agentproc.launch import leads_down
from trunkline.wires.agentproc.profile import Profile
from trunkline.wires.agentproc.profile.placeholders import NAMES, from_the_chat, used
from trunkline.wires.agentproc.profile.safety import danger, is_shell

#: Whoever writes one of these has an agent of protocol 0.4 in mind.
NEW_STYLE = ("executor", "permission", "budget_secs", "deadline", "run_lock")

#: What placeholders are in the first turn of a session, as far as it matters for a path.
_FIRST_TURN = {**dict.fromkeys(NAMES, "x"), "SESSION_ID": ""}
#: Words that only a shell understands, and commands that only a shell has.
_OPERATORS = frozenset(("|", "||", "&&", "&", ";", ">", ">>", "<", "<<<", "2>", "2>&1", "&>"))
_BUILTINS = frozenset(("cd", "export", "source", ".", "set", "ulimit", "umask", "alias", "unset"))
NO_SHELL = "Use `cwd:` for a directory and `env:` for variables, or write a script and run that."

_ON_STDIN = 'with `protocol: "0.4"`: the turn is one JSON line on standard input.'


def contradictions(profile: Profile, given: Collection[str]) -> Iterator[tuple[str, str]]:
    """Which of the given keys have no effect, or not the one that was meant, and why."""
    if (what := shell_syntax(profile)) is not None:
        yield "command", f"holds `{what}`, and no shell reads it. {NO_SHELL}"
    if profile.allow_unsafe and danger(profile) is None:
        yield "allow_unsafe", "is not needed: nothing here lets a message be read as code."
    if profile.stream is not None:
        yield from _with_a_stream(profile, given)
    elif profile.protocol == "0.1":
        yield from _in_old_style(profile, given)
    elif profile.protocol == "0.4":
        yield from _in_new_style(profile, given)
    elif profile.permission and profile.stdin == "message":
        yield "permission", "has no effect with `stdin: message`, which ends the agent's input."
    if not leads_down(profile.cwd or "", _FIRST_TURN):
        yield "cwd", "lets no session begin: `{{SESSION_ID}}` is empty in its first turn. Use `{{SESSION_NAME}}`."
    # Where the profile lies, no message decides.
    if profile.cwd is not None and profile.cwd.startswith("{{") and (what := from_the_chat(profile.cwd.split("/")[0])):
        yield "cwd", f"begins with `{what}`: whoever writes decides in which directory the agent works."


def shell_syntax(profile: Profile) -> str | None:
    """What in the command was meant for a shell, although none is there."""
    # Also where it was not split: nobody names a program so.
    words = " ".join(profile.command).split()
    program, *rest = words
    name, equals, _ = program.partition("=")
    if program in _BUILTINS or (equals and name.isidentifier()):
        return program
    # Wherever a shell is named there may be one.
    if any(map(is_shell, words)):
        return None
    return next((word for word in rest if word in _OPERATORS), None)


def _with_a_stream(profile: Profile, given: Collection[str]) -> Iterator[tuple[str, str]]:
    from trunkline.wires.agentproc.streams import DIALOGUES

    for key in ("protocol", "session_line_prefix"):
        if key in given:
            yield key, f"has no effect: the output is read as `stream: {profile.stream}`."
    if profile.stream in DIALOGUES:
        if "stdin" in given:
            yield "stdin", f"has no effect with `stream: {profile.stream}`, which gives the program all it needs."
    elif profile.permission:
        asking = " or ".join(f"`stream: {name}`" for name in DIALOGUES)
        yield "permission", f"has no effect with `stream: {profile.stream}`: only a program with {asking} can ask."


def _in_old_style(profile: Profile, given: Collection[str]) -> Iterator[tuple[str, str]]:
    if profile.permission and "protocol" in given:
        yield "permission", 'has no effect: only an agent of `protocol: "0.4"` can ask.'
    elif "protocol" not in given:
        keys = [key for key in NEW_STYLE if key in given and (key != "permission" or profile.permission)]
        for key in keys[:1]:
            yield key, 'belongs to protocol 0.4. If the agent speaks that, add `protocol: "0.4"`.'


def _in_new_style(profile: Profile, given: Collection[str]) -> Iterator[tuple[str, str]]:
    for key in ("stdin", "session_line_prefix"):
        if key in given:
            yield key, f"has no effect {_ON_STDIN}"
    for key in ("command", "args", "resume_args"):
        if any("MESSAGE" in used(text) for text in getattr(profile, key)):
            yield key, f"holds `{{{{MESSAGE}}}}`, which is not needed {_ON_STDIN}"
