"""Profiles that were read before, without the YAML parser, whose import alone costs as much as the rest of a turn.

An entry holds the text that it was made from, so it cannot be out of date: another text, another place or another
release of this package is read anew; and so is what other code has read, since a profile that it found to be safe may
not be by today's rules. Entries lie in the user's cache, for this user alone; one that is damaged, or
cannot be written, is no error.
"""

from __future__ import annotations

import os
from typing import Any
from zlib import crc32

import trunkline
from trunkline.base import jsontext, paths
from trunkline.base.regular import read_regular
from trunkline.wires.agentproc.profile import Profile

#: Longer files are none of a profile; `file` says so.
_MAX_BYTES = 1024 * 1024
#: Fields that are tuples, which JSON does not have.
_TUPLES = ("command", "args", "env_allowlist", "resume_args", "warnings")


def find(name_or_path: str) -> Profile:
    """What `file.find` finds.

    Raises:
        ConfigError: as there.
    """
    from trunkline.wires.agentproc import hub

    if name_or_path in hub.names():
        # What it means, `file` says; a file of that name is not to be asked.
        return _read(name_or_path)
    try:
        path = os.path.expanduser(name_or_path)
        text = read_regular(path, _MAX_BYTES).data.decode()
        # The profile knows its place, and its warnings name the file as it was named.
        key = [trunkline.__version__, _readers(), name_or_path, os.path.abspath(path), text]
        entry = os.path.join(paths.cache_dir(), "profiles", f"{crc32(jsontext.dumps(key)):08x}.json")
    except (OSError, ValueError):
        return _read(name_or_path)
    return _kept(entry, key) or _keep(entry, key, _read(name_or_path))


def _readers() -> str:
    """Tells the code that reads profiles from what it was before somebody changed it."""
    with os.scandir(os.path.dirname(__file__)) as files:
        found = [(each.name, each.stat()) for each in files if each.name.endswith(".py")]
    return " ".join(sorted(f"{name}:{stat.st_size}:{stat.st_mtime_ns}" for name, stat in found))


def _read(name_or_path: str) -> Profile:
    from trunkline.wires.agentproc.profile import file

    return file.find(name_or_path)


def _is_disks_matter(profile: Profile) -> bool:
    """Whether it depends on the disk, which may have changed next time, what the command means."""
    from trunkline.wires.agentproc.profile.file import may_be_one_path

    return profile.protocol == "auto" and may_be_one_path(" ".join(profile.command))


def _kept(entry: str, key: list[str]) -> Profile | None:
    try:
        with open(entry, "rb") as file:
            found = jsontext.loads(file.read())
        if found["key"] != key:
            return None
        fields: dict[str, Any] = found["fields"]
        for name in _TUPLES:
            if fields[name] is not None:
                fields[name] = tuple(fields[name])
        return Profile(**fields)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(entry: str, key: list[str], profile: Profile) -> Profile:
    if _is_disks_matter(profile):
        return profile
    fields = {name: getattr(profile, name) for name in profile.__fields__}
    fields["env"], fields["plain_env"] = dict(profile.env), dict(profile.plain_env)
    unfinished = f"{entry}.{os.getpid()}"
    try:
        paths.ensure_dir(os.path.dirname(entry))
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, "wb") as file:
            file.write(jsontext.dumps({"key": key, "fields": fields}))
        os.replace(unfinished, entry)
    except OSError:
        # A cache that cannot be written costs time, and nothing else.
        return profile
    return profile
