"""The configuration files, found, read and laid over one another.

    trunkline.toml            in the workspace
    .aionrs.toml              in the workspace, as hosts made for aionrs write it (`config_aionrs`)
    config.toml               the user's own, in `paths.config_dir()`
    $TRUNKLINE_AIONRS_CONFIG  the user's own of aionrs, where its launcher is ours

`TRUNKLINE_CONFIG`, which commands that serve set for their `--config`, names one file that is read in place of all of
them, as if it were the user's own.

The upper beats the lower, key by key; lists and each `WholeTable` of the schema are taken whole. Flags and variables,
which beat all of them, are the caller's.

That is so in a workspace that the user trusts. The files of any other are not laid over the user's: what they say is no
value at all, and only narrows one that the caller has found (`Config.narrowed`, `config_trust`).

Which keys a reader looks at is said by its schema: the coding agent's, or that of one service (`config_services`),
which leaves all other sections alone. Unknown keys are warned about. A file of ours that is broken is an error; one of
aionrs' is a warning, since hosts rely on a start that works. So is a value of the wrong kind in a workspace, which may
be somebody else's work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trunkline.base import config_aionrs, paths
from trunkline.base.config_file import ConfigFileError, TomlFile, dotted, read_toml
from trunkline.base.config_narrowing import followed
from trunkline.base.config_schema import SCHEMA, Keys, Schema, check, is_whole, kind_at
from trunkline.base.config_trust import is_trusted, leaves, restrict
from trunkline.base.nearest import UNKNOWN_KEY, suggestion
from trunkline.base.place import Place
from trunkline.base.printable import printable_line
from trunkline.base.values import Value

__all__ = [
    "FILE_VARIABLE",
    "PROJECT_FILE",
    "USER_FILE",
    "Config",
    "ConfigFileError",
    "Layer",
    "Origin",
    "load",
    "user_file",
]

PROJECT_FILE = "trunkline.toml"
USER_FILE = "config.toml"
#: Names the one file that is read in place of all others.
FILE_VARIABLE = "TRUNKLINE_CONFIG"

#: Keys that one warning names. Whoever wrote a file that nobody trusts may have written thousands.
MOST_NAMED = 20


class Origin(Value):
    """Where a value was set."""

    file: str
    key: str
    line: int | None = None
    column: int | None = None


class Layer(Value):
    """What one file contributes. `foreign` files are aionrs'."""

    file: TomlFile
    table: dict[str, Any]
    foreign: bool = False

    def at(self, *path: str) -> Any:
        """What it says at a path of keys; None if nothing."""
        found: Any = self.table
        for key in path:
            if not isinstance(found, Mapping) or key not in found:
                return None
            found = found[key]
        return found


