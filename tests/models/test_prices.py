"""What requests cost: cached tokens at their own price, long requests at theirs, and no guesses."""

from __future__ import annotations

import pytest

from trunkline.core.usage import Usage
from trunkline.models.prices import PRICES, Price, cost


def test_input_and_output_have_their_prices() -> None:
    assert cost("claude-sonnet-4-20250514", Usage(1_000_000, 1_000_000)) == pytest.approx(18.0)


def test_cached_tokens_are_part_of_the_input_and_cost_less_to_read_and_more_to_write() -> None:
    usage = Usage(1_000_000, 0, cache_read_tokens=600_000, cache_write_tokens=100_000)
    assert cost("claude-sonnet-4", usage) == pytest.approx(0.3 * 3.0 + 0.6 * 0.3 + 0.1 * 3.75)


def test_more_cached_than_there_was_costs_no_less_than_what_was_cached() -> None:
    assert cost("claude-sonnet-4", Usage(0, 0, cache_read_tokens=1_000_000)) == pytest.approx(0.3)


@pytest.mark.parametrize("name", ["us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4@20250514"])
def test_one_model_has_one_price_whatever_it_is_called(name: str) -> None:
    assert cost(name, Usage(1_000, 1_000)) == cost("claude-sonnet-4", Usage(1_000, 1_000))


def test_a_long_request_costs_more_for_all_of_its_tokens() -> None:
    assert cost("gemini-2.5-pro", Usage(200_000, 1_000_000)) == pytest.approx(0.2 * 1.25 + 10.0)
    assert cost("gemini-2.5-pro", Usage(200_001, 1_000_000)) == pytest.approx(0.200001 * 2.5 + 15.0)


@pytest.mark.parametrize(
    "name", ["gpt-4o-realtime", "gpt-5.99", "ft:gpt-4o:me", "qwen2.5:7b", "claude-of-the-future", ""]
)
def test_a_model_that_is_not_in_the_table_has_no_price(name: str) -> None:
    assert cost(name, Usage(1_000, 1_000)) is None


@pytest.mark.parametrize("usage", [Usage(), Usage(input_tokens=5), Usage(output_tokens=5)])
def test_what_is_not_counted_is_not_priced(usage: Usage) -> None:
    assert cost("gpt-4o", usage) is None


def test_a_price_of_the_users_own_goes_before_the_table() -> None:
    own = Price(1.0, 2.0, 0.5, 1.0)
    assert cost("gpt-4o", Usage(1_000_000, 1_000_000), own) == pytest.approx(3.0)
    assert cost("my-model", Usage(1_000_000, 1_000_000), own) == pytest.approx(3.0)


@pytest.mark.parametrize("name", PRICES)
def test_every_price_is_in_order(name: str) -> None:
    price = PRICES[name]
    assert 0 < price.cache_read < price.input <= price.cache_write < price.output
    assert (price.long is None) == (price.above is None)
