"""What agents use: counted durably, and checked against their budgets.

Each session has a `SessionMeter`, which checks and counts; the sessions of one agent share its `AgentBudget`. Days are
in UTC; an hour is the last sixty minutes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from trunkline.base import jsontext
from trunkline.core.faults import BudgetExceeded
from trunkline.core.usage import Usage
from trunkline.exchange import tally, usage_rows
from trunkline.exchange.row_writer import Work
from trunkline.exchange.settings import AgentBudget
from trunkline.exchange.tally import Tally, UncountedTurn
from trunkline.exchange.usage_rows import MICRO, SUMS, UsageBy
from trunkline.models.prices import Price
from trunkline.store.database import Database, Transaction

HOUR_MS = 3_600_000

#: The cost of a request to a model in dollars, by the user's own price if there is one; None if unknown.
Cost = Callable[[str, Usage, Price | None], float | None]


class Spending:
    """What one agent has used today, and how many turns it had in the last hour."""

    def __init__(self, budget: AgentBudget, clock: Callable[[], int]) -> None:
        self.budget = budget
        self._clock = clock
        self.day = ""
        self.tokens = 0
        self.usd = 0.0
        self.began: deque[int] = deque()

    def check(self) -> None:
        """Check whether any of the budget is left.

        Raises:
            BudgetExceeded: none is left; it says when there will be more.
        """
        self.roll()
        tokens, usd = self.budget.tokens_per_day, self.budget.usd_per_day
        if tokens is not None and self.tokens >= tokens:
            raise self._spent(f"{tokens:,} tokens a day", self._until_midnight())
        if usd is not None and self.usd >= usd:
            raise self._spent(f"{usd:g} US dollars a day", self._until_midnight())

    def check_turn(self) -> None:
        """Check whether one more message may be answered.

        Raises:
            BudgetExceeded: not now.
        """
        self.check()
        most = self.budget.turns_per_hour
        if most is not None and len(self.began) >= most:
            what = "1 turn an hour" if most == 1 else f"{most} turns an hour"
            raise self._spent(what, (self.began[0] + HOUR_MS - self._clock()) / 1000)

    def standing(self) -> dict[str, dict[str, float]]:
        """What has been used of each limit that is shared by turns, and the limit."""
        self.roll()
        used = {"tokens_per_day": self.tokens, "usd_per_day": self.usd, "turns_per_hour": len(self.began)}
        limits = {name: getattr(self.budget, name) for name in used}
        return {name: {"used": used[name], "limit": limit} for name, limit in limits.items() if limit is not None}

    def roll(self) -> None:
        """Start over if the day has changed, and forget turns of more than an hour ago."""
        now = self._clock()
        if (today := day_of(now)) != self.day:
            self.day, self.tokens, self.usd = today, 0, 0.0
        while self.began and self.began[0] <= now - HOUR_MS:
            self.began.popleft()

    def _until_midnight(self) -> float:
        now = datetime.fromtimestamp(self._clock() / 1000, UTC)
        return ((now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0) - now).total_seconds()

    @staticmethod
    def _spent(what: str, retry_after: float) -> BudgetExceeded:
        seconds = max(1.0, retry_after)
        told = f"The agent's budget of {what} is spent. There is more in {_rounded(seconds)}."
        return BudgetExceeded(told, retry_after=seconds)


class Budgets:
    """The accounts of all agents."""

    def __init__(self, database: Database, clock: Callable[[], int], cost: Cost) -> None:
        self._database = database
        self._clock = clock
        self._cost = cost
        self._agents: dict[str, Spending] = {}

    async def open(self, budgets: Mapping[str, AgentBudget]) -> None:
        """Load what these agents have used so far; agents that are already known get their new limits."""
        now = self._clock()
        opened: dict[str, Spending] = {}
        for agent in budgets.keys() - self._agents.keys():
            spending = opened[agent] = Spending(budgets[agent], self._clock)
            spending.roll()
            used, began = await self._database.read(partial(_so_far, agent=agent, day=day_of(now), now=now))
            spending.tokens, spending.usd = used
            spending.began.extend(began)
        # All or nothing: a database that cannot be asked leaves everything as it was.
        self._agents |= opened
        for agent, budget in budgets.items():
            self._agents[agent].budget = budget

    async def refresh(self) -> None:
        """Load what has been used since by others who count in the same rows. It never becomes less: what is counted
        here may not be written yet.

        Raises:
            DatabaseGone: nobody knows.
        """
        now = self._clock()
        for agent, spending in tuple(self._agents.items()):
            used, began = await self._database.read(partial(_so_far, agent=agent, day=day_of(now), now=now))
            spending.roll()
            spending.tokens, spending.usd = max(used[0], spending.tokens), max(used[1], spending.usd)
            spending.began = max(deque(began), spending.began, key=len)

    def meter(self, agent: str, session: str, prices: Mapping[str, Price] | None = None) -> SessionMeter:
        """A meter for a session of an agent; `prices` are the user's own, by model."""
        own = prices or {}

        def cost(model: str, usage: Usage) -> float | None:
            return self._cost(model, usage, own.get(model))

        # Models of this machine are agents without a section in the file, and without limits.
        spending = self._agents.get(agent) or Spending(AgentBudget(), self._clock)
        return SessionMeter(agent, session, spending, self._database, self._clock, cost)

    async def usage(
        self, by: UsageBy, split: UsageBy | None = None, *, since: str | None = None, until: str | None = None
    ) -> list[dict[str, Any]]:
        """What was used, as in `usage_rows.used`; by agent alone, with what that is of its budget."""
        rows = await self._database.read(partial(usage_rows.used, by=by, split=split, since=since, until=until))
        if by == "agent" and split is None:
            standing = self.standing()
            # One that is no longer in the file has no budget.
            rows = [{**row, "budget": standing.get(row["agent"], {})} for row in rows]
        return rows

    def standing(self) -> dict[str, dict[str, dict[str, float]]]:
        """What each agent has used of each limit that it has, and the limit."""
        return {agent: spending.standing() for agent, spending in self._agents.items()}