class Config:
    """All files together.

    `warnings` are for people, one sentence or two each. `unused` names, for each file of aionrs', the keys that have no
    effect here; whoever knows of more adds them before it asks for `all_warnings`. `projects` are the files of a
    workspace that nobody trusts: no value comes from them. `refused` names, for each of them, what is not followed.
    """

    def __init__(
        self,
        layers: Sequence[Layer] = (),
        warnings: Sequence[str] = (),
        unused: Mapping[str, Sequence[str]] | None = None,
        projects: Sequence[Layer] = (),
        refused: Mapping[str, Sequence[Keys]] | None = None,
        advice: str = "",
        schema: Schema = SCHEMA,
        trusted: bool = False,
    ) -> None:
        self.schema = schema
        self.trusted = trusted
        """Whether the user trusts the workspace."""
        self.layers = tuple(layers)
        self.warnings = list(warnings)
        self.unused = {file: list(keys) for file, keys in (unused or {}).items()}
        self.projects = tuple(projects)
        self.refused = {file: list(keys) for file, keys in (refused or {}).items()}
        self.advice = advice
        """What to do about what is not followed."""
        self.table: dict[str, Any] = {}
        self._origins: dict[Keys, Layer] = {}
        for layer in self.layers:
            self._lay_under(self.table, layer.table, layer, ())

    def get(self, *path: str, default: Any = None) -> Any:
        """The value at a path of keys."""
        found: Any = self.table
        for key in path:
            if not isinstance(found, dict) or key not in found:
                return default
            found = found[key]
        return found

    def narrowed(self, value: Any, *path: str) -> Any:
        """What is left of a value when the workspace's files have narrowed it by what they say at a path.

        `value` is what holds without them, also by default; None if that is nothing.
        """
        kind = kind_at(path, self.schema)
        for layer in self.projects:
            theirs = layer.at(*path)
            if theirs is None or kind is None or kind.narrows is None:
                continue
            value = kind.narrows(value, theirs)
            if not followed(theirs, value) and path not in self.refused.setdefault(layer.file.path, []):
                self.refused[layer.file.path].append(path)
        return value

    @property
    def keeps_sessions(self) -> bool:
        """Whether conversations are to be kept."""
        return bool(self.narrowed(self.get("session", "enabled", default=True), "session", "enabled"))

    def origin(self, *path: str) -> Origin | None:
        """Where the value at a path comes from: the file, and the key in it that is nearest."""
        for length in range(len(path), 0, -1):
            layer = self._origins.get(path[:length])
            if layer is not None:
                return _origin(layer, path)
        return None

    def narrowed_by(self, value: Any, *path: str) -> Origin | None:
        """Which file of the workspace makes it narrower than `value`, if one does."""
        if self.narrowed(value, *path) == value:
            return None
        return next((_origin(layer, path) for layer in self.projects if layer.at(*path) is not None), None)

    def error(self, problem: str, *path: str) -> ConfigFileError:
        """An error about the value at a path, with its place."""
        origin = self.origin(*path)
        if origin is None:
            return ConfigFileError("configuration", problem, key=dotted(path))
        at = Place(origin.line, origin.column or 1) if origin.line else None
        return ConfigFileError(origin.file, problem, key=origin.key, at=at)

    def not_followed(self) -> Iterator[Origin]:
        """What a workspace's files say that is not for them to say, as far as it was looked at."""
        for layer in self.projects:
            for path in self.refused.get(layer.file.path, ()):
                yield _origin(layer, path)

    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, with one more per file that says something without effect, or that is not followed."""
        told = [
            f"`{file}`: not followed: {_listed(map(dotted, refused))}. {self.advice}"
            for file, refused in self.refused.items()
            if refused
        ]
        told += [f"`{file}`: without effect here: {_listed(keys)}." for file, keys in self.unused.items() if keys]
        # One that names a key, or a directory, stays one line whatever the name is.
        return tuple(printable_line(warning) for warning in (*self.warnings, *told))

    def _lay_under(self, upper: dict[str, Any], lower: Mapping[str, Any], layer: Layer, path: Keys) -> None:
        """Add what the upper files do not say."""
        for key, value in lower.items():
            here = (*path, key)
            if isinstance(value, dict) and not is_whole(here, self.schema):
                inner = upper.setdefault(key, {})
                if isinstance(inner, dict):
                    self._lay_under(inner, value, layer, here)
            elif key not in upper:
                upper[key] = value
                self._origins[here] = layer


def user_file(environ: Mapping[str, str] = os.environ) -> str:
    """The path of the user's own file, which need not exist."""
    return os.path.join(paths.config_dir(environ), USER_FILE)


def load(workspace: str | None, environ: Mapping[str, str] = os.environ, schema: Schema = SCHEMA) -> Config:
    """Read all files that there are; without a workspace, the user's own.

    Raises:
        ConfigFileError: `trunkline.toml` or the user's file cannot be read or used, or the one that is named alone.
    """
    loader = _Loader(workspace or os.curdir, environ, schema)
    if only := environ.get(FILE_VARIABLE):
        loader.alone(only)
        return loader.config()
    loader.own(user_file(environ))
    if workspace is None:
        return loader.config()
    loader.trust()
    if schema is SCHEMA:
        named = environ.get(config_aionrs.FILE_VARIABLE)
        if named:
            loader.theirs(named)
        loader.project(config_aionrs.PROJECT_FILE, foreign=True)
    loader.project(PROJECT_FILE)
    return loader.config()


