"""How bad habits are told: classes of agents or servers, and the checks that must notice each of them."""

from __future__ import annotations

TYPE_CHECKING = False  # not of `typing`: it would take a tenth of the start
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import Any, Protocol, TypeVar

    from trunkline.conform.kit import CheckResult

    T = TypeVar("T", bound=type[Any])

    class Play(Protocol):
        """Puts the checks of these patterns to one subject."""

        def __call__(self, *patterns: str, patience: float = ...) -> Awaitable[list[CheckResult]]: ...


#: For who has been hasty once: many times what an answer takes, and still less than a test may.
LONG_PATIENCE = 20.0


class Habit:
    """One with a bad habit. Of the checks in `among`, exactly those in `fails` must not pass."""

    def __init__(self, made: type[Any], fails: tuple[str, ...], among: tuple[str, ...]) -> None:
        self.made = made
        self.fails = fails
        self.among = among


class Habits(dict[str, Habit]):
    """Those of one kit, by the names of their classes."""

    def __init__(self, prefix: str = "") -> None:
        """`prefix`: what the ids of all checks begin with, where they are named without it."""
        self._prefix = prefix

    def habit(self, *fails: str, among: tuple[str, ...] | None = None) -> Callable[[T], T]:
        """Registers a class under its name.

        `among` are patterns of check ids: unless given, the groups of the checks that it fails.
        """
        failed = tuple(self._prefix + check for check in fails)
        if among is None:
            tried = tuple(sorted({".".join(check.split(".")[:2]) + ".*" for check in failed}))
        else:
            tried = tuple(self._prefix + check for check in among)

        def register(made: T) -> T:
            self[made.__name__] = Habit(made, failed, tried)
            return made

        return register


async def results_with(fails: Iterable[str], among: Iterable[str], play: Play) -> list[CheckResult]:
    """What the checks `among` found about one that must fail these.

    Those that complain wrongly are put to it once more, with more patience: dozens of processes share the machine, and
    lateness is not the habit. A check that is wrong complains again.
    """
    results = await play(*among)
    hasty = {each.check.id for each in results if each.verdict in ("failed", "not exercised")} - set(fails)
    if not hasty:
        return results
    again = await play(*sorted(hasty), patience=LONG_PATIENCE)
    return [each for each in results if each.check.id not in hasty] + [each for each in again if each.check.id in hasty]


def complaint(name: str, fails: Iterable[str], results: Iterable[CheckResult]) -> str | None:
    """What a kit got wrong about one that must fail these checks, and no others; what is not applicable is fine."""
    wrong = {each.check.id: each for each in results if each.verdict not in ("passed", "not applicable")}
    unnoticed = sorted(set(fails) - {check for check, each in wrong.items() if each.verdict == "failed"})
    wronged = sorted(f"{check} ({wrong[check].verdict}: {wrong[check].reason})" for check in set(wrong) - set(fails))
    if not unnoticed and not wronged:
        return None
    return f"{name}: not noticed by {unnoticed or 'none'}; wrongly noticed by {wronged or 'none'}"
