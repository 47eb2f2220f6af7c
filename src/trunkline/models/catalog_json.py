"""The models of a `models.json`, as entries of the catalog.

    {"models": [
      {"name": "hero", "purpose": "language", "tool_call_format": "chatml", "default_sampling": {"temperature": 0.4},
       "variants": [{"engine": "llama-cpp", "huggingface_repo": "owner/repo", "files": ["hero.gguf"],
                     "context_size": 8192}]},
      {"name": "mine", "type": "Language", "local_path": "/models/mine.gguf"},
      {"name": "pirate", "type": "lora", "base_model": "mine", "local_path": "/models/pirate.gguf"},
      {"name": "far", "variants": [{"engine": "openai", "urls": ["http://gpu1:8000/v1", "http://gpu2:8000/v1"],
                                    "model": "big"}]}
    ]}

Three dialects of it are about, and all are read: `purpose` or `type`; what belongs to a variant in `variants` or in the
entry itself; `files` or `file`, `huggingface_repo` or `source` (which may be an address, too), `local_path` as a folder
or as a file, and the older `path`. Of the variants the first that can run here counts. Unknown keys are ignored.

Ours are `engine: openai` with its `url` or `urls`, `model`, `api_key_env` and `max_concurrent`, `sha256`: one per file,
or one for the file; the type `lora`, an adapter, with the `base_model` that it is for, or several; `gpu_layers`,
`threads` and `kv_cache_type`, as in the configuration; and for people `description`, `good_for`, `licence` and
`languages`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.config_schema import LOADING
from trunkline.base.regular import read_regular
from trunkline.core.faults import ConfigError
from trunkline.core.graph.description import LogitBias, LoraAdapter
from trunkline.core.graph.models import SamplingParams
from trunkline.models import local_gguf
from trunkline.models.catalog_entry import (
    EMBEDDING,
    LLAMA,
    LLM,
    LORA,
    ONNX,
    OPENAI,
    CatalogEntry,
    ModelFile,
    is_file_name,
)
from trunkline.models.endpoint import SHOWN_CHARS, endpoint, without_secrets
from trunkline.models.load_options import LoadOptions
from trunkline.models.naming import REPOSITORY

FILE = "models.json"
#: A thousand models are a few hundred KiB.
MAX_BYTES = 4 * 1024 * 1024
#: What a catalog may have at most: a real one has some dozen.
MAX_MODELS = 2000

#: Servers of one model: with more of them, what stands in front of them should choose.
MAX_SERVERS = 64

#: What is run here, by the names that catalogs have for it.
_ENGINES = {
    "llamacpp": LLAMA,
    "llama": LLAMA,
    "1": LLAMA,
    "": LLAMA,
    "onnx": ONNX,
    "onnxruntime": ONNX,
    "openai": OPENAI,
    "openaicompatible": OPENAI,
}
_KINDS = {"": LLM, "language": LLM, "llm": LLM, "embedding": EMBEDDING, "embeddings": EMBEDDING, "lora": LORA}
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def read_catalog(data: bytes, origin: str = "models.json") -> tuple[CatalogEntry, ...]:
    """The models of a `models.json`. What is relative in it is relative to `models_dir`, and is left so.

    Raises:
        ConfigError: it cannot be used; the text names the entry.
    """
    try:
        document = jsontext.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError as error:
        raise ConfigError(f"`{origin}` is not valid JSON: {error}") from None
    listed = document.get("models") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise ConfigError(f"`{origin}` has no list `models`.")
    if len(listed) > MAX_MODELS:
        raise ConfigError(f"`{origin}` has more than {MAX_MODELS} models.")
    entries: dict[str, CatalogEntry] = {}
    for number, record in enumerate(listed, 1):
        try:
            entry = _entry(record)
        except _Wrong as wrong:
            name = record.get("name") if isinstance(record, dict) else None
            which = f"the model `{name}`" if isinstance(name, str) and name else f"model {number}"
            raise ConfigError(f"`{origin}`, {which}: {wrong}.") from None
        if entry.name in entries:
            raise ConfigError(f"`{origin}` has two models `{entry.name}`.")
        entries[entry.name] = entry
    return tuple(entries.values())


class _Wrong(Exception):
    """What is wrong with an entry."""


def _entry(record: Any) -> CatalogEntry:
    if not isinstance(record, dict):
        raise _Wrong("it is not an object")
    name = _text(record, "name")
    if not name or not name.isprintable():
        raise _Wrong("it has no name that can be used")
    kind = _text(record, "purpose") or _text(record, "type")
    variants = record.get("variants", [])
    if not isinstance(variants, list) or not all(isinstance(variant, dict) for variant in variants):
        raise _Wrong("`variants` is not a list of objects")
    variant = record | next((each for each in variants if _engine(each) in _ENGINES.values()), (variants or [{}])[0])
    return CatalogEntry(
        name=name,
        kind=_KINDS.get(kind.lower(), kind.lower()),
        engine=_engine(variant),
        audience=_text(record, "audience"),
        description=_text(record, "description"),
        good_for=_text(record, "good_for"),
        licence=_text(record, "licence") or _text(record, "license"),
        languages=_texts(record, "languages"),
        options=_options(variant),
        tool_call_format=_text(variant, "tool_call_format"),
        context=_count(variant, "context_size") or None,
        sampling=_sampling(record.get("default_sampling")),
        bases=_texts(record, "base_model"),
        **_whereabouts(variant),
    )


def _whereabouts(variant: Mapping[str, Any]) -> dict[str, Any]:
    """Where a variant's files are, or will come from."""
    files = _texts(variant, "files") or _texts(variant, "file")
    source = _text(variant, "huggingface_repo") or _text(variant, "source")
    if source and not source.startswith(("http://", "https://")) and not REPOSITORY.fullmatch(source):
        raise _Wrong(f"`{source}` is neither `owner/repository` nor a URL")
    if source and not files:
        if source.startswith("http"):
            files = (source.partition("?")[0].rpartition("/")[2],)
        if not files or not files[0]:
            raise _Wrong(f"it does not say which `files` of `{source}` it needs")
    for file in files:
        if not is_file_name(file):
            raise _Wrong(f"`{file}` is not a file name")
    digests = _texts(variant, "sha256")
    if not all(map(_SHA256.fullmatch, digests)) or len(digests) not in (0, len(files)):
        raise _Wrong("`sha256` is not one hash of 64 digits for each file")
    urls = tuple(dict.fromkeys(url.strip().rstrip("/") for url in _texts(variant, "urls") or _texts(variant, "url")))
    if _engine(variant) == OPENAI:
        _check_addresses(urls)
    hashes = [digest.lower() for digest in digests] or [""] * len(files)
    return {
        "files": tuple(map(ModelFile, files, hashes)),
        "local_path": os.path.expanduser(_text(variant, "local_path")),
        "path": _text(variant, "path"),
        "source": source,
        "urls": urls,
        "max_concurrent": _count(variant, "max_concurrent"),
        "remote_model": _text(variant, "model"),
        "key_variable": _text(variant, "api_key_env"),
    }