class _Loader:
    """Reads files one after the other, the user's own first: it says whether the others are trusted."""

    def __init__(self, workspace: str, environ: Mapping[str, str], schema: Schema) -> None:
        self._workspace = workspace
        self._schema = schema
        self._user_file = user_file(environ)
        self._trusted = False
        self._layers: list[Layer] = []
        self._projects: list[Layer] = []
        self._warnings: list[str] = []
        self._unused: dict[str, list[str]] = {}
        self._refused: dict[str, Sequence[Keys]] = {}

    def config(self) -> Config:
        """All that was read."""
        return Config(
            self._layers,
            self._warnings,
            self._unused,
            self._projects,
            self._refused,
            "A workspace's file may only narrow what you have set: less, fewer, stricter. If you trust this directory, "
            f"say `trust = [{json.dumps(os.path.realpath(self._workspace), ensure_ascii=False)}]` at the top of "
            f"`{self._user_file}`.",
            self._schema,
            self._trusted,
        )

    def own(self, path: str) -> None:
        """The user's file."""
        file = read_toml(path)
        if file is not None:
            self._layers.append(Layer(file, self._checked(file)))

    def alone(self, path: str) -> None:
        """The one file that was named, which must be there."""
        self.own(path)
        if not self._layers:
            raise ConfigFileError(path, "does not exist")

    def trust(self) -> None:
        """Find out whether the user's file, just read, trusts the workspace."""
        self._trusted = any(is_trusted(self._workspace, layer.table.get("trust", ())) for layer in self._layers)

    def theirs(self, path: str) -> None:
        """The user's file of aionrs, under all others."""
        layer = self._foreign(path)
        if layer is not None:
            self._layers.append(layer)

    def project(self, name: str, *, foreign: bool = False) -> None:
        """A file in the workspace."""
        path = os.path.join(self._workspace, name)
        if os.path.isdir(path):
            # The sandbox of a session that works here has it there, so that no command writes a file of that name.
            return
        if not self._trusted and os.path.islink(path) and leaves(path, self._workspace):
            self._warnings.append(f"`{path}` is a link that leaves the workspace. Going on without this file.")
            return
        layer = self._foreign(path) if foreign else self._ours(path)
        if layer is None:
            return
        if self._trusted:
            self._layers.insert(0, layer)
            return
        table, refused = restrict(layer.table, self._schema)
        self._refused[path] = refused
        self._projects.insert(0, layer.replace(table=table))

    def _ours(self, path: str) -> Layer | None:
        file = read_toml(path)
        return None if file is None else Layer(file, self._checked(file, strict=False))

    def _foreign(self, path: str) -> Layer | None:
        try:
            file = read_toml(path)
        except ConfigFileError as error:
            self._warnings.append(f"{error}. Going on without this file.")
            return None
        if file is None:
            return None
        checked = check(config_aionrs.translate(file.table))
        self._unused[path] = [dotted(keys) for keys, _ in checked.unknown]
        self._warnings += [
            _without(ConfigFileError(path, problem, key=dotted(keys))) for keys, problem in checked.wrong
        ]
        return Layer(file, checked.table, foreign=True)

    def _checked(self, file: TomlFile, *, strict: bool = True) -> dict[str, Any]:
        whole = self._schema is SCHEMA
        mine = {key: value for key, value in file.table.items() if whole or key in self._schema}
        checked = check(mine, self._schema)
        for keys, problem in checked.wrong:
            error = file.wrong(problem, keys)
            if strict:
                raise error
            self._warnings.append(_without(error))
        for keys, known in checked.unknown:
            self._warnings.append(f"{file.wrong(UNKNOWN_KEY, keys)}.{suggestion(keys[-1], known)}")
        return checked.table


def _origin(layer: Layer, path: Keys) -> Origin:
    at = layer.file.place_of(path)
    return Origin(layer.file.path, dotted(path), at.line if at else None, at.column if at else None)


def _listed(keys: Iterable[str]) -> str:
    names = [f"`{key}`" for key in keys]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _without(error: ConfigFileError) -> str:
    return f"{error}. It is ignored."
