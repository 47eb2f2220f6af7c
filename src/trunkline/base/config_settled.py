"""What holds for a service, and who says so.

    flags > variables > `trunkline.toml` of a workspace that is trusted > the user's file > defaults

The file of a workspace that nobody trusts only narrows what the files and the defaults say; what a flag or a variable
says is the user's own will, here and now.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from trunkline.base.config import Config, Origin
from trunkline.base.config_file import ConfigFileError
from trunkline.base.config_schema import Keys
from trunkline.base.config_services import Setting, settings_of
from trunkline.base.environ_secrets import names_a_secret
from trunkline.base.printable import printable_line
from trunkline.base.regular import open_to_others
from trunkline.base.values import Value

#: How much of a wrong value is repeated.
SHOWN_CHARS = 80


class ConfigVariableError(ConfigFileError):
    """A variable that stands for a key, and cannot be understood. Its `file` is the variable."""

    def __init__(self, variable: str, problem: str) -> None:
        ValueError.__init__(self, printable_line(f"{variable}: {problem}"))
        self.file, self.problem, self.key, self.line, self.column = variable, problem, None, None, None


class ValueSource(Value):
    """Who says what holds: the name of a flag or of a variable, or a place in a file."""

    kind: Literal["flag", "variable", "file", "default"]
    name: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.kind != "file":
            return f"{self.kind} {self.name}".rstrip()
        return ":".join(str(part) for part in (self.name, self.line, self.column) if part is not None)


DEFAULT = ValueSource("default")


def in_file(origin: Origin) -> ValueSource:
    """A place in a file."""
    return ValueSource("file", origin.file, origin.line, origin.column)


class EffectiveConfig:
    """What holds for each key of a service.

    Args:
        flags: what the command line says; what is absent, None, empty or False was not said.

    Raises:
        ConfigFileError: a variable cannot be understood.
    """

    def __init__(
        self,
        service: str,
        config: Config,
        flags: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.service = service
        self.config = config
        self._found = {
            key: self._settle(key, setting, (flags or {}).get(key), environ)
            for key, setting in settings_of(service).items()
        }

    def __getitem__(self, key: str) -> Any:
        return self._found[key][0]

    def source(self, key: str) -> ValueSource:
        """Who says it."""
        return self._found[key][1]

    def table(self, key: str) -> dict[str, Any]:
        """A table whose keys are names that the user chose, or those of a platform; no flag and no variable has it."""
        found: dict[str, Any] = self.config.get(self.service, key, default={})
        return found

    def items(self) -> Iterator[tuple[Keys, Any, ValueSource]]:
        """Everything that holds, in order."""
        for key, (value, source) in self._found.items():
            yield (self.service, key), value, source

    def exposed(self) -> tuple[str, ...]:
        """A warning for each file that holds a secret of this service and can be read by others."""
        return tuple(
            f"`{layer.file.path}` holds a secret of `{self.service}` and can be read by others: `chmod 600` it."
            for layer in self.config.layers
            if _holds_secret(layer.table.get(self.service)) and open_to_others(layer.file.path)
        )

    def _settle(self, key: str, setting: Setting, said: Any, environ: Mapping[str, str]) -> tuple[Any, ValueSource]:
        if said:
            return said, ValueSource("flag", setting.flag or "")
        variable = setting.variable or ""
        if (text := environ.get(variable, "")).strip():
            value = setting.of(_understood(variable, setting, text))
            return os.path.expanduser(value) if setting.is_path else value, ValueSource("variable", variable)
        path = (self.service, key)
        value = self.config.get(*path, default=setting.default)
        origin = self.config.narrowed_by(value, *path) or self.config.origin(*path)
        value = self.config.narrowed(value, *path)
        if origin is None:
            return value, DEFAULT
        value = setting.of(value)
        if setting.is_path:
            value = os.path.join(os.path.dirname(origin.file), os.path.expanduser(value))
        return value, in_file(origin)


def _holds_secret(table: Any) -> bool:
    """Whether a value in it is one; the name of a variable is none."""
    return isinstance(table, Mapping) and any(
        _holds_secret(value) or (isinstance(value, str) and bool(value) and names_a_secret(name))
        for name, value in table.items()
    )


def _understood(variable: str, setting: Setting, text: str) -> Any:
    value = setting.reads(text)
    problem = setting.problem(value)
    if problem is None:
        return value
    shown = "" if setting.secret else f", not `{text[:SHOWN_CHARS]}`" if problem.startswith("must") else ""
    raise ConfigVariableError(variable, f"{problem}{shown}")