def _check_addresses(urls: tuple[str, ...]) -> None:
    if not urls:
        raise _Wrong("an `openai` engine needs an `url`, or `urls`")
    if len(urls) > MAX_SERVERS:
        raise _Wrong(f"it has more than {MAX_SERVERS} `urls`")
    for url in urls:
        try:
            endpoint(url, "")
        except ConfigError:
            raise _Wrong(f"`{without_secrets(url)[:SHOWN_CHARS]}` is not the `url` of a server") from None


def _options(variant: Mapping[str, Any]) -> LoadOptions:
    """How it is to be loaded. Its window is `context_size`."""
    said: dict[str, Any] = {}
    for key in ("gpu_layers", "threads", "kv_cache_type"):
        value = variant.get(key)
        if value is None:
            continue
        if (problem := LOADING[key].problem(value)) is not None:
            raise _Wrong(f"`{key}` {problem}")
        said[key] = value
    return LoadOptions(**said)


def _engine(variant: Mapping[str, Any]) -> str:
    given = str(variant.get("engine") or "")
    return _ENGINES.get(re.sub(r"[-_. ]", "", given).lower(), given)


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Wrong(f"`{key}` is not a string")
    return value.strip()


def _texts(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = record.get(key)
    listed = [value] if isinstance(value, str) and value else value or []
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise _Wrong(f"`{key}` is not a list of strings")
    return tuple(listed)


def _count(record: Mapping[str, Any], key: str) -> int:
    value = record.get(key) or 0
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise _Wrong(f"`{key}` is not a whole number of 0 or more")
    return value


def _sampling(record: Any) -> SamplingParams | None:
    if not record:
        return None
    if not isinstance(record, dict):
        raise _Wrong("`default_sampling` is not an object")
    given: dict[str, Any] = _forms(record)
    for key, default in SamplingParams.__defaults__.items():
        value = record.get(key)
        if value is None or not isinstance(default, int | float):
            continue
        whole = isinstance(default, int)
        is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or not -(1 << 31) <= value < 1 << 32:
            raise _Wrong(f"`default_sampling.{key}` is not a usable number")
        given[key] = value if whole else float(value)
    return SamplingParams(**given)


def _forms(record: Mapping[str, Any]) -> dict[str, Any]:
    """What is no number, as far as it is there."""
    given: dict[str, Any] = {}
    if stops := _texts(record, "stop"):
        given["stop"] = stops
    if (schema := record.get("json_schema")) is not None:
        if not isinstance(schema, dict):
            raise _Wrong("`default_sampling.json_schema` is not an object")
        given["json_schema"] = jsontext.dumps(schema).decode()
    for key, kind in (("logit_bias", LogitBias), ("lora", LoraAdapter)):
        if numbers := record.get(key):
            if not isinstance(numbers, dict) or not all(map(_is_number, numbers.values())):
                raise _Wrong(f"`default_sampling.{key}` is not an object of numbers")
            given[key] = tuple(kind(text, float(number)) for text, number in numbers.items())
    return given


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def listed(folder: str) -> tuple[CatalogEntry, ...]:
    """The entries of the folder's catalog, if it has one.

    Raises:
        ConfigError: it cannot be used.
    """
    path = os.path.join(folder, FILE)
    try:
        contents = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be read: {error.strerror or 'no file'}.") from None
    if contents.cut:
        raise ConfigError(f"`{path}` has more than {MAX_BYTES} bytes.")
    return read_catalog(contents.data, path)


def loose(folder: str) -> list[CatalogEntry]:
    """A language model for each GGUF file that lies in the folder. An adapter is none."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [
        CatalogEntry(name[:-5], local_path=name, files=(ModelFile(name),))
        for name in names
        if name.endswith(".gguf") and not local_gguf.is_adapter(os.path.join(folder, name))
    ]
