"""The models of this machine: which there are and which are here, pulling and removing them, and how fast they are."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from starlette.responses import Response

from trunkline.base.values import Value
from trunkline.core.faults import DownloadActive
from trunkline.exchange.api.changes import SharedLook, changes
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.events import MEDIA_TYPE
from trunkline.exchange.api.schemas import COUNT, FLAG, MOMENT, TEXT, array, maybe, obj
from trunkline.exchange.exchange import Exchange
from trunkline.models import catalog, fetch, llama, measuring, speed
from trunkline.models.catalog_entry import LLAMA, LLM, CatalogEntry
from trunkline.models.installed import lacking_engines

#: How often is looked whether something has changed, while somebody watches.
LOOK_SECONDS = 0.4
#: How long a model may take to be loaded and to answer when it is measured.
MEASURE_SECONDS = 120.0
#: The longest name that is looked for: repositories and files have shorter ones.
MOST_NAME_CHARS = 400
#: What is told of a pull's failure to those who could do nothing about it: the whole text may name folders.
FAILED = "The pull failed. Admins can see why."


class PullRequest(Value):
    """Body of `POST /api/models/pull`."""

    name: str


# What there is.


async def list_models(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/models`."""
    return await asyncio.to_thread(_listed, call.exchange, is_admin=call.person.may("admin"))


def _listed(exchange: Exchange, *, is_admin: bool) -> dict[str, Any]:
    folder = catalog.models_dir()
    found = [_members(entry, exchange, is_admin=is_admin) for entry in catalog.entries()]
    return {
        "models": found,
        "disk_used": sum(each["disk"] for each in found),
        "disk_free": _free(folder),
        "folder": folder if is_admin else None,
    }


def _members(entry: CatalogEntry, exchange: Exchange, *, is_admin: bool) -> dict[str, Any]:
    path = catalog.path(entry)
    fast = _speed(entry)
    return {
        "id": id_of(entry),
        "name": entry.name,
        "kind": entry.kind,
        "description": entry.description,
        "licence": entry.licence,
        "engine": entry.engine,
        "state": "here" if path is not None else "partly" if fetch.partial(entry) else "absent",
        "lacks": lacking_engines((entry.engine,)),
        "size": entry.expected,
        "download": entry.download or entry.about,
        "disk": fetch.disk_used(entry),
        "path": path if is_admin else None,
        "is_packaged": entry.packaged is not None,
        "is_measurable": path is not None and entry.kind == LLM and entry.engine == LLAMA,
        "used_by": _users(entry, exchange),
        "tokens_per_second": None if fast is None else fast.tokens_per_second,
    }


def id_of(entry: CatalogEntry) -> str:
    """What a model is called in an address, where a slash would mean something else."""
    return entry.name.replace("/", "~")


def _speed(entry: CatalogEntry) -> speed.ModelSpeed | None:
    return speed.last(entry.name) or (speed.last(entry.repository) if entry.repository else None)


def _users(entry: CatalogEntry, exchange: Exchange) -> list[str]:
    """The agents that are told to use a model, or have found it for themselves."""
    names = {entry.name, entry.repository} - {""}
    return [each.name for each in exchange.directory.entries if each.options.get("model") in names]


def _free(folder: str) -> int | None:
    """Bytes that are free where models are kept, or will be."""
    while not os.path.isdir(folder) and folder != (above := os.path.dirname(folder)):
        folder = above
    with suppress(OSError):
        return shutil.disk_usage(folder).free
    return None


def _find(call: ApiCall) -> CatalogEntry:
    """The model that a path names.

    Raises:
        Refused: there is none.
    """
    found = [entry for entry in catalog.entries() if id_of(entry) == call.id]
    if len(found) != 1:
        raise ApiRefused(404, f"There is no model `{call.id[:MOST_NAME_CHARS]}` here.")
    return found[0]


# Pulling.


