"""Keys of a profile that do not go together. The profile works; but a line of it does not do what it seems to."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trunkline.wires.agentproc.placeholders import from_the_chat, used
from trunkline.wires.agentproc.profile import Profile

#: Whoever writes one of these has an agent of protocol 0.4 in mind.
_NEW_STYLE = ("executor", "budget_secs", "deadline", "run_lock")

_ON_STDIN = 'with `protocol: "0.4"`: the turn is one JSON line on standard input.'


def contradictions(profile: Profile, given: Collection[str]) -> Iterator[tuple[str, str]]:
    """Which of the given keys have no effect, or not the one that was meant, and why."""
    if profile.stream is not None:
        yield from _with_a_stream(profile, given)
    elif profile.protocol == "0.1":
        yield from _in_old_style(profile, given)
    elif profile.protocol == "0.4":
        yield from _in_new_style(profile, given)
    elif profile.permission and profile.stdin == "message":
        yield "permission", "has no effect with `stdin: message`, which ends the agent's input."
    if profile.cwd is not None and profile.cwd.startswith("{{") and (what := from_the_chat(profile.cwd)):
        yield "cwd", f"begins with `{what}`: whoever writes decides in which directory the agent works."


def _with_a_stream(profile: Profile, given: Collection[str]) -> Iterator[tuple[str, str]]:
    keys = ("protocol", "session_line_prefix", *(("permission",) if profile.permission else ()))
    for key in keys:
        if key in given:
            yield key, f"has no effect: the output is read as `stream: {profile.stream}`."


def _in_old_style(profile: Profile, given: Collection[str]) -> Iterator[tuple[str, str]]:
    if profile.permission and "protocol" in given:
        yield "permission", 'has no effect: only an agent of `protocol: "0.4"` can ask.'
    elif "protocol" not in given:
        keys = [key for key in _NEW_STYLE if key in given] + (["permission"] if profile.permission else [])
        for key in keys[:1]:
            yield key, 'belongs to protocol 0.4. If the agent speaks that, add `protocol: "0.4"`.'


def _in_new_style(profile: Profile, given: Collection[str]) -> Iterator[tuple[str, str]]:
    for key in ("stdin", "session_line_prefix"):
        if key in given:
            yield key, f"has no effect {_ON_STDIN}"
    for key in ("command", "args", "resume_args"):
        if any("MESSAGE" in used(text) for text in getattr(profile, key)):
            yield key, f"holds `{{{{MESSAGE}}}}`, which is not needed {_ON_STDIN}"
