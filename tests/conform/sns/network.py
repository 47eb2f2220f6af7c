"""The network that tests put before the kit, as it is or bent."""

from __future__ import annotations

import time

import httpx
from starlette.applications import Starlette

from tests.conform.sns.bent import Bend, Bent
from trunkline.conform.kit import CheckResult, Suite
from trunkline.conform.record import Record
from trunkline.conform.sns.cast import Cast, Need, Own
from trunkline.conform.sns.exchange import Target
from trunkline.conform.sns.stage import Stage
from trunkline.conform.sns.suite import SUITE

BASE = "http://localhost"
EXPIRED = "sns.nonce.expired"
PATIENCE: frozenset[Need] = frozenset(("patience",))


class Ahead:
    """The time, which tests may let pass."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.ms


class Healthy:
    """A network that keeps the rules, over ASGI, and who plays against it."""

    clock = Ahead

    def __init__(self, app: Starlette, ahead: Ahead) -> None:
        self._app = app
        self.ahead = ahead
        self.cast = Own()

    def target(self, bend: Bend | None = None) -> Target:
        def connect() -> httpx.AsyncClient:
            plain = httpx.ASGITransport(self._app)
            return httpx.AsyncClient(transport=Bent(plain, bend, self._tokens()) if bend else plain)

        return Target(BASE, connect=connect, sleep=self._sleep)

    async def results(
        self, *patterns: str, bend: Bend | None = None, cast: Cast | None = None, jobs: int = 4
    ) -> tuple[list[CheckResult], list[Record]]:
        """What the kit finds. The communities stay open for the next time.

        Time passes only for a check that is asked for by its name: it would pass for all others, too.
        """
        cast, target = cast or self.cast, self.target(bend)
        extra = PATIENCE if patterns == (EXPIRED,) else frozenset()
        checks = SUITE.playable(SUITE.select(patterns), cast.has | extra)
        try:
            return await Suite.run(SUITE, checks, lambda name: Stage(target, cast, name), jobs=jobs)
        finally:
            self.ahead.ms = self.cast.offset_ms = 0

    async def register(self) -> None:
        """Let everybody be there before anything is bent."""
        stage = Stage(self.target(), self.cast, "register")
        for agent in (await stage.agent(), await stage.peer(), await stage.stranger()):
            await stage.community(agent)
        await stage.close()

    def _tokens(self) -> dict[str, str]:
        agents = [self.cast._made[name] for name in ("agent", "peer", "stranger") if name in self.cast._made]
        return {agent.id: agent.token for agent in agents}

    async def _sleep(self, seconds: float) -> None:
        self.ahead.ms += round(seconds * 1000)
        self.cast.offset_ms = self.ahead.ms
