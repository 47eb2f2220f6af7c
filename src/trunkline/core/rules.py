"""Permission rules: what people write down about calls, by tool and by what the call is about.

    Bash                    the whole tool
    Bash(git status:*)      commands that begin with these words
    Bash(cat:./**)          the same with files of the workspace, and no more options
    Read(~/.ssh/**)         files; patterns start at the workspace
    WebFetch(domain:x.org)  addresses
    mcp__server             all tools of an MCP server
    Skill(name)             a skill; likewise `Spawn(agent)`

`[permissions]` of the configuration files has three lists of them, `allow`, `ask` and `deny`. An allow rule counts if
it is about all of a call, a deny or ask rule if it is about any part of it. `docs/reference/permissions.md` says it
all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Literal

from trunkline.base.values import Value
from trunkline.core.events import ToolRequested

Kind = Literal["allow", "ask", "deny"]
KINDS: tuple[Kind, ...] = ("allow", "ask", "deny")
#: What counts most, first.
_STRICTEST_FIRST = KINDS[::-1]

_RULE = re.compile(r"([A-Za-z_*][\w*.-]*)(?:\((.*)\))?", re.DOTALL)
#: As much of a broken rule as tells what it is about.
_TOOL = re.compile(r"[A-Za-z_][\w-]*")
#: Which tools a rule about files is about; in a deny or ask rule for some files, also those behind the bar.
_FILE_TOOLS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "Read": (frozenset(("Read", "Grep", "Glob")), frozenset(("Edit", "Write"))),
    "Edit": (frozenset(("Edit", "Write")), frozenset()),
    "Write": (frozenset(("Write",)), frozenset(("Edit",))),
    "Grep": (frozenset(("Grep",)), frozenset()),
    "Glob": (frozenset(("Glob",)), frozenset()),
}
_SEARCHES = frozenset(("Grep", "Glob"))
#: Of these, the tools whose rules are also about the files that a command names.
_NAMED_IN_COMMANDS = frozenset(("Read", "Edit", "Write"))
#: What a rule about the names of something looks at.
_NAMES = ("Skill", "Spawn")
_DOMAIN = "domain:"
#: Tools that are asked about as a whole.
_WHOLE = frozenset(("BashOutput", "KillBash", "WebSearch", "ToolSearch", "TodoWrite", "ExitPlanMode"))
#: Other arguments of a command that change nothing about what is run.
_HARMLESS = frozenset(("timeout", "description", "run_in_background"))
#: What says how they are written, wherever it was installed from.
EXPLAINED = "trunkline permissions --help"


class Rules(Value):
    """The rules of all files together, as they are written."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    files: tuple[tuple[Kind, str, str], ...] = ()
    """Where each is written, for people: the kind, the rule, and the file."""

    def of(self, kind: Kind) -> tuple[str, ...]:
        """Those of one kind."""
        found: tuple[str, ...] = getattr(self, kind)
        return found

    def added(self, kind: Kind, rule: str, file: str) -> Rules:
        """The same with one more, or with one more file that has it."""
        if (kind, rule, file) in self.files:
            return self
        if rule not in self.of(kind):
            return self.replace(**{kind: (*self.of(kind), rule)}, files=(*self.files, (kind, rule, file)))
        # One that no file has was said at the start, and stays when the file is gone.
        said = () if self._has_file(kind, rule) else ((kind, rule, ""),)
        return self.replace(files=(*self.files, *said, (kind, rule, file)))

    def removed(self, rule: str, file: str, kind: Kind | None = None) -> Rules:
        """The same without one that is written in a file, of this kind if one is said; unless it stands elsewhere."""
        gone = [each for each in self.files if each[1:] == (rule, file) and kind in (None, each[0])]
        left = self.replace(files=tuple(each for each in self.files if each not in gone))
        lists = {
            each: tuple(text for text in self.of(each) if text != rule)
            for each, *_ in gone
            if not left._has_file(each, rule)
        }
        return left.replace(**lists)

    def _has_file(self, kind: Kind, rule: str) -> bool:
        return any(each[:2] == (kind, rule) for each in self.files)

    def file_of(self, kind: Kind, rule: str) -> str:
        """Where one is written; nothing if nobody knows."""
        return next((file for *found, file in self.files if found == [kind, rule]), "")


