"""What needs no approval, from the keyboard.

/grants         what this session was granted
/permissions    the rules that count here, and those of one's own for this directory
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from trunkline.agents.coder.kept_rules import KeptRules, kept_in
from trunkline.base.nearest import suggestion
from trunkline.base.paths import homely
from trunkline.base.printable import printable_line
from trunkline.core.faults import ConfigError
from trunkline.core.grants import Grant
from trunkline.core.rules import KINDS, Kind, Rules, told
from trunkline.core.session import Session

if TYPE_CHECKING:
    from rich.table import Table

    from trunkline.cli.terminal.commands import Chat

_HOW = "Say `/permissions add RULE`, `/permissions remove RULE` or `/permissions keep NUMBER`; /permissions lists them."


async def grants(chat: Chat, argument: str) -> None:
    """`/grants`, and what follows it."""
    given = chat.session.grants
    if argument:
        for grant in chosen(argument, given):
            chat.session.revoke(grant)
            chat.view.note(f"Taken back: {chat.session.clean(str(grant))}.")
        return
    allowed = ", ".join(chat.session.allowed) or "no tools"
    chat.view.note(f"The approval mode is `{chat.session.mode}`. Besides what it allows, {allowed} need no approval.")
    _show_grants(chat)


def _show_grants(chat: Chat) -> None:
    given = chat.session.grants
    if not given:
        chat.view.note("Nothing was granted in this session.")
        return
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for number, grant in enumerate(given, 1):
        table.add_row(Text(str(number), "cyan"), Text(chat.session.clean(str(grant))))
    _listed(chat, "Granted in this session", table)
    chat.view.note("/grants revoke NUMBER takes one of them back, /grants revoke all takes back all.")
    chat.view.note("/permissions keep NUMBER keeps one for later sessions in this directory.")


def chosen(argument: str, given: Sequence[Grant]) -> Sequence[Grant]:
    """The grants that are meant by what follows `/grants`.

    Raises:
        ConfigError: that is not understood.
    """
    verb, _, which = argument.partition(" ")
    which = which.strip()
    if verb == "revoke" and which == "all":
        return given
    if verb == "revoke" and which.isdecimal():
        return (_numbered(which, given),)
    raise ConfigError(
        f"`/grants {argument}` was not understood.", hint="Say `/grants revoke NUMBER`; /grants lists them."
    )


def _numbered(which: str, given: Sequence[Grant]) -> Grant:
    for number, grant in enumerate(given, 1):
        if which == str(number):
            return grant
    raise ConfigError(f"There is no grant {which}.", hint="/grants lists them.")


async def permissions(chat: Chat, argument: str) -> None:
    """`/permissions`, and what follows it."""
    verb, _, rest = argument.partition(" ")
    rest = rest.strip()
    match verb:
        case "":
            _show_rules(chat)
        case "add" if rest:
            kind, rule = _divided(rest)
            chat.view.note(_added(chat, rule, kind))
        case "remove" if rest:
            _remove(chat, rest)
        case "keep" if rest:
            rules = _numbered(rest, chat.session.grants).rules
            chat.view.note(chat.session.clean(keep(chat.session, chat.workspace, rules)))
        case _:
            raise ConfigError(f"`/permissions {argument}` was not understood.", hint=_HOW)


def keep(session: Session, workspace: str, rules: Sequence[str], kind: Kind = "allow") -> str:
    """Add rules for this directory, which count at once and in later sessions; gives what to tell people.

    Raises:
        ConfigError: one cannot be kept.
    """
    if not rules:
        raise ConfigError("No rule can say this: it stays allowed for this session only.")
    kept = KeptRules(workspace)
    for rule in rules:
        kept.add(rule, kind)
        follow = getattr(session, "follow", None)
        if follow is not None:
            follow(session.rules.added(kind, rule, kept.file))
    named = ", ".join(f"`{printable_line(rule)}`" for rule in rules)
    return f"Kept for this directory: {kind} {named}. /permissions shows and removes it."


def _added(chat: Chat, rule: str, kind: Kind) -> str:
    return chat.session.clean(keep(chat.session, chat.workspace, (rule,), kind))


def _remove(chat: Chat, rule: str) -> None:
    """Remove a rule of one's own, and take back what was granted in its words: both are in the list."""
    kept = KeptRules(chat.workspace)
    own = [text for _, text, _ in told(kept.read())]
    granted = [grant for grant in chat.session.grants if rule in grant.rules]
    if not kept.remove(rule) and not granted:
        elsewhere = next((file for _, text, file in told(_followed(chat)) if text == rule and file), "")
        hint = (
            f"It is in `{homely(elsewhere)}`: edit the file to remove it." if elsewhere else "/permissions lists them."
        )
        raise ConfigError(f"There is no such rule of yours for this directory.{suggestion(rule, own)}", hint=hint)
    follow = getattr(chat.session, "follow", None)
    if follow is not None:
        follow(chat.session.rules.removed(rule, kept.file))
    for grant in granted:
        chat.session.revoke(grant)
        chat.view.note(f"Taken back: {chat.session.clean(str(grant))}.")
    if rule in own:
        chat.view.note(f"Removed: `{chat.session.clean(printable_line(rule))}`.")


def _show_rules(chat: Chat) -> None:
    from rich.table import Table

    rules = _followed(chat)
    table = Table.grid(padding=(0, 2))
    for _ in ("kind", "rule", "file"):
        table.add_column(overflow="fold")
    for kind, rule, file in told(rules):
        place = homely(file) if file else "--allow"
        table.add_row(
            Text(kind, "cyan"), Text(chat.session.clean(printable_line(rule))), Text(printable_line(place), "dim")
        )
    if table.row_count:
        _listed(chat, "Permission rules", table)
    else:
        chat.view.note("There are no permission rules here.")
    chat.view.note(
        "/permissions add [allow|ask|deny] RULE adds one for this directory, /permissions remove RULE removes it."
    )
    chat.view.space()
    _show_grants(chat)


def _listed(chat: Chat, title: str, table: Table) -> None:
    chat.view.plain(Text(title, "bold"))
    chat.view.plain(Padding(table, (0, 0, 0, 2)))


def _followed(chat: Chat) -> Rules:
    """The rules of the session; where it is elsewhere, those of one's own for this directory."""
    found: Rules | None = getattr(chat.session, "rules", None)
    return kept_in(chat.workspace) if found is None else found


def _divided(text: str) -> tuple[Kind, str]:
    first, _, rest = text.partition(" ")
    kind = next((kind for kind in KINDS if kind == first and rest.strip()), None)
    return (kind, rest.strip()) if kind else ("allow", text)
