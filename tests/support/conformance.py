"""The reference of a conformance kit, for those who look whether it is right."""

from __future__ import annotations

from pathlib import Path

from trunkline.conform import record

DOCS = Path(__file__).parents[2] / "docs"


def reference(wire: str) -> str:
    """The text of a kit's reference, which names the limits that the reports of all kits have."""
    text = (DOCS / "reference" / f"conformance-{wire}.md").read_text(encoding="utf-8")
    assert f"first {record.REPORT_HEAD_LINES} and the last {record.REPORT_TAIL_LINES} lines" in text
    assert f"{record.REPORT_LINE_CHARS} characters per line" in text
    return text
