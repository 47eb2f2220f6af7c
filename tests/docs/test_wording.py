"""What people read from the program is plain English: no turns of phrase that only a translation has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.examples import ROOT

pytestmark = pytest.mark.docs

#: "`x` is no address" and the like; "there is no address" and "is no longer" are English.
FOREIGN = re.compile(
    r"(?<!there )\b(?:is|are) (?:none\b|no (?!longer\b|more\b|one\b|limit\b|such\b)\w)"
    r"|\bcannot be had\b|\bcomes along\b|\bstands? in one another\b|\btakes? no such\b",
    re.IGNORECASE,
)

#: Turns of phrase of errors, help and notices before they were read by a native speaker.
OLD_VOICE = re.compile(
    "|".join(
        [
            FOREIGN.pattern,
            r"\b(?:is|are|was) (?:there already|not there)\b",
            r"\bnever was\b",
            r"\bin (?:spite of|vain)\b",
            r"\ball the same\b",
            r"\bheeded\b",
            r"\bunless said\b",
            r"\banew\b",
            r"\bmust (?:hold|be a text)\b",
            r"\bmeans nothing\b",
            r"\bnobody (?:can|could) be asked\b",
            r"\bto be had\b",
            r"\bdefects? of ours\b",
            r"\bsomebody else's\b",
            r"\bunder way\b",
            r", too\.",
        ]
    ),
    re.IGNORECASE,
)

#: Turns of phrase of the documentation before it was read by a native speaker; none of them is to come back.
TRANSLATED = re.compile(
    "|".join(
        [
            FOREIGN.pattern,
            r"\bwhoever\b",
            r"\bcan be gone on with\b",
            r"\bgoes on with (?:it|one)\b",
            r"\bwithout more ado\b",
            r"\bto the test\b",
            r"\bneeds your leave\b",
            r"\bwhat stands there\b",
            r"\bthat comes along\b",
            r"\b(?:is|are) told (?:in|of|so)\b",
            r"\b(?:chat|chats|clients|others) (?:is|are) told\b",
            r"\b(?:that is|you are|are) told\b(?=[.;])",
            r"\btells?(?=[.;:](?: |$))",
            r"\btells? of\b",
            r"\b(?:pages?|usage|_) tells? what\b",
            r"\bso much\b",
            r"\bwhat (?:it )?puts up with\b",
            r"\banew\b",
            r"\bunder way\b",
            r"\bin vain\b",
            r"\bheeded\b",
            r"\bunless said\b",
            r"\bnever was\b",
            r"\bto be had\b",
            r"\bsomebody else's\b",
            r"\bwhat holds\b",
            r"\bturn goes on\b",
            r"\bwhat stands (?:in|before)\b",
            r"\bmore and more seldom\b",
            r"\bsays? back\b",
            r", too\.(?= [A-Z]|$)",
        ]
    ),
    re.IGNORECASE | re.MULTILINE,
)
#: Pages for people.
PAGES = sorted(
    [
        *(ROOT / "docs").glob("*/*.md"),
        *(ROOT / name for name in ("README.md", "docs/README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
        *(ROOT / ".github").rglob("*template*.md"),
        *(ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"),
    ]
)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The texts of a module that are not docstrings, with what is filled in left out."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "_" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


@pytest.mark.parametrize("package", sorted(path.name for path in (ROOT / "src/trunkline").iterdir() if path.is_dir()))
def test_no_text_of_the_program_reads_like_a_translation(package: str) -> None:
    files: list[Path] = sorted((ROOT / "src/trunkline" / package).rglob("*.py"))
    found = {
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file in files
        for line, text in texts(file.read_text(encoding="utf-8"))
        if OLD_VOICE.search(text)
    }
    assert found == set()


def prose(page: str) -> str:
    """What a page says itself: without code, and each paragraph on one line."""
    page = re.sub(r"^ *```.*?^ *```", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"`[^`]*`", "_", page)
    return re.sub(r"(?<=\S)\n *(?=[^\s|#>*-])", " ", page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_reads_like_a_translation(page: Path) -> None:
    said = prose(page.read_text(encoding="utf-8"))
    found = [said[max(0, at.start() - 60) : at.end() + 20] for at in TRANSLATED.finditer(said)]
    assert found == []


def test_the_changelog_has_each_area_once_and_says_of_each_change_what_it_is() -> None:
    unreleased = (
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("## [Unreleased]\n")[2].partition("\n## ")[0]
    )
    areas = re.findall(r"^### (.+)$", unreleased, re.MULTILINE)
    assert len(areas) == len(set(areas))
    assert not {"Added", "Changed", "Fixed"} & set(areas)
    changes = re.findall(r"^- .*", unreleased.partition("### Security")[0], re.MULTILINE)
    assert [change for change in changes if not re.match("- (?:Added|Changed|Fixed|Removed): ", change)] == []
    # Lines that begin alike tell one change twice: a merge has brought an older wording back.
    beginnings = [re.sub(r"\W+", " ", change)[:60] for change in re.findall(r"^- .*", unreleased, re.MULTILINE)]
    assert sorted({each for each in beginnings if beginnings.count(each) > 1}) == []


def test_the_check_knows_a_translation_from_english() -> None:
    for text in ("`x` is no address.", "The address of the homeserver is none.", "`m` cannot be had: gone"):
        assert FOREIGN.search(text), text
    for text in ("There is no agent `x`.", "there are no strings", "It is no longer needed.", "0 is no limit."):
        assert not FOREIGN.search(text), text
    for text in ("`x` is there already.", "`--model` is not heeded.", "`name` must be a text.", "Begin it anew."):
        assert OLD_VOICE.search(text), text
    for text in ("`x` already exists.", "`--model` is ignored.", "`name` must be a string.", "Is anyone there?"):
        assert not OLD_VOICE.search(text), text
    for page in (
        "Whoever has it can write.",
        "It puts an agent to\nthe test.",
        "What happens to a line that is no\ncommand?",
        "Answers under\nway end, and clients are told.",
        "`usage` tells what was read.",
    ):
        assert TRANSLATED.search(prose(page)), page
    for page in (
        "Anyone who has it can write.",
        "```text\nwhoever\n```\n",
        "Say `is none` to it.",
        "Add it, too, if you like.",
        "It tells you what to set, and does what it is told to.",
    ):
        assert not TRANSLATED.search(prose(page)), page