class SessionMeter:
    """Checks and counts for one session. See `core.agent.Meter`.

    Agents that do not use it are counted at the end of their turns: `turn_ended`. What an agent has counted itself is
    remembered per turn: the end of a turn is reported once it is on disk, and by then the next turn may have begun.
    """

    def __init__(
        self,
        agent: str,
        session: str,
        spending: Spending,
        database: Database,
        clock: Callable[[], int],
        cost: Callable[[str, Usage], float | None],
    ) -> None:
        self._agent = agent
        self._session = session
        self._spending = spending
        self._database = database
        self._clock = clock
        self._cost = cost
        self._metered: dict[int, tuple[Usage, str]] = {}
        """What has been counted for each turn in progress, and the model it was last counted for."""
        self._admitted = 0
        """Messages that were admitted but have not been started."""
        self._counted = 0
        """The last turn whose rest was counted."""
        self.keep: Callable[[Work], None] = _forget
        """Writes rows one after the other; set by the owner of the session."""
        self.now: Callable[[], tuple[int, str]] = lambda: (0, "")
        """The turn in progress and who asked; set by the owner of the session."""

    @property
    def seconds_per_turn(self) -> float | None:
        """How long a turn may take."""
        return self._spending.budget.seconds_per_turn

    def check(self) -> None:
        self._spending.check()

    def check_turn(self) -> None:
        """Check whether a message may be answered.

        Raises:
            BudgetExceeded: not now.
        """
        self._spending.check_turn()

    def admit(self) -> None:
        self._spending.check_turn()
        # Counted here and not when it starts: otherwise all waiting messages would see the same remainder.
        self._spending.began.append(self._clock())
        self._admitted += 1

    def spent(self, usage: Usage, model: str) -> None:
        turn, person = self.now()
        before = self._metered.get(turn)
        whole = usage if before is None else before[0] + usage
        self._metered[turn] = (whole, model)
        self._count(usage, model)
        # At once: it has been spent even if the process dies during the turn.
        counted = partial(tally.spent, session=self._session, turn=turn, used=whole, model=model)
        self.keep(lambda: self._write(usage, model, person, 0, counted))

    async def turn_expected(self, turn: int) -> None:
        """A turn is about to begin."""
        await self._database.write(lambda tx: tally.began(tx, self._session, turn))

    async def turn_began(self, turn: int, noted: Callable[[Transaction], None] = lambda tx: None) -> None:
        """A message is being answered, or refused. `noted` writes what goes with that."""
        now = self._clock()
        admitted = self._admitted > 0

        def write(tx: Transaction) -> None:
            tally.began(tx, self._session, turn)
            if admitted:
                tx.execute("DELETE FROM turn_began WHERE agent = ? AND at <= ?", (self._agent, now - HOUR_MS))
                tx.execute("INSERT INTO turn_began (agent, at) VALUES (?, ?)", (self._agent, now))
            noted(tx)

        await self._database.write(write)
        # Only now: it is called again if the database does not answer.
        self._admitted -= admitted

    async def turn_ended(
        self, turn: int, usage: Usage | None, person: str, noted: Callable[[Transaction], None] = lambda tx: None
    ) -> None:
        """The turn is over. What the agent did not count itself is counted now. `noted` writes what goes with that."""
        counted, model = self._metered.get(turn, (None, ""))
        rest = _less(usage, counted)
        if rest is not None and turn != self._counted:
            # Once, and before it is written: it is called again if the database does not answer.
            self._counted = turn
            self._count(rest, model)

        def ended(tx: Transaction) -> None:
            tally.ended(tx, self._session, turn)
            noted(tx)

        await self._write(rest or Usage(), model, person, 1, ended)
        self._metered.pop(turn, None)

    async def catch_up(self, so_far: Tally, ends: Sequence[UncountedTurn]) -> None:
        """Count what the log has, and no row: a process died between the two."""
        if so_far.metered > so_far.ended:
            self._metered[so_far.metered] = (so_far.used, so_far.model)
        for end in ends:
            await self.turn_ended(end.turn, end.usage, end.sender)

    def _count(self, usage: Usage, model: str) -> None:
        self._spending.roll()
        self._spending.tokens += sum(filter(None, (usage.input_tokens, usage.output_tokens)))
        self._spending.usd += self._cost(model, usage) or 0.0

    async def _write(
        self, usage: Usage, model: str, person: str, turns: int, counted: Callable[[Transaction], None]
    ) -> None:
        key = (day_of(self._clock()), self._agent, jsontext.whole(person), jsontext.whole(model))
        added = (
            turns, usage.input_tokens or 0, usage.output_tokens or 0, usage.cache_read_tokens or 0,
            usage.cache_write_tokens or 0, round((self._cost(model, usage) or 0.0) * MICRO),
        )  # fmt: skip
        sets = ", ".join(f"{name} = usage.{name} + excluded.{name}" for name in SUMS)
        sql = (
            f"INSERT INTO usage (day, agent, person, model, {', '.join(SUMS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            f"ON CONFLICT (day, agent, person, model) DO UPDATE SET {sets}"
        )

        def write(tx: Transaction) -> None:
            tx.execute(sql, (*key, *added))
            counted(tx)

        await self._database.write(write)


