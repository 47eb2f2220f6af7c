"""What was used: in a range of days as a chart, and by agent, model and person as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

from trunkline.base.values import Value
from trunkline.exchange.api.endpoint import ApiCall
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.usage import days, is_cost_known
from trunkline.exchange.budgets import day_of
from trunkline.exchange.console.chart import day_chart
from trunkline.exchange.console.page import ConsolePage
from trunkline.exchange.usage_rows import UsageBy

#: The ranges to choose from: days up to today, and how they are called.
RANGES = ((1, "Today"), (7, "7 days"), (30, "30 days"), (90, "90 days"))
#: The one that is shown first.
USUAL_DAYS = 30
#: The longest that is drawn: each day has a bar.
MOST_DAYS = 366
#: What the bars can be about, and what they can be divided by.
MEASURES = (("tokens", "Tokens"), ("usd", "US dollars"), ("turns", "Turns"))
SPLITS: tuple[tuple[UsageBy, str], ...] = (("agent", "Agent"), ("model", "Model"), ("person", "Person"))
#: The limits of a budget, as people say them.
LIMITS = {"tokens_per_day": "tokens today", "usd_per_day": "USD today", "turns_per_hour": "turns this hour"}
#: What stands for what nobody knows.
UNKNOWN = "-"
#: What usage without a name belongs to.
NOBODY = "(none)"


class UsageQuery(Value):
    """What the page is asked for."""

    since: date
    until: date
    measure: str
    split: UsageBy

    def address(self, **changed: Any) -> str:
        """The page's address with some of it changed."""
        return f"/usage?{urlencode({**self.members(), **changed})}"

    def members(self) -> dict[str, str]:
        return {
            "since": self.since.isoformat(),
            "until": self.until.isoformat(),
            "measure": self.measure,
            "split": self.split,
        }


async def usage(call: ApiCall) -> Mapping[str, Any]:
    """`GET /usage`."""
    today = date.fromisoformat(day_of(call.exchange.clock()))
    asked = _asked(call, today)
    since, until = asked.since.isoformat(), asked.until.isoformat()
    budgets = call.exchange.budgets
    await call.exchange.switchboard.written()
    tables = {split: await budgets.usage(split, since=since, until=until) for split, _ in SPLITS}
    rows = await budgets.usage("day", asked.split, since=since, until=until)
    # What nobody knows the cost of has no bar: it would look as if it had cost nothing.
    drawn = [row for row in rows if asked.measure != "usd" or is_cost_known(row)]
    amounts = {(str(row["day"]), str(row[asked.split] or NOBODY)): amount(row, asked.measure) for row in drawn}
    return {
        "asked": asked,
        "measure": dict(MEASURES)[asked.measure],
        "choices": _choices(asked, today),
        "total": totals(tables["agent"]),
        "chart": day_chart(
            amounts,
            asked.since,
            asked.until,
            lambda value: told(value, asked.measure),
            lambda value: brief(value, asked.measure),
        ),
        "by_day": _by_day(rows),
        "tables": [_table(tables[split], split, title, asked.measure) for split, title in SPLITS],
        "budgets": {agent: _limits(limits) for agent, limits in budgets.standing().items() if limits},
        "csv": f"/api/usage.csv?{urlencode({'by': 'day', 'split': asked.split, 'since': since, 'until': until})}",
        "cost": cost,
        "told": lambda value: told(value, asked.measure),
    }


def _asked(call: ApiCall, today: date) -> UsageQuery:
    since, until = days(call)
    last = today if until is None else date.fromisoformat(until)
    # There is no day before the first that dates know.
    usual = date.fromordinal(max(1, last.toordinal() - USUAL_DAYS + 1))
    first = usual if since is None else date.fromisoformat(since)
    if first > last:
        raise ApiRefused(400, "The first day must not be after the last one.")
    if (last - first).days >= MOST_DAYS:
        raise ApiRefused(400, f"At most {MOST_DAYS} days can be shown at once. The table for spreadsheets has all.")
    measure, split = call.query("measure") or "tokens", call.query("split") or "agent"
    found = next((known for known, _ in SPLITS if known == split), None)
    if measure not in dict(MEASURES) or found is None:
        raise ApiRefused(400, "There is no such chart.")
    return UsageQuery(first, last, measure, found)


def _choices(asked: UsageQuery, today: date) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """What can be chosen: under which name, and for each its title, its address and whether it is chosen."""
    ranges = [(title, today - timedelta(count - 1)) for count, title in RANGES]
    until = today.isoformat()
    return [
        ("Days", [
            (title, asked.address(since=since.isoformat(), until=until), (asked.since, asked.until) == (since, today))
            for title, since in ranges
        ]),
        ("Show", [(title, asked.address(measure=name), name == asked.measure) for name, title in MEASURES]),
        ("By", [(title, asked.address(split=name), name == asked.split) for name, title in SPLITS]),
    ]  # fmt: skip


def amount(row: Mapping[str, Any], measure: str) -> float:
    """What a row has of a measure."""
    if measure == "tokens":
        return float(row["input_tokens"] + row["output_tokens"])
    return float(row[measure])


def told(value: float, measure: str) -> str:
    """An amount in words."""
    if measure == "usd":
        return f"${value:,.2f}"
    return f"{round(value):,} {measure if round(value) != 1 else measure[:-1]}"


def brief(value: float, measure: str) -> str:
    """The same beside a scale, where there is little room."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if value >= size:
            return f"{'$' if measure == 'usd' else ''}{value / size:.3g}{unit}"
    return f"${value:.2f}" if measure == "usd" else f"{value:.3g}"


def cost(row: Mapping[str, Any]) -> str:
    """What it cost, as far as that is known."""
    if not is_cost_known(row):
        return UNKNOWN
    # Part of it may have been used with a model that has no price.
    return f"{row['usd']:,.4f}{'+' if row['unpriced_tokens'] else ''}"


def totals(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All of it together."""
    found: dict[str, Any] = dict.fromkeys(("turns", "input_tokens", "output_tokens", "unpriced_tokens"), 0)
    found["usd"] = 0.0
    for row in rows:
        for name in found:
            found[name] += row[name]
    return found


def _by_day(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["day"], []).append(row)
    return [(day, totals(group)) for day, group in sorted(found.items(), reverse=True)]


def _table(rows: list[dict[str, Any]], split: UsageBy, title: str, measure: str) -> dict[str, Any]:
    whole = sum(amount(row, measure) for row in rows)
    ordered = sorted(rows, key=lambda row: (-amount(row, measure), str(row[split])))
    lines = [{**row, "name": row[split] or NOBODY, "share": _percent(amount(row, measure), whole)} for row in ordered]
    return {"split": split, "title": title, "rows": lines}


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def _limits(limits: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    return [
        {**limit, "name": LIMITS.get(name, name), "text": f"{_number(limit['used'])} of {_number(limit['limit'])}"}
        for name, limit in limits.items()
    ]


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


PAGES = (ConsolePage("/usage", usage, "usage.html"),)
