"""Text without what only a terminal understands."""

from __future__ import annotations

import pytest

from trunkline.base.escapes import without_escapes


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("plain", "plain"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[?25lhidden\x1b[?25h", "hidden"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bM\x1b(Bup", "up"),
        ("cut off \x1b]0;title", "cut off "),
    ],
)
def test_escape_sequences_are_left_out(written: str, text: str) -> None:
    assert without_escapes(written) == text