async def pull(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/models/pull`."""
    name = (await call.body(PullRequest)).name.strip()
    if not name or len(name) > MOST_NAME_CHARS or not name.isprintable():
        raise ApiRefused(400, f"`name` must be the name of a model, with at most {MOST_NAME_CHARS} characters.")
    return (await call.exchange.pulls.start(name, call.person.name)).members()


async def list_pulls(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/models/pulls`."""
    return _pulls(call)


async def cancel(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/models/pulls/{id}/cancel`."""
    found = await call.exchange.pulls.cancel(call.id)
    if found is None:
        raise ApiRefused(404, f"There is no pull `{call.id[:MOST_NAME_CHARS]}`.")
    return found.members()


async def watch(call: ApiCall) -> Response:
    """`GET /api/models/events`."""
    return changes(call, "pulls", SharedLook(lambda: list_pulls(call), LOOK_SECONDS))


def _pulls(call: ApiCall) -> dict[str, Any]:
    found = [each.members() for each in call.exchange.pulls.listed()]
    if not call.person.may("admin"):
        found = [{**each, "error": FAILED if each["error"] else None} for each in found]
    return {"pulls": found}


# Removing and measuring.


async def remove(call: ApiCall) -> Mapping[str, Any]:
    """`DELETE /api/models/{id}`."""
    entry = await asyncio.to_thread(_find, call)
    if users := _users(entry, call.exchange):
        named = ", ".join(f"`{name}`" for name in users)
        raise ApiRefused(409, f"`{entry.name}` is the model of {named}. Give {_them(users)} another one first.")
    names = {entry.name, entry.repository} - {""}
    if any(call.exchange.pulls.active(name) for name in names):
        raise DownloadActive(f"`{entry.name}` is being pulled.", hint="Cancel that first.")
    if llama.loaded() & names:
        told = "An agent has it loaded, and lets go of it some minutes after its last answer."
        raise ApiRefused(409, f"`{entry.name}` is in use. {told}")
    if not await fetch.remove(entry):
        raise ApiRefused(404, f"`{entry.name}` is not here.")
    return {"name": entry.name, "removed": True}


def _them(users: list[str]) -> str:
    return "it" if len(users) == 1 else "them"


async def measure(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/models/{id}/measure`."""
    entry = await asyncio.to_thread(_find, call)
    try:
        async with asyncio.timeout(MEASURE_SECONDS):
            found = await measuring.measure(entry.name)
    except TimeoutError:
        raise ApiRefused(504, f"`{entry.name}` did not answer within {MEASURE_SECONDS:g} s.") from None
    return {
        "name": entry.name,
        "tokens_per_second": found.figures["tokens_per_second"].median,
        "first_token_ms": round(found.figures["first_token_ms"].median),
    }


_RATE = maybe({"type": "number", "exclusiveMinimum": 0})
_MODEL = obj(
    id=TEXT, name=TEXT, kind=TEXT, description=TEXT, licence=TEXT, engine=TEXT,
    state={"enum": ["here", "partly", "absent"]}, lacks=maybe(TEXT), size=COUNT, download=COUNT, disk=COUNT,
    path=maybe(TEXT), is_packaged=FLAG, is_measurable=FLAG, used_by=array(TEXT), tokens_per_second=_RATE,
)  # fmt: skip
_PULL = obj(
    id=TEXT, name=TEXT, by=TEXT, began_at=MOMENT, state={"enum": ["running", "done", "failed", "cancelled"]}, step=TEXT,
    bytes=COUNT, total=COUNT, percent=COUNT, bytes_per_second=maybe({"type": "integer"}), error=maybe(TEXT),
    note=maybe(TEXT),
)  # fmt: skip

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/models", list_models, "observer", "The models of this machine",
        answer=obj(models=array(_MODEL), disk_used=COUNT, disk_free=maybe(COUNT), folder=maybe(TEXT)),
    ),
    ApiEndpoint(
        "POST", "/api/models/pull", pull, "admin", "Begin to pull a model, or go on", body=PullRequest, answer=_PULL,
        statuses=(409,),
    ),
    ApiEndpoint(
        "GET", "/api/models/pulls", list_pulls, "observer", "The pulls in progress and the last ones to end",
        answer=obj(pulls=array(_PULL)),
    ),
    ApiEndpoint(
        "GET", "/api/models/events", watch, "observer", "The same whenever it has changed, as Server-Sent Events",
        answer={"type": "string", "contentMediaType": MEDIA_TYPE},
    ),
    ApiEndpoint(
        "POST", "/api/models/pulls/{id}/cancel", cancel, "admin", "Give a pull up; the next goes on where it was",
        answer=_PULL, statuses=(404,),
    ),
    ApiEndpoint(
        "DELETE", "/api/models/{id}", remove, "admin", "Remove a model from this machine",
        answer=obj(name=TEXT, removed=FLAG), statuses=(404, 409, 502),
    ),
    ApiEndpoint(
        "POST", "/api/models/{id}/measure", measure, "admin", "Have a model answer, and measure how fast it is",
        answer=obj(name=TEXT, tokens_per_second={"type": "number"}, first_token_ms=COUNT),
        statuses=(404, 409, 502, 504),
    ),
)  # fmt: skip
