"""A hub of models as Hugging Face is one: `owner/repository[:file]` becomes an entry of the catalog.

    found = await find("Qwen/Qwen2.5-0.5B-Instruct-GGUF")
    found.entry.name        # "Qwen/Qwen2.5-0.5B-Instruct-GGUF:qwen2.5-0.5b-instruct-q4_k_m.gguf"

The hub's address is `HF_ENDPOINT`, else huggingface.co. A token in `HF_TOKEN` opens what is private or gated; it goes
to that host and to no other, and never without TLS to another machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from trunkline.base import jsontext
from trunkline.base.nearest import nearest
from trunkline.base.sizes import size_text
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError, DownloadFailed
from trunkline.models import fetch_http, naming
from trunkline.models.catalog_entry import EMBEDDING, LLAMA, LLM, ONNX, TOKENIZER, CatalogEntry, ModelFile, is_file_name
from trunkline.models.endpoint import host_of, is_own_machine
from trunkline.models.fetch_index import IndexSettings

if TYPE_CHECKING:
    import httpx

HUB = "https://huggingface.co"
ENDPOINT, TOKEN = "HF_ENDPOINT", "HF_TOKEN"

_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")

#: Quantisations in the order in which they are chosen: with four bits a model is a third of its size and nearly as
#: good, and what has fewer is for those who know why.
PREFERRED = (
    "Q4_K_M", "Q5_K_M", "Q4_K_S", "Q4_K_L", "IQ4_XS", "IQ4_NL", "Q4_0", "Q4_1", "Q5_K_S", "Q5_0", "Q5_1", "Q6_K",
    "Q8_0", "MXFP4",
)  # fmt: skip
_QUANTISATION = re.compile(r"(?<![A-Z0-9])((?:UD-)?I?Q\d(?:_[A-Z0-9]+)*|B?F16|F32|MXFP4)(?![A-Z0-9])")
#: Files in the format that are no models by themselves.
_PARTS_OF_MODELS = re.compile(r"(?:^|/)(?:mmproj|imatrix)", re.IGNORECASE)
#: One of several files that belong together.
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.gguf)")
#: Names of ONNX files in the order in which they are chosen: small first.
_ONNX = ("model_quantized.onnx", "model_int8.onnx", "model.onnx")
#: What the hub calls models whose answers are vectors.
_EMBEDS = ("feature-extraction", "sentence-similarity")

#: The most files of a repository that are named in an error.
MOST_NAMED = 20


class HubModel(Value):
    """A model that was found on the hub."""

    entry: CatalogEntry
    others: tuple[str, ...] = ()
    """What else could have been chosen, if nobody said which."""


def endpoint() -> str:
    """The address of the hub."""
    return os.environ.get(ENDPOINT, "").strip().rstrip("/") or HUB


def address(entry: CatalogEntry, file: ModelFile) -> str:
    """Where a file of an entry is."""
    if entry.repository:
        return f"{endpoint()}/{entry.source}/resolve/{quote(entry.revision or 'main', safe='')}/{quote(file.name)}"
    if len(entry.files) == 1 and not entry.source.endswith("/"):
        return entry.source
    return f"{entry.source.rstrip('/')}/{quote(file.name)}"


def headers(entry: CatalogEntry | None = None) -> dict[str, str]:
    """What proves to the hub who asks; nothing for an address that is not the hub's."""
    token = os.environ.get(TOKEN, "").strip()
    if not token or (entry is not None and not entry.repository):
        return {}
    hub = endpoint()
    return {"authorization": f"Bearer {token}"} if hub.startswith("https:") or is_own_machine(hub) else {}


async def find(name: str) -> HubModel:
    """The model of that name. Without a file one is chosen, if it is clear which.

    Raises:
        ConfigError: it is no such name, or it is not clear which file is meant; the text lists them.
        DownloadFailed: the hub does not tell, or has no such repository.
    """
    parts = naming.split(name)
    if parts is None:
        raise ConfigError(f"`{name}` is not the name of a model on a hub.", hint="Write `owner/repository[:file]`.")
    repository, wanted = parts
    async with fetch_http.make_client(IndexSettings(())) as client:
        told = await _told(client, repository)
    files = _files(told)
    models = _models(files)
    if not models:
        raise ConfigError(
            f"`{repository}` has no GGUF or ONNX file.", hint="Look for a repository that has `GGUF` in its name."
        )
    chosen = _named(wanted, models, repository) if wanted else _chosen(models, repository)
    others = () if wanted else tuple(each for each in models if each != chosen)
    return HubModel(_entry(told, repository, chosen, files), others)


async def _told(client: httpx.AsyncClient, repository: str) -> Mapping[str, Any]:
    """What the hub says of a repository."""
    url = f"{endpoint()}/api/models/{repository}?blobs=true"
    try:
        body, _, _ = await fetch_http.get_page(client, url, {"accept": "application/json", **headers()})
        told = jsontext.loads(body)
    except fetch_http.RequestFailed as error:
        raise refused(error, repository) from None
    except ValueError:
        told = None
    if not isinstance(told, dict):
        raise DownloadFailed(
            f"`{host_of(endpoint())}` does not answer as a hub of models.", hint=f"Check `{ENDPOINT}`."
        )
    return told


