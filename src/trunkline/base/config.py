"""The configuration files, found, read and laid over one another.

    trunkline.toml            in the workspace
    .aionrs.toml              in the workspace, as hosts made for aionrs write it (`config_aionrs`)
    config.toml               the user's own, in `paths.config_dir()`
    $TRUNKLINE_AIONRS_CONFIG  the user's own of aionrs, where its launcher is ours

The upper beats the lower, key by key; lists and the tables named in `config_schema.WHOLE` are taken whole. Flags and
variables, which beat all of them, are the caller's. What the files of a workspace may say is limited (`config_trust`).

Unknown keys are warned about. A file of ours that is broken is an error; one of aionrs' is a warning, since hosts rely
on a start that works. So is a value of the wrong kind in a workspace, which may be somebody else's work.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.base import config_aionrs, paths
from trunkline.base.config_file import ConfigFileError, TomlFile, read_toml
from trunkline.base.config_schema import WHOLE, Keys, check, dotted, generic, suggestion
from trunkline.base.config_trust import is_trusted, restrict
from trunkline.base.values import Value

__all__ = ["PROJECT_FILE", "USER_FILE", "Config", "ConfigFileError", "Layer", "Origin", "load", "user_file"]

PROJECT_FILE = "trunkline.toml"
USER_FILE = "config.toml"


class Origin(Value):
    """Where a value was set."""

    file: str
    key: str
    line: int | None = None


class Layer(Value):
    """What one file contributes. `foreign` files are aionrs'."""

    file: TomlFile
    table: dict[str, Any]
    foreign: bool = False


class Config:
    """All files together.

    `warnings` are for people, one sentence or two each. `unused` names, for each file of aionrs', the keys that have no
    effect here; whoever knows of more adds them before it asks for `all_warnings`.
    """

    def __init__(
        self,
        layers: Sequence[Layer] = (),
        warnings: Sequence[str] = (),
        unused: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.layers = tuple(layers)
        self.warnings = list(warnings)
        self.unused = {file: list(keys) for file, keys in (unused or {}).items()}
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

    def origin(self, *path: str) -> Origin | None:
        """Where the value at a path comes from: the file, and the key in it that is nearest."""
        for length in range(len(path), 0, -1):
            layer = self._origins.get(path[:length])
            if layer is not None:
                return Origin(layer.file.path, dotted(path), layer.file.line_of(path))
        return None

    def error(self, problem: str, *path: str) -> ConfigFileError:
        """An error about the value at a path, with its place."""
        origin = self.origin(*path)
        if origin is None:
            return ConfigFileError("configuration", problem, key=dotted(path))
        return ConfigFileError(origin.file, problem, key=origin.key, line=origin.line)

    def all_warnings(self) -> tuple[str, ...]:
        """The warnings, with one more per file of aionrs' that says something without effect."""
        told = [
            f"`{file}`: without effect here: {', '.join(f'`{key}`' for key in keys)}."
            for file, keys in self.unused.items()
            if keys
        ]
        return (*self.warnings, *told)

    def _lay_under(self, upper: dict[str, Any], lower: Mapping[str, Any], layer: Layer, path: Keys) -> None:
        """Add what the upper files do not say."""
        for key, value in lower.items():
            here = (*path, key)
            if isinstance(value, dict) and generic(here) not in WHOLE:
                inner = upper.setdefault(key, {})
                if isinstance(inner, dict):
                    self._lay_under(inner, value, layer, here)
            elif key not in upper:
                upper[key] = value
                self._origins[here] = layer


def user_file(environ: Mapping[str, str] = os.environ) -> str:
    """The path of the user's own file, which need not exist."""
    return os.path.join(paths.config_dir(environ), USER_FILE)


def load(workspace: str, environ: Mapping[str, str] = os.environ) -> Config:
    """Read all files that there are.

    Raises:
        ConfigFileError: `trunkline.toml` or the user's file cannot be read or used.
    """
    loader = _Loader(workspace, environ)
    loader.own(user_file(environ))
    trusted = loader.trusted()
    named = environ.get(config_aionrs.FILE_VARIABLE)
    if named:
        loader.theirs(named, trusted=True, last=True)
    loader.theirs(os.path.join(workspace, config_aionrs.PROJECT_FILE), trusted=trusted)
    loader.project(os.path.join(workspace, PROJECT_FILE), trusted=trusted)
    return Config(loader.layers, loader.warnings, loader.unused)


class _Loader:
    """Reads files one after the other, the user's own first: it says whether the others are trusted."""

    def __init__(self, workspace: str, environ: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._user_file = user_file(environ)
        self.layers: list[Layer] = []
        self.warnings: list[str] = []
        self.unused: dict[str, list[str]] = {}

    def own(self, path: str) -> None:
        """The user's file."""
        file = read_toml(path)
        if file is not None:
            self.layers.insert(0, Layer(file, self._checked(file)))

    def trusted(self) -> bool:
        """Whether the user's file, just read, trusts the workspace."""
        return any(is_trusted(self._workspace, layer.table.get("trust", ())) for layer in self.layers)

    def project(self, path: str, *, trusted: bool) -> None:
        """Our file in the workspace."""
        file = read_toml(path)
        if file is not None:
            self.layers.insert(0, Layer(file, self._allowed(file, self._checked(file, strict=False), trusted)))

    def theirs(self, path: str, *, trusted: bool, last: bool = False) -> None:
        """A file of aionrs'."""
        try:
            file = read_toml(path)
        except ConfigFileError as error:
            self.warnings.append(f"{error}. Going on without this file.")
            return
        if file is None:
            return
        checked = check(config_aionrs.translate(file.table))
        self.unused[path] = [dotted(keys) for keys, _ in checked.unknown]
        self.warnings += [_without(ConfigFileError(path, problem, key=dotted(keys))) for keys, problem in checked.wrong]
        layer = Layer(file, self._allowed(file, checked.table, trusted), foreign=True)
        self.layers.insert(len(self.layers) if last else 0, layer)

    def _checked(self, file: TomlFile, *, strict: bool = True) -> dict[str, Any]:
        checked = check(file.table)
        for keys, problem in checked.wrong:
            error = ConfigFileError(file.path, problem, key=dotted(keys), line=file.line_of(keys))
            if strict:
                raise error
            self.warnings.append(_without(error))
        for keys, known in checked.unknown:
            error = ConfigFileError(file.path, "is not known", key=dotted(keys), line=file.line_of(keys))
            self.warnings.append(f"{error}.{suggestion(keys[-1], known)}")
        return checked.table

    def _allowed(self, file: TomlFile, table: dict[str, Any], trusted: bool) -> dict[str, Any]:
        if trusted:
            return table
        allowed, refused = restrict(table)
        if refused:
            names = ", ".join(f"`{dotted(keys)}`" for keys in refused)
            self.warnings.append(
                f"`{file.path}`: not followed: {names}. A workspace's file may not say where requests go, whose key "
                f"they carry, what is run, or what needs no approval. If you trust this directory, say "
                f'`trust = ["{os.path.realpath(self._workspace)}"]` at the top of `{self._user_file}`.'
            )
        return allowed


def _without(error: ConfigFileError) -> str:
    return f"{error}. Going on without it."
