"""What the catalog says of a model."""

from __future__ import annotations

import os
from functools import cache
from typing import Final

from trunkline.base.values import Value
from trunkline.core.graph.models import SamplingParams
from trunkline.models.load_options import NOTHING, LoadOptions

#: What models are for. A catalog of somebody else's may have more kinds.
LLM: Final = "llm"
EMBEDDING: Final = "embedding"
HEARS: Final = "stt"
SPEAKS: Final = "tts"
DETECTS: Final = "vad"
LORA: Final = "lora"

#: What runs them; those that hear and speak have engines of their own (`catalog_voice`).
LLAMA: Final = "llama-cpp"
ONNX: Final = "onnx"
OPENAI: Final = "openai"

#: What an ONNX model for texts has beside it.
TOKENIZER: Final = "tokenizer.json"

#: The window that memory is reckoned for, in tokens: what a model gets that was made for as many, or more.
USUAL_WINDOW: Final = 8192
#: What an engine needs besides the model: its libraries, and room to compute in.
ENGINE_BYTES: Final = 100_000_000


def is_file_name(name: str) -> bool:
    """Whether a name from elsewhere stays in the folder that it is put into."""
    return (
        not os.path.isabs(name)
        and "\\" not in name
        and "\0" not in name
        and {"", ".", ".."}.isdisjoint(name.split("/"))
    )


class WheelMember(Value):
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


class ModelFile(Value):
    """One file of a model: parts of wheels, joined, or a file of the model's source."""

    name: str
    """With folders in front, if it is in one: `onnx/model.onnx`."""
    sha256: str = ""
    """Empty: nobody knows it before the file is here."""
    parts: tuple[WheelMember, ...] = ()
    length: int = 0
    """In bytes, of one that has no parts; 0: nobody knows it before the file is here."""

    @property
    def size(self) -> int:
        """In bytes; 0: nobody knows."""
        return sum(part.size for part in self.parts) if self.parts else self.length


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


class CatalogEntry(Value):
    """A model: where it comes from, what runs it, and how it is used."""

    name: str
    kind: str = LLM
    description: str = ""
    licence: str = ""
    files: tuple[ModelFile, ...] = ()
    """The first is the one that an engine is pointed at."""
    context: int | None = None
    """Tokens that a language model was made for, or is to be used with."""
    engine: str = LLAMA
    """What runs it; a name that is not one of ours means that nothing here does."""
    packaged: Packaged | None = None
    """Instead of files."""
    source: str = ""
    """Of files that are no parts of wheels: a repository on the hub, `owner/name`, or an address of the file, or of the
    folder that the files are in."""
    revision: str = ""
    """Of the repository; empty: the newest."""
    local_path: str = ""
    """Where it is already: a file, or the folder of its files."""
    path: str = ""
    """The same, as older catalogs say it."""
    urls: tuple[str, ...] = ()
    """Where it answers, if it runs elsewhere: one address for each server that has it."""
    max_concurrent: int = 0
    """Requests that each of these may have at once; 0: nobody says."""
    remote_model: str = ""
    """Its name there."""
    key_variable: str = ""
    """The variable with the key."""
    audience: str = ""
    tool_call_format: str = ""
    sampling: SamplingParams | None = None
    """How it samples where nobody says otherwise."""
    bases: tuple[str, ...] = ()
    """Of an adapter, the models that it is for: it is loaded with each of them."""
    good_for: str = ""
    """In a few words, for somebody who chooses one."""
    languages: tuple[str, ...] = ()
    """That it knows well, by their codes (ISO 639-1), as far as its makers say, and the engine here uses them."""
    about: int = 0
    """Bytes on disk, rounded, of one whose files nobody has pinned: until it is here, only its hub knows them."""
    kv_bytes: int = 0
    """Of memory that each token of a language model's window takes, with 16 bits a number."""
    measured: int = 0
    """Bytes of memory that it was seen to take; 0: nobody has looked."""
    options: LoadOptions = NOTHING
    """How it is to be loaded, as its entry says."""

    @property
    def repository(self) -> str:
        """The repository on the hub that it comes from; empty if it comes from anywhere else."""
        return self.source if "://" not in self.source else ""

    @property
    def origin(self) -> str:
        """Where its files come from, in one text that people can type; empty if they are parts of wheels."""
        if not self.source or not self.files:
            return ""
        return f"{self.source}:{self.files[0].name}" if self.repository else self.source.partition("?")[0]

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.packaged.size() if self.packaged is not None else sum(file.size for file in self.files)

    @property
    def expected(self) -> int:
        """Bytes on disk; rounded (`is_about`) where nobody knows better yet, and 0 where nobody knows anything."""
        return self.size or self.about

    @property
    def is_about(self) -> bool:
        """Whether `expected` is rounded."""
        return not self.size and bool(self.about)

    @property
    def is_pinned(self) -> bool:
        """Whether it was settled here what its files are. Of all others their hub says it, when they are fetched."""
        return bool(self.packaged) or (bool(self.files) and all(file.parts for file in self.files))

    @property
    def memory(self) -> int:
        """Bytes of memory that it needs, with one conversation: as measured, else its files, the numbers that are kept
        of a window of `USUAL_WINDOW` tokens, and `ENGINE_BYTES`. 0: nobody can tell."""
        if self.measured or not self.expected:
            return self.measured
        if self.kind == LLM and not self.kv_bytes:
            return 0
        window = min(self.context or USUAL_WINDOW, USUAL_WINDOW)
        return self.expected + window * self.kv_bytes + ENGINE_BYTES

    @property
    def download(self) -> int:
        """Bytes to fetch. Several files may be in one wheel."""
        wheels = {part.wheel_sha256: part.wheel_size for file in self.files for part in file.parts}
        return sum(wheels.values()) + sum(file.length for file in self.files if not file.parts)

    @property
    def key(self) -> str:
        """The name of its contents; empty while they are not known."""
        from hashlib import sha256

        pins = self.packaged.pins if self.packaged is not None else [(file.name, file.sha256) for file in self.files]
        if not all(digest for _, digest in pins):
            return ""
        listing = "".join(f"{digest}  {name}\n" for name, digest in pins)
        return sha256(listing.encode()).hexdigest()
