"""What the tutorial of the tavern has people paste, put where it says."""

from __future__ import annotations

import re
from pathlib import Path

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial" / "a-tavern-in-the-browser.md"
_BLOCK = re.compile(r"^```(?:yaml|js|css)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def follow(tavern: Path) -> None:
    """Edit a copy of the example as the tutorial's last section says; without the export that it asks for."""
    section = TUTORIAL.read_text(encoding="utf-8").split("\n## 3. ")[1]
    records, nodes, deeds, move, style = re.findall(
        r"^```(?:yaml|js|css)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL
    )
    graph = tavern / "graphs" / "innkeeper.yaml"
    _after(graph, r"^    records:\n", records)
    _after(graph, r"^nodes:\n", nodes)
    text = graph.read_text(encoding="utf-8")
    before, drink, after = text.partition("\n  drink:\n")
    assert drink
    assert "`not_found: fire` becomes `not_found: candles`" in section
    after = after.replace("not_found: fire\n", "not_found: candles\n", 1)
    graph.write_text(before + drink + after, encoding="utf-8")
    _after(tavern / "js" / "characters.js", r"^    fire: .*\n", deeds)
    _after(tavern / "js" / "scene.js", r"^.*deed === \"clear\".*\n", move)
    _after(tavern / "tavern.css", r"\Z", style)


def _after(file: Path, place: str, added: str) -> None:
    text = file.read_text(encoding="utf-8")
    found = re.search(place, text, re.MULTILINE)
    assert found is not None, (file, place)
    file.write_text(text[: found.end()] + added + text[found.end() :], encoding="utf-8")
