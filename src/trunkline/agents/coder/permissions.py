"""What needs no approval, for people on every wire: the rules that they keep for the workspace, and what they granted.

The file of kept rules is changed by other processes, `trunkline permissions` and sessions in other terminals: it is
looked at before each turn, so that a rule which was taken back there does not count here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial

from trunkline.agents.coder.commands import HELP, Commands, TypedCommand
from trunkline.agents.coder.compaction import Say
from trunkline.agents.coder.kept_rules import KeptRules
from trunkline.base.nearest import suggestion
from trunkline.base.paths import HomeUnknown, homely
from trunkline.base.printable import printable_line
from trunkline.base.redact import Redactor
from trunkline.core.agent import Authority
from trunkline.core.faults import ConfigError, Mistyped
from trunkline.core.grants import Grant
from trunkline.core.rules import KINDS, Rules, told
from trunkline.tools.threads import in_thread


class Permissions:
    """Those of one conversation."""

    def __init__(
        self,
        workspace: str,
        authority: Authority | None,
        redactor: Redactor,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """Without an `authority`, nobody can be told to judge otherwise."""
        self._authority = authority
        self._redactor = redactor
        try:
            self._kept: KeptRules | None = KeptRules(workspace, environ)
        except HomeUnknown:
            self._kept = None
        self._seen: tuple[int, ...] | None = ()
        """The file as it was; nothing yet: since the settings were read, it may have changed."""

    def add_to(self, commands: Commands) -> None:
        """Have the commands typed."""
        if (authority := self._authority) is None:
            return
        for word, run, argument in (
            ("/grants", self._grants, "[revoke N|revoke all]"),
            ("/permissions", self._permissions, "[remove RULE]"),
        ):
            commands.add(word, TypedCommand(HELP[word], partial(run, authority), argument, needs_approver=bool))

    async def refresh(self) -> tuple[str, ...]:
        """Follow the file as it is now, if it has changed; gives what to tell people."""
        if self._kept is None or self._authority is None or (seen := self._look()) == self._seen:
            return ()
        kept = self._kept
        try:
            now = await in_thread(lambda _: kept.read())
        except ConfigError as error:
            # What it denied must not be allowed for that.
            self._seen = seen
            return (f"{error} The rules that were kept before still count.",)
        self._seen = seen
        self._authority.follow(_with_file(self._authority.rules, kept.file, now))
        return ()

    def _look(self) -> tuple[int, ...] | None:
        """What changes with the file; it is replaced as a whole."""
        try:
            found = os.stat(self._kept.file) if self._kept is not None else None
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size) if found is not None else None

    async def _grants(self, authority: Authority, rest: str, say: Say) -> str:
        given = authority.grants
        if not rest:
            return self._granted(given)
        verb, _, which = rest.partition(" ")
        number = which.strip()
        chosen = given if number == "all" else [grant for at, grant in enumerate(given, 1) if number == str(at)]
        if verb != "revoke" or (not chosen and number != "all"):
            raise Mistyped(
                f"`/grants {rest}` was not understood.", hint="Say `/grants revoke N`; `/grants` lists them."
            )
        for grant in chosen:
            authority.revoke(grant)
        return "\n".join(f"Taken back: {self._clean(str(grant))}." for grant in chosen) or self._granted(given)

    async def _permissions(self, authority: Authority, rest: str, say: Say) -> str:
        if not rest:
            return f"{self._listed(authority.rules)}\n{self._granted(authority.grants)}"
        verb, _, rule = rest.partition(" ")
        rule = rule.strip()
        if verb != "remove" or not rule:
            raise Mistyped(
                f"`/permissions {rest}` was not understood.",
                hint="Say `/permissions remove RULE`; `/permissions` lists them.",
            )
        return await self._removed(authority, rule)

    async def _removed(self, authority: Authority, rule: str) -> str:
        kept = self._kept
        if kept is None or not await in_thread(lambda _: kept.remove(rule)):
            own = [text for _, text, file in authority.rules.files if kept is not None and file == kept.file]
            elsewhere = next((file for _, text, file in told(authority.rules) if text == rule and file), "")
            hint = f"It is in `{homely(elsewhere)}`: edit the file to remove it." if elsewhere else None
            raise Mistyped(f"There is no such rule of yours for this directory.{suggestion(rule, own)}", hint=hint)
        await self.refresh()
        return f"Removed: `{self._clean(rule)}`."

    def _listed(self, rules: Rules) -> str:
        lines = [
            self._clean(f"{kind} {rule}  ({homely(file) if file else '--allow'})") for kind, rule, file in told(rules)
        ]
        return "\n".join(lines) or "There are no permission rules here."

    def _granted(self, given: Sequence[Grant]) -> str:
        lines = [f"{at}  {self._clean(str(grant))}" for at, grant in enumerate(given, 1)]
        return "\n".join(("Granted in this session:", *lines)) if lines else "Nothing was granted in this session."

    def _clean(self, text: str) -> str:
        return printable_line(self._redactor.text(text))


def _with_file(rules: Rules, file: str, now: Rules) -> Rules:
    """The rules with what a file says now in place of what it said."""
    for kind, rule, place in rules.files:
        if place == file and rule not in now.of(kind):
            rules = rules.removed(rule, file, kind)
    for kind in KINDS:
        for rule in now.of(kind):
            rules = rules.added(kind, rule, file)
    return rules
