"""Numbers for people: times, tokens, money."""

from __future__ import annotations

from trunkline.core.usage import Usage


def seconds(elapsed: float) -> str:
    """`0.4 s`, `12 s`, `3 m 05 s`."""
    if elapsed < 1:
        # Cut off, not rounded: a second is not over before it is.
        return f"0.{int(elapsed * 10)} s"
    minutes, rest = divmod(int(elapsed), 60)
    return f"{minutes} m {rest:02} s" if minutes else f"{rest} s"


def rounded(elapsed: float) -> str:
    """The same of what is over: its beginning was noticed a moment late."""
    return seconds(elapsed if elapsed < 1 else round(elapsed))


def count(number: int) -> str:
    """`950`, `1.8k`, `2.1M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return str(number)


def tokens(usage: Usage | None) -> list[str]:
    """What was used, as far as it is known; nothing about nothing."""
    if usage is None or not any(getattr(usage, field) for field in usage.__fields__):
        return []
    named = (
        (usage.input_tokens, "in"),
        (usage.output_tokens, "out"),
        (usage.cache_read_tokens, "cached"),
    )
    return [f"{count(number)} {name}" for number, name in named if number is not None]


def money(dollars: float) -> str:
    """Cents where they matter, fractions of them where not."""
    return f"${dollars:.2f}" if dollars >= 0.1 else f"${dollars:.4f}"
