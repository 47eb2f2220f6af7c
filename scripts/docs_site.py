"""What the documentation site has beyond the pages in docs/; mkdocs calls it, see `hooks` in mkdocs.yml.

- Files beside docs/ that pages link to are pages, too, and the links lead there.
- The page of Python names has, under each of its tables, what the code itself says about every name. In the repository
  it is the tables alone, which people can read without a site.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import trunkline

ROOT = Path(__file__).resolve().parent.parent
#: Where it stands in the repository, and on the site.
BESIDE = {
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "src/trunkline/wires/tryll/schema/messages.fbs": "messages.fbs",
}
NAMES_PAGE = "reference/python.md"

_OUTWARD = re.compile(r"\]\((?:\.\./)+(?P<target>[^)#]+)(?P<anchor>#[^)]*)?\)")
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
_ROW = re.compile(r"^\| `(?P<name>\w+)` \|", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add what stands beside docs/."""
    # By name: those who do not make the site need not have it.
    made = import_module("mkdocs.structure.files").File
    for source, target in BESIDE.items():
        files.append(made.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Mend a page's links, and fill the page of names."""
    source: str = page.file.src_uri
    return with_contents(inward(markdown, source)) if source == NAMES_PAGE else inward(markdown, source)


def inward(markdown: str, source: str) -> str:
    """The page with its links to what stands beside docs/ as links within the site."""
    up = "../" * source.count("/")

    def mended(found: re.Match[str]) -> str:
        target = BESIDE.get(found["target"])
        return found[0] if target is None else f"]({up}{target}{found['anchor'] or ''})"

    return _OUTWARD.sub(mended, markdown)


def with_contents(markdown: str) -> str:
    """The page of names with each name described, by a directive of mkdocstrings, and linked to from its table."""
    homes = {name: f"{home}.{name}" for home, names in trunkline._HOMES.items() for name in names.split()}

    def described(found: re.Match[str]) -> str:
        table = found[0]
        names = [name for name in _ROW.findall(table) if name in homes]
        linked = _ROW.sub(lambda row: f"| [`{row['name']}`][{homes.get(row['name'], row['name'])}] |", table)
        return linked + "".join(f"\n::: {homes[name]}\n" for name in names)

    return _TABLE.sub(described, markdown)
