"""What is wrong with a configuration file, as a list: each with its place, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterator

from trunkline.base.config_file import ConfigFileError, TomlFile, dotted
from trunkline.base.config_schema import Schema, check
from trunkline.base.nearest import UNKNOWN_KEY, about_key, nearest
from trunkline.base.printable import printable_line
from trunkline.base.values import Value


class Problem(Value):
    """What is wrong, and where."""

    file: str
    """Or a variable."""
    problem: str
    key: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    """What was probably meant by a key that is not known, or what to do."""

    @classmethod
    def of(cls, error: ConfigFileError, hint: str | None = None) -> Problem:
        """What an error says."""
        return cls(error.file, error.problem, error.key, error.line, error.column, hint)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        problem = about_key(self.key, self.problem) if self.key else self.problem
        hint = f" {self.hint}" if self.hint else ""
        return printable_line(f"{place}: {problem}.{hint}")


def problems_in(file: TomlFile, schema: Schema) -> Iterator[Problem]:
    """Keys that a schema does not have, and values of the wrong kind."""
    checked = check(file.table, schema)
    for keys, problem in checked.wrong:
        yield Problem.of(file.wrong(problem, keys))
    for keys, known in checked.unknown:
        meant = nearest(keys[-1], known)
        hint = f"Did you mean `{dotted((*keys[:-1], meant))}`?" if meant else None
        yield Problem.of(file.wrong(UNKNOWN_KEY, keys), hint)


def by_place(problem: Problem) -> tuple[int, int]:
    """The order in which they are told."""
    return problem.line or 0, problem.column or 0