def refused(error: fetch_http.RequestFailed, repository: str) -> DownloadFailed:
    """What it means that the hub does not give something of a repository, and what to do next."""
    hub = endpoint()
    host = host_of(hub)
    if error.status not in (401, 403, 404):
        return DownloadFailed(
            f"`{repository}` cannot be fetched from `{host}`: {error}.",
            retryable=True,
            hint=f"Check the network and the proxy, or name a mirror in `{ENDPOINT}`.",
        )
    if headers():
        hint = f"Check the name, and whether the token in `{TOKEN}` may read it: {hub}/{repository}"
    elif os.environ.get(TOKEN):
        hint = f"Check the name. The token in `{TOKEN}` is not sent without TLS: `{ENDPOINT}` must begin with `https:`."
    else:
        hint = f"Check the name. If it is private or gated, accept its terms at {hub}/{repository} and set `{TOKEN}`."
    return DownloadFailed(f"`{host}` has no `{repository}` for you (HTTP status {error.status}).", hint=hint)


def _files(told: Mapping[str, Any]) -> dict[str, ModelFile]:
    """The files of a repository, by name."""
    listed = told.get("siblings")
    files: dict[str, ModelFile] = {}
    for each in listed if isinstance(listed, list) else ():
        name = each.get("rfilename") if isinstance(each, dict) else None
        if not isinstance(name, str) or not name.isprintable() or not is_file_name(name):
            continue
        lfs = each.get("lfs") if isinstance(each.get("lfs"), dict) else {}
        digest, size = lfs.get("sha256"), lfs.get("size", each.get("size"))
        files[name] = ModelFile(
            name,
            digest if isinstance(digest, str) and _SHA256.fullmatch(digest) else "",
            length=size if type(size) is int and size > 0 else 0,
        )
    return files


def _models(files: Mapping[str, ModelFile]) -> dict[str, tuple[ModelFile, ...]]:
    """The models among the files, each by the name of its first file."""
    found: dict[str, tuple[ModelFile, ...]] = {}
    for name, file in files.items():
        if not name.endswith(".gguf") or _PARTS_OF_MODELS.search(name):
            continue
        shard = _SHARD.fullmatch(name)
        if shard is None:
            found[name] = (file,)
        elif int(shard[2]) == 1:
            names = [f"{shard[1]}-{number:05}-of-{shard[3]}{shard[4]}" for number in range(1, int(shard[3]) + 1)]
            if all(each in files for each in names):
                found[name] = tuple(files[each] for each in names)
    if not found:
        found = {
            name: (file, *([files[TOKENIZER]] if TOKENIZER in files else []))
            for name, file in files.items()
            if name.endswith(".onnx")
        }
    return found


def quantisation(name: str) -> str:
    """The quantisation that the name of a file tells, such as `Q4_K_M`; empty if it tells none."""
    found = _QUANTISATION.findall(name.upper())
    return found[-1].removeprefix("UD-") if found else ""


def _chosen(models: Mapping[str, tuple[ModelFile, ...]], repository: str) -> str:
    if len(models) == 1:
        return next(iter(models))
    for wanted in PREFERRED:
        named = [name for name in models if quantisation(name) == wanted]
        if named:
            return min(named, key=lambda name: (len(name), name))
    for wanted in _ONNX:
        named = [name for name in models if name.rpartition("/")[2] == wanted]
        if named:
            return min(named, key=len)
    raise ConfigError(f"`{repository}` has several models: {_listed(models)}.", hint=f"Name one: `{repository}:FILE`.")


def _named(wanted: str, models: Mapping[str, tuple[ModelFile, ...]], repository: str) -> str:
    """The model that is meant: by its file, one of its files, or its quantisation."""
    for name, files in models.items():
        if wanted in {file.name for file in files}:
            return name
    named = [name for name in models if quantisation(name) == wanted.upper()]
    if len(named) == 1:
        return named[0]
    meant = nearest(wanted, models)
    hint = f"Did you mean `{repository}:{meant}`?" if meant else f"Name one: `{repository}:FILE`."
    raise ConfigError(f"`{repository}` has no model `{wanted}`. It has {_listed(models)}.", hint=hint)


def _listed(models: Mapping[str, tuple[ModelFile, ...]]) -> str:
    named = [f"`{name}`{size(sum(file.length for file in files))}" for name, files in models.items()]
    more = len(named) - MOST_NAMED
    return ", ".join(named[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def size(count: int) -> str:
    """A size for people, in parentheses; empty if it is not known."""
    return f" ({size_text(count)})" if count else ""


def _entry(told: Mapping[str, Any], repository: str, chosen: str, files: Mapping[str, ModelFile]) -> CatalogEntry:
    gguf = found if isinstance(found := told.get("gguf"), dict) else {}
    is_onnx = chosen.endswith(".onnx")
    commit = told.get("sha")
    window = gguf.get("context_length")
    entry = CatalogEntry(
        "",
        EMBEDDING if is_onnx or _embeds(told, gguf) else LLM,
        f"{quantisation(chosen) or 'A model'} of {repository}.",
        _licence(told),
        _models(files)[chosen],
        window if type(window) is int and 0 < window < 1 << 31 else None,
        ONNX if is_onnx else LLAMA,
        source=repository,
        # What is chosen now is what comes, also if the repository changes meanwhile.
        revision=commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else "",
    )
    return entry.replace(name=entry.origin)


def _embeds(told: Mapping[str, Any], gguf: Mapping[str, Any]) -> bool:
    """Whether a model gives vectors, by what the hub calls it and by how it is built."""
    built = str(gguf.get("architecture", ""))
    return told.get("pipeline_tag") in _EMBEDS or "bert" in built or "embedding" in built


def _licence(told: Mapping[str, Any]) -> str:
    card = told.get("cardData")
    licence = card.get("license") if isinstance(card, dict) else None
    tags = told.get("tags")
    tagged = (
        [str(tag).removeprefix("license:") for tag in tags if str(tag).startswith("license:")]
        if isinstance(tags, list)
        else []
    )
    known = licence if isinstance(licence, str) else (tagged or [""])[0]
    return known if known.isprintable() and len(known) <= 100 else ""
