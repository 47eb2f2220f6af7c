"""Permission rules that a person has added for one workspace: in a file of their own, and never in the workspace.

    TRUNKLINE_HOME/permissions/PROJECT.json     {"workspace": "/home/ada/tool", "allow": ["Bash(make test)"], ...}

They count like those of the user's configuration file. `trunkline permissions` and, in the terminal, `/permissions` and
the answer "always" write it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from trunkline.base import jsontext, paths
from trunkline.base.config_schema import is_texts
from trunkline.base.regular import NotRegular, read_regular
from trunkline.base.replacing import replace_private
from trunkline.core.faults import ConfigError
from trunkline.core.rules import EXPLAINED, KINDS, NO_RULES, Kind, Rules, read_rule

#: More than anybody adds.
LARGEST_BYTES = 1024 * 1024


class KeptRules:
    """Those of one workspace. Methods wait for the disk."""

    def __init__(self, workspace: str, environ: Mapping[str, str] = os.environ) -> None:
        """Raises `HomeUnknown` where nobody says where this user's files belong."""
        self._workspace = os.path.realpath(workspace)
        self._folder = os.path.join(paths.state_dir(environ), "permissions")

    @property
    def file(self) -> str:
        """Where they are. It need not exist."""
        return os.path.join(self._folder, f"{paths.project(self._workspace)}.json")

    def read(self) -> Rules:
        """All of them, each with the file.

        Raises:
            ConfigError: the file is there and cannot be read: what it denies must not be allowed for that.
        """
        if not os.path.isdir(self._folder):
            return NO_RULES
        try:
            found = jsontext.loads(read_regular(self.file, LARGEST_BYTES).data)
        except FileNotFoundError:
            return NO_RULES
        except (OSError, ValueError, NotRegular) as error:
            raise self._broken(str(error)) from None
        if not isinstance(found, dict) or not all(is_texts(found.get(kind, [])) for kind in KINDS):
            raise self._broken("`allow`, `ask` and `deny` are lists of texts")
        lists = {kind: tuple(found.get(kind, ())) for kind in KINDS}
        return Rules(**lists, files=tuple((kind, rule, self.file) for kind in KINDS for rule in lists[kind]))

    def add(self, rule: str, kind: Kind = "allow") -> bool:
        """Keep one more; whether it was not there.

        Raises:
            ConfigError: it is no rule, or the file cannot be read or written.
        """
        rule = rule.strip()
        if problem := read_rule(rule)[1]:
            raise ConfigError(f"The rule `{rule}`: {problem}.", hint=f"`{EXPLAINED}` says how rules are written.")
        with self._changing():
            rules = self.read()
            if rule in rules.of(kind):
                return False
            self._write(rules.replace(**{kind: (*rules.of(kind), rule)}))
        return True

    def remove(self, rule: str, kind: Kind | None = None) -> bool:
        """Take one back, of whatever kind it is unless that is said; whether it was there.

        Raises:
            ConfigError: the file cannot be read or written.
        """
        if not os.path.isdir(self._folder):
            return False
        with self._changing():
            rules = self.read()
            left = {
                each: tuple(kept for kept in rules.of(each) if kept != rule.strip() or kind not in (None, each))
                for each in KINDS
            }
            if all(left[each] == rules.of(each) for each in KINDS):
                return False
            self._write(Rules(left["allow"], left["ask"], left["deny"]))
        return True

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Nobody else changes rules meanwhile: what they add would be lost, and a rule that is lost denies nothing."""
        from trunkline.store import locks  # whoever only reads does without it

        try:
            paths.ensure_dir(self._folder)
            # The directory itself: the file is replaced by every change, and a lock on it would go with it.
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise self._unwritten(error) from None
        try:
            locks.wait(folder)
            yield
        finally:
            os.close(folder)

    def _write(self, rules: Rules) -> None:
        told: dict[str, object] = {"workspace": self._workspace}
        told |= {kind: list(rules.of(kind)) for kind in KINDS}
        try:
            replace_private(self.file, jsontext.dumps(told) + b"\n")
        except OSError as error:
            raise self._unwritten(error) from None

    def _unwritten(self, error: OSError) -> ConfigError:
        return ConfigError(f"`{self.file}` cannot be written: {paths.unusable(error)}")

    def _broken(self, problem: str) -> ConfigError:
        return ConfigError(
            f"`{self.file}` cannot be read: {problem.rstrip('.')}.",
            hint="Mend it, or remove it and add the rules again.",
        )


def kept_in(workspace: str, environ: Mapping[str, str] = os.environ) -> Rules:
    """The rules that were added for a workspace; none where nobody says where they would be.

    Raises:
        ConfigError: see `KeptRules.read`.
    """
    try:
        return KeptRules(workspace, environ).read()
    except paths.HomeUnknown:
        return NO_RULES