def _forget(work: Work) -> None:
    """Nobody keeps it."""


def _rounded(seconds: float) -> str:
    """A time to wait, as people say it: never too short."""
    minutes = math.ceil(seconds / 60)
    if minutes <= 1:
        return "a minute"
    return f"{minutes} minutes" if minutes < 120 else f"{math.ceil(minutes / 60)} hours"


def day_of(at: int) -> str:
    """The day of a time, such as `2026-11-16`."""
    return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()


def _less(whole: Usage | None, part: Usage | None) -> Usage | None:
    """What the first has beyond the second; None if that is nothing."""
    if whole is None or part is None:
        return whole
    rest = {name: max(0, (getattr(whole, name) or 0) - (getattr(part, name) or 0)) for name in whole.__fields__}
    return Usage(**rest) if any(rest.values()) else None


def _so_far(tx: Transaction, agent: str, day: str, now: int) -> tuple[tuple[int, float], list[int]]:
    row = tx.one(
        "SELECT SUM(input_tokens) AS input, SUM(output_tokens) AS output, SUM(micro_usd) AS usd FROM usage "
        "WHERE agent = ? AND day = ?",
        (agent, day),
    )
    found = row or {}
    used = (int(found.get("input") or 0) + int(found.get("output") or 0), int(found.get("usd") or 0) / MICRO)
    began = tx.all("SELECT at FROM turn_began WHERE agent = ? AND at > ? ORDER BY at", (agent, now - HOUR_MS))
    return used, [int(each["at"]) for each in began]
