"""The documentation site, without building it: `make docs` does that, in strict mode, and so does CI."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

import docs_site
import trunkline

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMES = (DOCS / docs_site.NAMES_PAGE).read_text(encoding="utf-8")


class Loader(yaml.SafeLoader):
    """Passes over what mkdocs has Python make."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def leaves(nav: Any) -> list[str]:
    """The pages of a part of `nav`, in order."""
    if isinstance(nav, str):
        return [nav]
    parts = nav if isinstance(nav, list) else nav.values()
    return [leaf for part in parts for leaf in leaves(part)]


def test_every_page_is_in_the_navigation_once() -> None:
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)  # a safe one
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    beside = [target for target in docs_site.BESIDE.values() if target.endswith(".md")]
    assert sorted(leaves(config["nav"])) == sorted([*pages, *beside])
    assert [name for name in config["extra_css"] if not (DOCS / name).exists()] == []
    assert [name for name in config["hooks"] if not (ROOT / name).exists()] == []


def test_a_link_to_what_stands_beside_the_documents_stays_on_the_site() -> None:
    said = "[a](../../SECURITY.md) [b](../../SECURITY.md#here) [c](../how-to/chat.md) [d](https://example.org/../x)"
    expected = "[a](../SECURITY.md) [b](../SECURITY.md#here) [c](../how-to/chat.md) [d](https://example.org/../x)"
    assert docs_site.inward(said, "explanation/approvals.md") == expected
    assert docs_site.inward("[a](../SECURITY.md)", "README.md") == "[a](SECURITY.md)"


def test_every_link_out_of_the_documents_leads_to_something_that_the_site_has() -> None:
    for path in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(((?:\.\./)+[^)#]+)", path.read_text(encoding="utf-8")):
            there = (path.parent / target).resolve()
            assert there.is_relative_to(DOCS) or str(there.relative_to(ROOT)) in docs_site.BESIDE, f"{path}: {target}"


def test_every_name_that_trunkline_exports_is_described() -> None:
    assert sorted(re.findall(r"^\| `(\w+)` \| \S", NAMES, re.MULTILINE)) == sorted(trunkline.__all__)
    described = docs_site.with_contents(NAMES)
    for name in trunkline.__all__:
        assert re.search(rf"^::: trunkline\.[\w.]+\.{name}$", described, re.MULTILINE)
        assert f"| [`{name}`][trunkline." in described
