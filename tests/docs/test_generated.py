"""The parts of the documentation that are made from the code are what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import generated
from tests.docs.examples import DOCUMENTS, ROOT

pytestmark = pytest.mark.docs


@pytest.mark.parametrize("path", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_its_generated_parts_are_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert generated.renewed(text) == text, "run `python -m tests.docs.generated`"


def test_every_part_that_can_be_generated_is_somewhere() -> None:
    found = [name for path in DOCUMENTS for name in generated.names_in(path.read_text(encoding="utf-8"))]
    assert set(found) == set(generated.SECTIONS)


def test_a_part_that_was_changed_by_hand_is_found_out() -> None:
    text = "before\n<!-- generated: faults -->\nsomething else\n<!-- end -->\nafter\n"
    new = generated.renewed(text)
    assert new != text
    assert "| `provider` |" in new
    assert new.startswith("before\n")
    assert new.endswith("after\n")
    assert generated.renewed(new) == new
