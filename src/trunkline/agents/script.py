"""Scripts: conversations written down, for `agents.scripted` to play. `docs/reference/script.md` has the format.

A script is checked as a whole when it is loaded: a key, a placeholder or a name that means nothing is a `ConfigError`
which says where it stands. What passes can be played to its end.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

from trunkline.agents import placeholders
from trunkline.base import document
from trunkline.base.document import DocumentError, Part, listed
from trunkline.base.nearest import suggestion
from trunkline.base.values import Value
from trunkline.core.agent import Capabilities
from trunkline.core.events import (
    Audio,
    Category,
    Event,
    Extension,
    Failed,
    Notice,
    Outcome,
    OutputType,
    Plan,
    PlanEntry,
    PlanStatus,
    Priority,
    Progress,
    SessionIdentified,
    TextDelta,
    ThinkingDelta,
)
from trunkline.core.fault_table import TABLE
from trunkline.core.faults import ConfigError
from trunkline.core.usage import Usage

#: What errors call the whole of a script.
WHAT = "the script"
_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")
_SUFFIXES = (".yaml", ".yml", ".json")

Status = Literal["success", "error"]
Answer = Literal["approve", "deny"]

#: The tools whose category the protocol document fixes (1.5); for any other the script must say it.
CATEGORIES: dict[str, Category] = {
    "Read": "info",
    "Glob": "info",
    "Grep": "info",
    "Write": "edit",
    "Edit": "edit",
    "Bash": "exec",
    "Spawn": "exec",
}

#: Placeholders that every text of a turn may use.
WORDS = ("input", "turn", "history", "files")


class ScriptStep(Value):
    """One thing that the agent does."""


class Say(ScriptStep):
    """Yield an event, its texts filled in."""

    event: Event


class Hear(ScriptStep):
    """Be told something in the middle of the turn, as when it was recorded."""

    text: str


class Wait(ScriptStep):
    """Do nothing for a while."""

    seconds: float


class ScriptCall(Value):
    """One use of a tool."""

    name: str
    category: Category
    args: Mapping[str, Any]
    description: str
    id: str | None = None
    takes: float = 0.0
    run: tuple[str, ...] | None = None
    output: str | None = None
    output_type: OutputType = "text"
    status: Status | None = None
    metadata: Mapping[str, Any] | None = None
    approved: tuple[ScriptStep, ...] = ()
    denied: tuple[ScriptStep, ...] = ()
    answer: Answer = "approve"
    """What a person said to it when it was recorded; a replay says that again."""
    reason: str = ""
    """Why it was denied then."""


class UseTools(ScriptStep):
    """Request tools, all at once, and go on when each of them has ended or was denied."""

    calls: tuple[ScriptCall, ...]


class Crash(ScriptStep):
    """Let an exception out of the turn."""

    message: str


class Vanish(ScriptStep):
    """End the turn without saying so."""


class Hang(ScriptStep):
    """Never go on. `deaf`: not even when told to stop."""

    deaf: bool = False


class ScriptTurn(Value):
    """The answer to one message."""

    steps: tuple[ScriptStep, ...]
    when: re.Pattern[str] | None = None
    usage: Usage | None = None
    outcome: Outcome = "success"
    message: str | None = None
    """What it answered when it was recorded; a replay says that again."""


class Script(Value):
    """A whole script."""

    name: str
    turns: tuple[ScriptTurn, ...]
    capabilities: Capabilities
    verbatim: bool = False
    """Its texts are said as they stand: nothing in them is a placeholder."""


def bundled() -> list[str]:
    """The names of the scripts that come with Trunkline."""
    return sorted(name.rpartition(".")[0] for name in os.listdir(_FOLDER) if name.endswith(_SUFFIXES))


def load(spec: str) -> Script:
    """The script of a file, or the bundled script of that name.

    Raises:
        ConfigError: there is none, or it is not a good script; the text says where and why.
    """
    path = _locate(spec)
    try:
        return _script(document.read(path, WHAT), os.path.basename(spec))
    except DocumentError as error:
        raise ConfigError.of(error) from None
    except OSError as error:
        raise ConfigError(f"The script `{path}` cannot be read: {os.strerror(error.errno or 0)}.") from None


def parse(data: bytes, file: str, name: str = "script") -> Script:
    """The script of a text, called `name` unless it gives itself one. `file` is what errors call it.

    Raises:
        ConfigError: it is not a good script.
    """
    try:
        return _script(document.parse(data, file, WHAT), name)
    except DocumentError as error:
        raise ConfigError.of(error) from None


def _script(part: Part, name: str) -> Script:
    found = part.members(("name", "description", "capabilities", "verbatim", "turns"), required=("turns",))
    verbatim = "verbatim" in found and found["verbatim"].flag()
    turns = tuple(_turn(turn, verbatim=verbatim) for turn in found["turns"].items())
    if not turns:
        raise found["turns"].wrong("must contain at least one turn.")
    for note in ("name", "description"):
        if note in found:
            found[note].text()
    return Script(
        name=found["name"].text() if "name" in found else name,
        turns=turns,
        capabilities=_capabilities(found.get("capabilities"), turns),
        verbatim=verbatim,
    )


def _locate(spec: str) -> str:
    if os.path.basename(spec) != spec or spec.endswith(_SUFFIXES):
        return spec
    for suffix in _SUFFIXES:
        path = os.path.join(_FOLDER, spec + suffix)
        if os.path.exists(path):
            return path
    if os.path.isfile(spec):
        return spec
    names = bundled()
    hint = suggestion(spec, names) or f" Those that come with Trunkline are {listed(names)}; a file needs its ending."
    raise ConfigError(f"There is no script `{spec}`.{hint}")


#: What a script may say of itself: yes or no to each.
_CAPABILITIES = tuple(
    name for name in Capabilities.__fields__ if name not in ("effort_levels", "sandbox", "model", "effort")
)


def _capabilities(part: Part | None, turns: Iterable[ScriptTurn]) -> Capabilities:
    """What the script says it can do; by default it can ask, be resumed, and think if it does."""
    default = Capabilities(approval=True, resume=True, thinking=any(_thinks(turn.steps) for turn in turns))
    if part is None:
        return default
    return default.replace(**{name: member.flag() for name, member in part.members(_CAPABILITIES).items()})


def _thinks(steps: Iterable[ScriptStep]) -> bool:
    for step in steps:
        match step:
            case Say(event=ThinkingDelta()):
                return True
            case UseTools(calls=calls) if any(_thinks((*call.approved, *call.denied)) for call in calls):
                return True
    return False


def _turn(part: Part, *, verbatim: bool) -> ScriptTurn:
    found = part.members(("when", "message", "steps", "usage", "outcome"), required=("steps",))
    when = _pattern(found["when"]) if "when" in found else None
    steps = _steps(found["steps"], () if verbatim else (*WORDS, *(when.groupindex if when else ())))
    return ScriptTurn(
        steps=steps,
        when=when,
        usage=_usage(found["usage"]) if "usage" in found else None,
        outcome=_outcome(found.get("outcome"), steps),
        message=found["message"].text() if "message" in found else None,
    )


def _pattern(part: Part) -> re.Pattern[str]:
    try:
        pattern = re.compile(part.text(), re.IGNORECASE)
    except re.error as error:
        raise part.wrong(f"is not a regular expression: {error}.") from None
    for name in pattern.groupindex:
        if name in (*WORDS, "reason", "output"):
            raise part.wrong(f"has a group `{name}`, which is the name of a placeholder. Rename the group.")
    return pattern


def _usage(part: Part) -> Usage:
    return Usage(**{name: member.count() for name, member in part.members(Usage.__fields__).items()})


def _outcome(part: Part | None, steps: tuple[ScriptStep, ...]) -> Outcome:
    """What the script says; else `error` for a turn that fails last, and `success` for all others."""
    if part is not None:
        chosen: Outcome = _chosen(part, Outcome)
        return chosen
    match steps:
        case (*_, Say(event=Failed())):
            return "error"
        case _:
            return "success"


def _steps(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    return tuple(step for item in part.items() for step in _step(item, names))


def _step(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    found = part.members(tuple(_STEPS))
    if len(found) != 1:
        raise part.wrong(f"must have exactly one key, of {listed(_STEPS)}.")
    ((kind, member),) = found.items()
    return _STEPS[kind](member, names)


def _texts(make: Callable[[str], Event]) -> Callable[[Part, tuple[str, ...]], tuple[ScriptStep, ...]]:
    """A step that says a text, or each text of a list."""

    def steps(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
        texts = part.items() if isinstance(part.value, list) else [part]
        return tuple(Say(make(_filled(text, names).text())) for text in texts)

    return steps


def _steered(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    return (Hear(_filled(part, names).text()),)


def _sound(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    found = part.members(("data", "rate", "channels"), required=("data", "rate"))
    try:
        samples = base64.b64decode(found["data"].text(), validate=True)
    except ValueError:
        raise found["data"].wrong("must be base64.") from None
    channels = found["channels"].count() if "channels" in found else 1
    return (Say(Audio(samples, found["rate"].count(), channels)),)


def _extension(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    found = _filled(part, names).members(("kind", "data"), required=("kind",))
    return (Say(Extension(found["kind"].text(), found["data"].object() if "data" in found else {})),)


def _plan(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    return (Say(Plan(tuple(_plan_entry(_filled(item, names)) for item in part.items()))),)


def _plan_entry(part: Part) -> PlanEntry:
    if isinstance(part.value, str):
        return PlanEntry(part.text())
    found = part.members(PlanEntry.__fields__, required=("content",))
    entry = PlanEntry(found["content"].text())
    return entry.replace(
        priority=_chosen(found["priority"], Priority) if "priority" in found else entry.priority,
        status=_chosen(found["status"], PlanStatus) if "status" in found else entry.status,
    )


def _fail(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    found = _filled(part, names).members(("kind", "message", "retryable"), required=("kind", "message"))
    kind = found["kind"].choice(TABLE)
    retryable = found["retryable"].flag() if "retryable" in found else TABLE[kind].retryable
    return (Say(Failed(kind, found["message"].text(), retryable)),)


def _vanish(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    if not part.flag():
        raise part.wrong("must be `true`; leave the step out otherwise.")
    return (Vanish(),)


def _hang(part: Part, names: tuple[str, ...]) -> tuple[ScriptStep, ...]:
    if part.value is not True and part.value != "deaf":
        raise part.wrong("must be `true`, or `deaf` to ignore a stop as well.")
    return (Hang(deaf=part.value == "deaf"),)


def _call(part: Part, names: tuple[str, ...]) -> ScriptCall:
    found = part.members(ScriptCall.__fields__, required=("name",))
    after = {key: found.pop(key) for key in ("approved", "denied") if key in found}
    for member in found.values():
        _filled(member, names)
    name = found["name"].text()
    if name not in CATEGORIES and "category" not in found:
        raise part.wrong(f"needs a `category` for the tool `{name}`: one of {listed(get_args(Category))}.")
    call = ScriptCall(
        name=name,
        category=_chosen(found["category"], Category) if "category" in found else CATEGORIES[name],
        args=found["args"].object() if "args" in found else {},
        description=_one_line(found["description"]) if "description" in found else name,
        approved=_steps(after["approved"], names and (*names, "output")) if "approved" in after else (),
        denied=_steps(after["denied"], names and (*names, "reason")) if "denied" in after else (),
    )
    return call.replace(**_outcome_of_call(found))


def _outcome_of_call(found: Mapping[str, Part]) -> dict[str, Any]:
    """The keys that say how a call goes, as far as they are there."""
    read: dict[str, Callable[[Part], Any]] = {
        "id": Part.text,
        "takes": Part.seconds,
        "run": _argv,
        "output": Part.text,
        "output_type": lambda part: _chosen(part, OutputType),
        "status": lambda part: _chosen(part, Status),
        "metadata": Part.object,
        "answer": lambda part: _chosen(part, Answer),
        "reason": Part.text,
    }
    return {key: check(found[key]) for key, check in read.items() if key in found}


def _argv(part: Part) -> tuple[str, ...]:
    argv = part.texts()
    if not argv:
        raise part.wrong("must name a program.")
    return argv


def _one_line(part: Part) -> str:
    text = part.text()
    if len(text.splitlines()) > 1:
        raise part.wrong("must be one line.")
    return text


def _filled(part: Part, names: tuple[str, ...]) -> Part:
    """The part, whose placeholders are all known. Without any names, nothing is one."""
    for name in placeholders.names_in(part.value) if names else ():
        if name not in names:
            hint = suggestion(name, names) or f" Here are {listed(names)}."
            raise part.wrong(f"has the placeholder `{{{{{name}}}}}`, which has no meaning here.{hint}")
    return part


def _chosen(part: Part, kind: Any) -> Any:
    """One of the names of a `Literal`."""
    return part.choice(get_args(kind))


_STEPS: dict[str, Callable[[Part, tuple[str, ...]], tuple[ScriptStep, ...]]] = {
    "text": _texts(TextDelta),
    "thinking": _texts(ThinkingDelta),
    "wait": lambda part, names: (Wait(part.seconds()),),
    "tool": lambda part, names: (UseTools((_call(part, names),)),),
    "tools": lambda part, names: (UseTools(tuple(_call(item, names) for item in part.items())),),
    "notice": _texts(Notice),
    "progress": _texts(Progress),
    "plan": _plan,
    "steered": _steered,
    "sound": _sound,
    "extension": _extension,
    "fail": _fail,
    "raise": lambda part, names: (Crash(_filled(part, names).text()),),
    "vanish": _vanish,
    "hang": _hang,
    "identify": _texts(SessionIdentified),
}
