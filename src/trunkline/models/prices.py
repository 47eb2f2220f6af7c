"""What a request costs, in US dollars, for models whose price is known.

As published by their makers, November 2026, for the standard tier; override in the configuration. Amazon and Google
charge a tenth more where a request must stay in a region. A model that is not in the table has no price here: a cost
that is a guess is worse than none.
"""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.core.usage import Usage
from trunkline.models.limits import plain_name

_MILLION = 1_000_000


class Price(Value):
    """US dollars for a million tokens. Where the maker has no price of its own for the cache, it is that of input."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    above: int | None = None
    """Requests with more input than this cost `long` instead, all of their tokens."""
    long: Price | None = None


def _claude(input_price: float, output_price: float, read_share: float = 0.1) -> Price:
    # Writing costs a quarter more than reading for the first time, for a cache of five minutes.
    return Price(input_price, output_price, input_price * read_share, input_price * 1.25)


def _gpt(input_price: float, output_price: float, read: float) -> Price:
    return Price(input_price, output_price, read, input_price)


def _gpt6(input_price: float, output_price: float, read: float, write: float) -> Price:
    long = Price(2 * input_price, 1.5 * output_price, 2 * read, 2 * write)
    return Price(input_price, output_price, read, write, above=272_000, long=long)


def _gemini_pro(input_price: float, output_price: float) -> Price:
    long = Price(2 * input_price, 1.5 * output_price, input_price / 5, 2 * input_price)
    return Price(input_price, output_price, input_price / 10, input_price, above=200_000, long=long)


_OPUS_4 = _claude(15.0, 75.0)
_OPUS_4_5 = _claude(5.0, 25.0)
_SONNET = _claude(3.0, 15.0)
_SONNET_5 = _claude(2.0, 10.0)

PRICES: dict[str, Price] = {
    "claude-fable-5-1": _claude(10.0, 50.0, 0.025),
    "claude-fable-5": _claude(10.0, 50.0),
    "claude-opus-5-5": _claude(4.0, 20.0, 0.05),
    "claude-opus-5": _OPUS_4_5,
    "claude-opus-4-8": _OPUS_4_5,
    "claude-opus-4-7": _OPUS_4_5,
    "claude-opus-4-6": _OPUS_4_5,
    "claude-opus-4-5": _OPUS_4_5,
    "claude-opus-4-1": _OPUS_4,
    "claude-opus-4-0": _OPUS_4,
    "claude-opus-4": _OPUS_4,
    "claude-3-opus": _OPUS_4,
    "claude-sonnet-5-5": _SONNET_5,
    "claude-sonnet-5": _SONNET_5,
    "claude-sonnet-4-6": _SONNET,
    "claude-sonnet-4-5": _SONNET,
    "claude-sonnet-4-0": _SONNET,
    "claude-sonnet-4": _SONNET,
    "claude-3-7-sonnet": _SONNET,
    "claude-3-5-sonnet": _SONNET,
    "claude-haiku-5-5": Price(0.10, 0.50, 0.01, 0.125, above=100_000, long=Price(0.50, 2.50, 0.05, 0.625)),
    "claude-haiku-4-5": _claude(1.0, 5.0),
    "claude-3-5-haiku": _claude(0.8, 4.0),
    "claude-3-haiku": Price(0.25, 1.25, 0.03, 0.30),
    "gpt-6.1-sol": _gpt6(2.0, 10.0, 0.10, 2.50),
    "gpt-6-sol": _gpt6(2.0, 10.0, 0.20, 2.50),
    "gpt-6-luna": _gpt6(0.10, 0.50, 0.01, 0.125),
    "gpt-5.2": _gpt(1.75, 14.0, 0.175),
    "gpt-5.1": _gpt(1.25, 10.0, 0.125),
    "gpt-5": _gpt(1.25, 10.0, 0.125),
    "gpt-5-mini": _gpt(0.25, 2.0, 0.025),
    "gpt-5-nano": _gpt(0.05, 0.40, 0.005),
    "gpt-4.1": _gpt(2.0, 8.0, 0.50),
    "gpt-4.1-mini": _gpt(0.40, 1.60, 0.10),
    "gpt-4.1-nano": _gpt(0.10, 0.40, 0.025),
    "gpt-4o": _gpt(2.50, 10.0, 1.25),
    "gpt-4o-mini": _gpt(0.15, 0.60, 0.075),
    "o3": _gpt(2.0, 8.0, 0.50),
    "o4-mini": _gpt(1.10, 4.40, 0.275),
    "gemini-3.1-pro-preview": _gemini_pro(2.0, 12.0),
    "gemini-2.5-pro": _gemini_pro(1.25, 10.0),
    "gemini-2.5-flash": _gpt(0.30, 2.50, 0.03),
    "gemini-2.5-flash-lite": _gpt(0.10, 0.40, 0.01),
}


def cost(model: str, usage: Usage, price: Price | None = None) -> float | None:
    """US dollars for one request; None when the price or the number of tokens is not known.

    For one request, since long ones may cost more for each token: add up costs, not usages. A `price` that the user
    gives goes before the table.
    """
    price = price or PRICES.get(plain_name(model))
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    if price.long is not None and price.above is not None and usage.input_tokens > price.above:
        price = price.long
    read = usage.cache_read_tokens or 0
    written = usage.cache_write_tokens or 0
    # Providers that count these apart have been added up before; one that reports nonsense shall not earn us money.
    fresh = max(usage.input_tokens - read - written, 0)
    dollars = fresh * price.input + read * price.cache_read + written * price.cache_write
    return (dollars + usage.output_tokens * price.output) / _MILLION
