from __future__ import annotations

import pytest

from trunkline.base.cutting import cut_between_words
from trunkline.base.redact import Redactor

SECRET = "sk-live-0123456789abcdef"


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert cut_between_words("two words", 9) == "two words"


@pytest.mark.parametrize(("limit", "kept"), [(8, "two ..."), (4, "two ..."), (3, "two ..."), (2, "..."), (0, "...")])
def test_no_word_is_cut_in_half(limit: int, kept: str) -> None:
    assert cut_between_words("two words", limit) == kept


@pytest.mark.parametrize("limit", range(1, 60))
def test_so_a_secret_is_recognised_later_or_not_there(limit: int) -> None:
    shown = Redactor([SECRET]).text(cut_between_words(f"The key is {SECRET} and it does not work", limit))
    assert "sk" not in shown
    assert len(shown) <= max(limit, len("The key is [redacted] and it does not work")) + 4
