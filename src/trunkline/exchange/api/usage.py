"""What agents have used: by agent, day, person and model, between two days; also as a table for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date
from typing import Any

from starlette.responses import Response

from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint, Schema
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, array, obj
from trunkline.exchange.usage_rows import BY, UsageBy

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


async def usage(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/usage`."""
    rows, _ = await _used(call)
    return {"usage": rows, "budgets": call.exchange.budgets.standing()}


async def usage_csv(call: ApiCall) -> Response:
    """`GET /api/usage.csv`: a cost that nobody knows is an empty cell."""
    rows, groups = await _used(call)
    columns = [*groups, *_COUNTS]
    lines = [[*(row[name] for name in columns), f"{row['usd']:.6f}" if is_cost_known(row) else ""] for row in rows]
    name = "-".join(["usage", *groups, *(day for day in days(call) if day)])
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "no-store"}
    return Response(csv_text([[*columns, "usd"], *lines]), headers=headers, media_type="text/csv")


async def _used(call: ApiCall) -> tuple[list[dict[str, Any]], list[UsageBy]]:
    by, split = _group(call, "by") or "agent", _group(call, "split")
    if split == by:
        raise ApiRefused(400, "`split` must be another one than `by`.")
    since, until = days(call)
    await call.exchange.switchboard.written()
    rows = await call.exchange.budgets.usage(by, split, since=since, until=until)
    return rows, [each for each in (by, split) if each is not None]


def days(call: ApiCall) -> tuple[str | None, str | None]:
    """The first day and the last one that a query asks about, as far as it does.

    Raises:
        Refused: one of them is none, or they are in the wrong order.
    """
    since, until = (_day(call, name) for name in ("since", "until"))
    if since is not None and until is not None and since > until:
        raise ApiRefused(400, "`since` must not be after `until`.")
    return since, until


def is_cost_known(row: Mapping[str, Any]) -> bool:
    """Whether anything is known of what it cost: tokens that cost nothing are those of a model without a price."""
    return bool(row["usd"]) or not row["unpriced_tokens"]


def _group(call: ApiCall, name: str) -> UsageBy | None:
    said = call.query(name)
    found = next((known for known in BY if known == said), None)
    if said is not None and found is None:
        raise ApiRefused(400, f"`{name}` must be one of {', '.join(f'`{known}`' for known in BY)}.")
    return found


def _day(call: ApiCall, name: str) -> str | None:
    text = call.query(name)
    if text is None:
        return None
    with suppress(ValueError):
        if _DAY.fullmatch(text):
            return date.fromisoformat(text).isoformat()
    raise ApiRefused(400, f"`{name}` must be a day such as `2026-11-16`.")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows for a spreadsheet. What it would take for a formula has an apostrophe in front: names come from anybody."""
    text = io.StringIO()
    csv.writer(text).writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


_COUNTS = (
    "turns", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "unpriced_tokens",
)  # fmt: skip
_NUMBER = {"type": "number"}
_BUDGET = {"type": "object", "additionalProperties": obj(used=_NUMBER, limit=_NUMBER)}
_ROW = obj(**dict.fromkeys(_COUNTS, COUNT), usd=_NUMBER)
_ROW_OR_MORE = {**_ROW, "properties": {**_ROW["properties"], "budget": _BUDGET}}
_GROUP: Schema = {"enum": list(BY)}
_WHEN: Schema = {"type": "string", "format": "date"}

_QUERY = {"by": _GROUP, "split": _GROUP, "since": _WHEN, "until": _WHEN}

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/usage", usage, "observer", "What was used", query=_QUERY,
        answer=obj(usage=array(_ROW_OR_MORE), budgets={"type": "object", "additionalProperties": _BUDGET}),
    ),
    ApiEndpoint(
        "GET", "/api/usage.csv", usage_csv, "observer", "The same for a spreadsheet", query=_QUERY,
        answer={"type": "string", "contentMediaType": "text/csv"},
    ),
)  # fmt: skip
