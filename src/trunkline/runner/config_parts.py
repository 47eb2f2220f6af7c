"""A configuration as nested members: which of them are secret, and how one is taken apart and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base.environ_secrets import names_a_secret, url_secrets
from trunkline.core.faults import ConfigError

Table = Mapping[str, Any]

#: Members that are secret as a whole, though their names do not say so.
SECRET_GROUPS = frozenset({"encodedInput", "securitySensitive"})
#: Members whose content is somebody's words, and not ours to look into.
_OPAQUE = frozenset({"replies", "prompts"})
#: The one member of a reference to the environment.
_REFERENCE = "env"


def table(mapping: Table, name: str) -> Table:
    """A member that is an object; an empty one if it is none."""
    found = mapping.get(name)
    return found if isinstance(found, Mapping) else {}


def at(mapping: Table, *names: str) -> Any:
    """A member of a member; None if it is not there."""
    for name in names[:-1]:
        mapping = table(mapping, name)
    return mapping.get(names[-1])


def group(mapping: Table, name: str) -> Table:
    """A member that is an object; an empty one if it is not there.

    Raises:
        ConfigError: it is something else.
    """
    found = mapping.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ConfigError(f"`{name}` must be an object.")
    return found


def text(mapping: Table, name: str, where: str = "") -> str:
    """A member that is a text, without white space around it; an empty one if it is not there.

    Args:
        where: what it is a member of, with a dot behind it.

    Raises:
        ConfigError: it is something else.
    """
    found = mapping.get(name)
    if found is not None and not isinstance(found, str):
        raise ConfigError(f"`{where}{name}` must be a string.")
    return (found or "").strip()


def resolved(given: Table, environ: Mapping[str, str]) -> dict[str, Any]:
    """The same with the values that references to the environment stand for.

    Raises:
        ConfigError: there is no such variable.
    """
    found: dict[str, Any] = {}
    for name, member in given.items():
        if name in _OPAQUE or not isinstance(member, Mapping):
            found[name] = member
        elif _is_reference(member):
            found[name] = _looked_up(name, member[_REFERENCE], environ)
        else:
            found[name] = resolved(member, environ)
    return found


def public(given: Table) -> dict[str, Any]:
    """What is no secret."""
    found: dict[str, Any] = {}
    for name, member in given.items():
        if _is_secret(name, member):
            continue
        found[name] = public(member) if _is_group(name, member) else member
    return found


def secret(given: Table) -> dict[str, Any]:
    """What is, in its place."""
    found: dict[str, Any] = {}
    for name, member in given.items():
        if _is_secret(name, member):
            found[name] = member
        elif _is_group(name, member) and (inner := secret(member)):
            found[name] = inner
    return found


def merged(base: Any, extra: Any) -> Any:
    """Both together, at every depth; where both say something, `extra` counts."""
    if not isinstance(base, Mapping) or not isinstance(extra, Mapping) or _is_reference(extra):
        return extra
    return {**base, **{name: merged(base.get(name), member) for name, member in extra.items()}}


def places(given: Any, *above: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Where its members are, and what they are: values, and references to the environment."""
    if not isinstance(given, Mapping) or _is_reference(given) or (above and above[-1] in _OPAQUE):
        yield above, given
        return
    for name, member in given.items():
        yield from places(member, *above, name)


def variable_of(member: Any) -> str | None:
    """The variable that a member is a reference to; None if it is none."""
    return str(member[_REFERENCE]) if _is_reference(member) else None


def values(given: Any) -> Iterator[str]:
    """All texts in it."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, Mapping):
        for member in given.values():
            yield from values(member)
    elif isinstance(given, list | tuple):
        for member in given:
            yield from values(member)


def _is_group(name: str, member: Any) -> bool:
    return isinstance(member, Mapping) and name not in _OPAQUE and not _is_reference(member)


def _is_reference(member: Any) -> bool:
    return isinstance(member, Mapping) and list(member) == [_REFERENCE] and isinstance(member[_REFERENCE], str)


def _is_secret(name: str, member: Any) -> bool:
    if _is_reference(member):
        return False
    if name in SECRET_GROUPS:
        return True
    if isinstance(member, Mapping) or name in _OPAQUE:
        return False
    if names_a_secret(name):
        return True
    return isinstance(member, str) and name.lower().endswith("url") and any(url_secrets(member))


def _looked_up(name: str, variable: str, environ: Mapping[str, str]) -> str:
    value = environ.get(variable, "")
    if not value:
        raise ConfigError(f"`{name}`: the environment variable `{variable}` is not set.")
    return value
