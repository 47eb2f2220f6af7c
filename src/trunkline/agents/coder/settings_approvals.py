"""What the configuration files say about what may be done unasked."""

from __future__ import annotations

from collections.abc import Sequence

from trunkline.base.config import Config, Layer
from trunkline.base.programs import as_typed
from trunkline.base.values import Value
from trunkline.core.approvals import unknown_tool
from trunkline.core.rules import EXPLAINED, KINDS, NO_RULES, Kind, Rules, read_rule


class Unasked(Value):
    """What `[tools]` says, narrowed by a workspace that nobody trusts."""

    auto_approve: bool
    allow: tuple[str, ...] | None
    """None: what is allowed by default."""
    allow_outside: bool
    warnings: tuple[str, ...]


def permissions(config: Config, kept: Rules = NO_RULES, *, more_tools: bool) -> tuple[Rules, tuple[str, ...]]:
    """The rules of all files that are followed, and what is wrong with them; of a workspace that nobody trusts, those
    that ask or deny. `kept` are those that the user has added for the workspace.

    One that cannot be read must not let pass what it was written against: then it is about its whole tool. If not even
    that can be read, everything is asked about.
    """
    written = [(kind, rule, layer.file.path) for kind in KINDS for layer in config.layers for rule in _at(layer, kind)]
    written += kept.files
    for kind in KINDS:
        ours = [rule for found, rule, _ in written if found == kind]
        followed = set(config.narrowed(ours, "permissions", kind))
        theirs = ((kind, rule, layer.file.path) for layer in config.projects for rule in _at(layer, kind))
        written += [each for each in theirs if each[1] in followed]
    warnings: dict[str, None] = {}
    counting: dict[tuple[Kind, str], str] = {}
    for kind, rule, file in written:
        counts, problem = _usable(kind, rule, more_tools=more_tools)
        if problem:
            warnings[f"`{file}`: the {kind} rule `{rule}`: {problem}"] = None
        if counts is not None:
            counting.setdefault(counts, file)
    found = {kind: tuple(rule for counted, rule in counting if counted == kind) for kind in KINDS}
    return Rules(**found, files=tuple((*key, file) for key, file in counting.items())), tuple(warnings)


def _at(layer: Layer, kind: Kind) -> Sequence[str]:
    return layer.at("permissions", kind) or ()


def _usable(kind: Kind, text: str, *, more_tools: bool) -> tuple[tuple[Kind, str] | None, str]:
    """What a rule counts as, and what to tell people about it."""
    rule, problem = read_rule(text)
    if not problem:
        slip = unknown_tool(text, more_tools=more_tools, to_allow="")
        return (kind, text.strip()), f"{slip[:1].lower()}{slip[1:]}"
    if kind == "allow":
        return None, f"{problem}. It is ignored; " + as_typed(f"`{EXPLAINED}` says how rules are written.")
    if rule.tool == "*":
        return ("ask", "*"), f"{problem}. Until it is mended, everything is asked about."
    does = "denied" if kind == "deny" else "asked about"
    return (kind, rule.tool), f"{problem}. Until it is mended, every `{rule.tool}` call is {does}."


def approvals(config: Config, *, more_tools: bool) -> Unasked:
    """Read it. `more_tools`: there are MCP servers, whose tools are not known yet."""
    allow = config.narrowed(config.get("tools", "allow_list"), "tools", "allow_list")
    slips = (unknown_tool(name, more_tools=more_tools) for name in allow or ())
    return Unasked(
        config.narrowed(config.get("tools", "auto_approve", default=False), "tools", "auto_approve"),
        None if allow is None else tuple(allow),
        config.narrowed(config.get("tools", "allow_outside", default=False), "tools", "allow_outside"),
        tuple(filter(None, slips)),
    )
