"""Models that are being pulled to this machine: in the background, watched by anybody, given up by whoever may.

    pull = await pulls.start("smollm2-135m", by="ana")
    pull.state                  # "running", then "done"

A pull that was given up or that failed goes on where it was when it is started again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Literal
from uuid import uuid4

from trunkline.base import paths
from trunkline.core.faults import DownloadActive, Fault
from trunkline.models import fetch, wanted
from trunkline.models.installed import lacking_engines

logger = logging.getLogger(__name__)

PullState = Literal["running", "done", "failed", "cancelled"]

#: At once: more of them share one line, and none gets done.
MOST_AT_ONCE = 3
#: That are remembered after they are over.
MOST_KEPT = 20
#: How often the rate is found anew, in seconds: shorter ones jump.
RATE_SECONDS = 1.0


class ModelPull:
    """One pull. `name` is what was asked for, and the model's own name once it is known."""

    def __init__(self, name: str, by: str, began_at: int) -> None:
        self.id = uuid4().hex[:12]
        self.name = name
        self.by = by
        self.began_at = began_at
        self.state: PullState = "running"
        self.step = "looking for it"
        """What is being done, in words."""
        self.bytes = self.total = 0
        self.rate: float | None = None
        """Bytes a second; None: not known yet."""
        self.error = ""
        self.note = ""
        """What else is to be known of it: that something is missing which runs it, or what was chosen."""
        self._asked = name
        self._mark: tuple[float, int] | None = None

    def is_about(self, name: str) -> bool:
        """Whether this is a pull of a model of that name."""
        return name in (self.name, self._asked)

    def report(self, step: str, done: int, total: int) -> None:
        """How it goes, as `fetch.pull` tells it."""
        now = time.monotonic()
        if self._mark is None or step != self.step or done < self.bytes:
            # What was there before has not come over the line.
            self._mark = now, done
        elif now - self._mark[0] >= RATE_SECONDS:
            self.rate = (done - self._mark[1]) / (now - self._mark[0])
            self._mark = now, done
        self.step, self.bytes, self.total = step, done, total

    def over(self, state: PullState, error: str = "") -> None:
        """It has ended."""
        self.state, self.error, self.rate = state, error, None
        if state == "done":
            self.bytes = self.total

    def members(self) -> dict[str, Any]:
        """It for programs."""
        return {
            "id": self.id,
            "name": self.name,
            "by": self.by,
            "began_at": self.began_at,
            "state": self.state,
            "step": self.step,
            "bytes": self.bytes,
            "total": self.total,
            "percent": 100 if self.state == "done" else _percent(self.bytes, self.total),
            "bytes_per_second": None if self.rate is None else round(self.rate),
            "error": self.error or None,
            "note": self.note or None,
        }


class ModelPulls:
    """All of them. For one event loop."""

    def __init__(self, clock: Callable[[], int], clean: Callable[[str], str] = str) -> None:
        """`clean` takes secrets out of a text."""
        self._clock = clock
        self._clean = clean
        self._pulls: dict[str, ModelPull] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def listed(self) -> list[ModelPull]:
        """Those under way and those that are over, the newest first."""
        return list(reversed(self._pulls.values()))

    def active(self, name: str) -> ModelPull | None:
        """The one under way of a model; None if there is none."""
        return next((pull for pull in self._pulls.values() if pull.state == "running" and pull.is_about(name)), None)

    async def start(self, name: str, by: str) -> ModelPull:
        """Begin to pull a model, or go on; gives the pull under way if there is one.

        Raises:
            ConfigError: it is not the name of a model.
            DownloadActive: there are too many at once.
        """
        await asyncio.to_thread(wanted.named, name)
        if (found := self.active(name)) is not None:
            return found
        if len(self._tasks) >= MOST_AT_ONCE:
            raise DownloadActive(
                f"{MOST_AT_ONCE} models are being pulled already.", hint="Wait for one of them, or cancel one."
            )
        pull = ModelPull(name, by, self._clock())
        self._pulls[pull.id] = pull
        task = self._tasks[pull.id] = asyncio.create_task(self._run(pull), name=f"pull {name}")
        task.add_done_callback(lambda task: self._over(pull, task))
        return pull

    async def cancel(self, id: str) -> ModelPull | None:
        """Give one up; gives it, or None if there is none. What has come of it stays for the next time."""
        pull = self._pulls.get(id)
        if pull is not None and (task := self._tasks.get(id)) is not None:
            task.cancel()
            await asyncio.wait({task})
        return pull

    async def close(self) -> None:
        """Give all of them up. Idempotent."""
        tasks = set(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, pull: ModelPull) -> None:
        try:
            found = await wanted.wanted(pull.name)
            pull.name = found.entry.name
            await fetch.pull(found.entry, pull.report)
            pull.note = lacking_engines((found.entry.engine,)) or ""
            pull.over("done")
        except asyncio.CancelledError:
            pull.over("cancelled")
        except Fault as fault:
            pull.over("failed", self._clean(str(fault)))
        except OSError as error:
            pull.over("failed", self._clean(paths.unusable(error)))

    def _over(self, pull: ModelPull, task: asyncio.Task[None]) -> None:
        self._tasks.pop(pull.id, None)
        if task.cancelled():
            # It had not even begun.
            pull.over("cancelled")
        elif (error := task.exception()) is not None:
            logger.error("a pull of %s failed", pull.name, exc_info=error)
            pull.over("failed", "Internal error. The log says more.")
        ended = [each.id for each in self._pulls.values() if each.state != "running"]
        for old in ended[:-MOST_KEPT]:
            del self._pulls[old]


def _percent(done: int, total: int) -> int:
    return min(100, 100 * done // total) if total else 0
