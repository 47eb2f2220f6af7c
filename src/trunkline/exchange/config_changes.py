"""What the file of a running exchange says that is not in force, and what of it cannot be before the next start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base.config_file import TomlFile, dotted
from trunkline.base.config_problems import Problem
from trunkline.base.config_schema import Keys
from trunkline.base.values import Value
from trunkline.exchange.config_schema import OWN
from trunkline.exchange.config_shown import Clean, shown
from trunkline.exchange.settings import ExchangeSettings

#: What an exchange reads of its file.
_SECTIONS = (*OWN, "otel")


class ConfigDifference(Value):
    """A key that the file on disk says something else of. None: it says nothing of it."""

    key: str
    loaded: Any
    disk: Any
    line: int | None = None


def differences(loaded: TomlFile | None, disk: TomlFile, clean: Clean = lambda value: value) -> list[ConfigDifference]:
    """What a file says on disk that it did not say when it was loaded, and the other way round; in file order."""
    before = {} if loaded is None else dict(_flat(loaded.table))
    after = dict(_flat(disk.table))
    found = []
    for path in dict.fromkeys((*after, *before)):
        if path[0] in _SECTIONS and before.get(path) != after.get(path):
            place = disk.place_of(path) if path in after else None
            loaded_value, disk_value = (
                clean(shown(path, said[path])) if path in said else None for said in (before, after)
            )
            found.append(ConfigDifference(dotted(path), loaded_value, disk_value, place.line if place else None))
    return found


def unchangeable(old: ExchangeSettings, new: ExchangeSettings) -> Iterator[Problem]:
    """What a file says that takes effect with the next start only."""
    for keys, before, after in (
        (("exchange", "home"), old.home, new.home),
        (("exchange", "listen"), old.listen, new.listen),
        (("otel",), old.otel, new.otel),
    ):
        if before != after and new.file is not None:
            error = new.file.wrong("cannot change while the exchange runs", keys)
            yield Problem.of(error, "Start it again.")


def _flat(table: Mapping[str, Any], path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, (*path, key))
        else:
            yield (*path, key), value