#: Where nobody has written any.
NO_RULES = Rules()


def no_rules() -> Rules:
    """The same, for who asks each time."""
    return NO_RULES


def limits_of(agent: object) -> Rules:
    """What an agent's own configuration asks about or denies, for where its word on what is allowed does not count."""
    own: Rules = getattr(getattr(agent, "settings", None), "permissions", NO_RULES)
    return _Limits((), own.ask, own.deny, own.files)


class _Limits(Rules):
    """What is added to them later allows nothing either."""

    def added(self, kind: Kind, rule: str, file: str) -> Rules:
        return self if kind == "allow" else super().added(kind, rule, file)


class PermissionRule(Value):
    """One rule, read."""

    tool: str
    about: str | None = None
    """What stands in the parentheses; None: it is about the whole tool."""


@lru_cache(maxsize=1024)
def read_rule(text: str) -> tuple[PermissionRule, str]:
    """A rule, and what is wrong with it; one that is wrong is about its whole tool, or, if that is not known, all."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        name = _TOOL.match(text.strip())
        return PermissionRule(name[0] if name else "*"), "it is not a tool's name, or a name with parentheses behind it"
    tool, about = found[1], found[2]
    if about is None or about.strip() == "*":
        return PermissionRule(tool), ""
    problem = _problem(tool, about.strip())
    return PermissionRule(tool, None if problem else about.strip()), problem


def _problem(tool: str, about: str) -> str:
    if not about or about == ":*":
        return "there is nothing in its parentheses"
    if tool in _FILE_TOOLS:
        from trunkline.base.patterns import BadPattern
        from trunkline.core.rules_paths import check

        try:
            check(about)
        except BadPattern as error:
            return str(error)
        return ""
    if tool == "WebFetch":
        host = about.removeprefix(_DOMAIN)
        fine = about.startswith(_DOMAIN) and re.fullmatch(r"(\*\.)?[^\s/*@]+", host)
        return "" if fine else "`WebFetch` rules are about hosts: `WebFetch(domain:example.org)`"
    if tool not in _WHOLE and not tool.startswith("mcp__"):
        return ""
    return f"rules for `{tool}` have no parentheses"


def first_match(
    kind: Kind,
    rules: Iterable[str],
    request: ToolRequested,
    workspace: str,
    may_write: Callable[[str], bool] = lambda path: False,
) -> str | None:
    """The first rule that counts for a call.

    Args:
        may_write: whether a file may be written without asking: an allow rule for a command does not say so.
    """
    mine = [(text, rule) for text in rules for rule in [_counting(kind, text)] if rule is not None]
    if kind == "allow":
        return _allowing(mine, request, workspace, may_write)
    places = cache(partial(_places_named, request, workspace))
    return next((text for text, rule in mine if _is_about(rule, request, workspace, places)), None)


def _counting(kind: Kind, text: str) -> PermissionRule | None:
    rule, problem = read_rule(text)
    return None if problem and kind == "allow" else rule


def is_unclear(rules: Rules, request: ToolRequested, workspace: str) -> bool:
    """Whether it cannot be told of a command what it comes to, although there are rules about what it must not do."""
    command = _command(request)
    if command is None:
        return False
    read = [read_rule(text)[0] for text in (*rules.deny, *rules.ask)]
    about = [(rule.tool, rule.about) for rule in read if rule.about is not None]
    tools = {tool for tool, _ in about}
    if "Bash" in tools:
        from trunkline.core.rules_commands import may_be_denied, pattern_of

        if may_be_denied([pattern_of(text) for tool, text in about if tool == "Bash"], command):
            return True
    if not tools & _NAMED_IN_COMMANDS:
        return False
    from trunkline.core.command_files import named_files

    return not named_files(command, workspace, written="Read" not in tools)[1]


def holds_back(rules: Rules, request: ToolRequested, workspace: str) -> bool:
    """Whether a deny or ask rule is about a call, so that it is not done unasked."""
    kinds = (kind for kind in KINDS if kind != "allow")
    return any(first_match(kind, rules.of(kind), request, workspace) is not None for kind in kinds)


def hidden_from_searches(rules: Rules, tool: str, workspace: str, root: str) -> Callable[[str], bool] | None:
    """Which files a search with `tool` below `root` leaves out: they may not be read or searched, or not unasked.

    Those that are asked about are not left out of a search that begins there: it was asked about.
    """
    texts = {kind: _patterns(rules.of(kind), ("Read", tool)) for kind in ("deny", "ask")}
    if not any(texts.values()):
        return None
    from trunkline.core.rules_paths import WidePaths

    denied, asked = WidePaths(texts["deny"], workspace), WidePaths(texts["ask"], workspace)
    if asked.covers(root):
        return denied.covers
    return lambda path: denied.covers(path) or asked.covers(path)


def _patterns(rules: Iterable[str], tools: Sequence[str]) -> list[str]:
    read = (read_rule(text)[0] for text in rules)
    return [rule.about for rule in read if rule.tool in tools and rule.about is not None]


# Allow rules: about all of a call


def _allowing(
    rules: Sequence[tuple[str, PermissionRule]],
    request: ToolRequested,
    workspace: str,
    may_write: Callable[[str], bool],
) -> str | None:
    for text, rule in rules:
        if _names_tool(rule, request) and (rule.about is None or _allows(rule.tool, rule.about, request, workspace)):
            return text
    if (command := whole_command(request)) is None:
        return None
    from trunkline.core.rules_commands import allowed, exactly, pattern_of

    if request.name != "Bash":
        # What another agent's program makes of it, nobody here knows.
        exact = PermissionRule(request.name, exactly(command))
        return next((text for text, rule in rules if rule == exact), None)
    mine = {pattern_of(rule.about): text for text, rule in rules if rule.tool == "Bash" and rule.about is not None}
    found = allowed(tuple(mine), command, may_write, workspace) if mine else None
    return mine[found] if found is not None else None


def _allows(tool: str, about: str, request: ToolRequested, workspace: str) -> bool:
    if tool in _FILE_TOOLS:
        from trunkline.core.rules_paths import covers

        return all(covers(about, path, workspace, below=request.name in _SEARCHES) for path in _paths(request))
    if tool == "WebFetch":
        return _is_host(about, request, below=False)
    names = _subjects(request)
    return tool in _NAMES and bool(names) and all(_fits(name, _plain(about)) for name in names)


# Deny and ask rules: about any part of it


def _is_about(
    rule: PermissionRule, request: ToolRequested, workspace: str, places: Callable[[bool], Iterable[str]]
) -> bool:
    """`places`: where the files of a call are, or, if so, those alone that a command would change."""
    if rule.about is None:
        return _names_tool(rule, request) or _fits(request.name.casefold(), rule.tool.casefold())
    if (command := _command(request)) is not None:
        return _is_in_command(rule.tool, rule.about, command, workspace, places)
    if rule.tool in _FILE_TOOLS:
        own, more = _FILE_TOOLS[rule.tool]
        if request.name not in own and request.name not in more:
            return False
        from trunkline.core.rules_paths import WidePaths

        return any(map(WidePaths((rule.about,), workspace).covers_place, places(False)))
    if rule.tool != request.name:
        return False
    if rule.tool == "WebFetch":
        return _is_host(rule.about, request, below=True)
    if (command := whole_command(request)) is not None:
        from trunkline.core.rules_commands import exactly

        return rule.about == exactly(command)
    return any(_fits(name, _plain(rule.about)) for name in _subjects(request))


def _is_in_command(
    tool: str, about: str, command: str, workspace: str, places: Callable[[bool], Iterable[str]]
) -> bool:
    if tool == "Bash":
        from trunkline.core.rules_commands import denied, pattern_of

        return denied(pattern_of(about), command)
    if tool not in _NAMED_IN_COMMANDS:
        return False
    from trunkline.core.rules_paths import WidePaths

    return any(map(WidePaths((about,), workspace).covers_place, places(tool != "Read")))


def _places_named(request: ToolRequested, workspace: str, written: bool) -> frozenset[str]:
    from trunkline.core.rules_paths import places

    files = _paths(request)
    if (command := _command(request)) is not None:
        from trunkline.core.command_files import named_files

        files, _ = named_files(command, workspace, written=written)
    return frozenset().union(*(places(path, workspace) for path in files))


# What a call is about


def _names_tool(rule: PermissionRule, request: ToolRequested) -> bool:
    """Whether a rule names the tool, or one that stands for it."""
    covered, _ = _FILE_TOOLS.get(rule.tool, (frozenset((rule.tool,)), None))
    if request.name in covered:
        return True
    known = [name for name in (request.name, request.rule_name) if name]
    if "*" in rule.tool:
        return any(_fits(name, rule.tool) for name in known)
    # `mcp__server` is about all of its tools.
    return any(name == rule.tool or (_is_server(rule.tool) and name.startswith(f"{rule.tool}__")) for name in known)


def _is_server(tool: str) -> bool:
    return tool.startswith("mcp__") and "__" not in tool.removeprefix("mcp__")


def _command(request: ToolRequested) -> str | None:
    command = request.args.get("command", request.args.get("cmd"))
    return command if request.name == "Bash" and isinstance(command, str) else None


def whole_command(request: ToolRequested) -> str | None:
    """The command of a call to any tool that runs one; all of its arguments, if others could change what is run."""
    given = {key: value for key, value in request.args.items() if key not in _HARMLESS}
    command = given.get("command", given.get("cmd"))
    if command is None or request.category == "mcp":
        # What a server makes of a text that it calls a command, nobody here knows.
        return None
    if len(given) == 1 and isinstance(command, str):
        return command
    from trunkline.base import jsontext

    return jsontext.dumps(dict(sorted(given.items()))).decode()


def _paths(request: ToolRequested) -> Sequence[str]:
    """The file of a call, or the directories that a search begins with."""
    if request.name == "Glob":
        from trunkline.base.patterns import alternatives

        path = _text(request, "path") or "."
        return tuple(dict.fromkeys(_start(path, each) for each in alternatives(_text(request, "pattern"))))
    return (_text(request, "file_path") or _text(request, "path") or _text(request, "notebook_path") or ".",)


def _start(path: str, pattern: str) -> str:
    # As deep as it is sure to go.
    fixed = re.split(r"[*?\[{\\]", pattern)[0].rpartition("/")
    start = fixed[0] + fixed[1]
    return start if start.startswith(("/", "~")) else f"{path.rstrip('/') or '/'}/{start}"


def _text(request: ToolRequested, key: str) -> str:
    value = request.args.get(key)
    return value if isinstance(value, str) else ""


def _is_host(about: str, request: ToolRequested, *, below: bool) -> bool:
    """`below`: hosts below it are covered, too, and what cannot be read."""
    from trunkline.base.host_names import host_in, same_host

    written = about.removeprefix(_DOMAIN)
    try:
        host, wanted = host_in(_text(request, "url")), same_host(written.removeprefix("*."))
    except ValueError:
        return below
    below = below or written.startswith("*.")
    return host == wanted or (below and host.endswith(f".{wanted}"))


def _subjects(request: ToolRequested) -> list[str]:
    """The skill, or the agents of all tasks."""
    if request.name == "Skill":
        return [_text(request, "skill").removeprefix("/")]
    tasks: Any = request.args.get("tasks")
    if request.name != "Spawn" or not isinstance(tasks, Sequence):
        return []
    return [str(task.get("agent") or "") if isinstance(task, Mapping) else "" for task in tasks]


def _plain(about: str) -> str:
    return about.removesuffix(":*").removesuffix(" *")


def _fits(name: str, pattern: str) -> bool:
    """Whether a name is as a pattern says."""
    if "*" not in pattern:
        return name == pattern
    from fnmatch import fnmatchcase

    return fnmatchcase(name, pattern)


def told(rules: Rules) -> Iterator[tuple[Kind, str, str]]:
    """Each rule with its kind and its file, what counts most first."""
    for kind in _STRICTEST_FIRST:
        yield from ((kind, rule, rules.file_of(kind, rule)) for rule in rules.of(kind))
