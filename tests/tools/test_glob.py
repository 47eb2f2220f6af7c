"""The Glob tool."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.tools.calling import Box
from trunkline.tools import glob
from trunkline.tools.glob import MOST_FILES, NO_FILES


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


TREE = (
    "a.py", "b.txt", "src/a.py", "src/deep/b.py", "src/deep/c.ts", "src/deep/c.tsx", "doc/x.md", ".env",
    ".github/ci.yml", "src/.hidden.py", "sp ace/x.py", "[x]/y.py", ".git/config", "src/a*b", "lib/src/z.py",
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.py", {"a.py"}),
        ("**/*.py", {"a.py", "src/a.py", "src/deep/b.py", "sp ace/x.py", "[x]/y.py", "lib/src/z.py"}),
        ("src/**/*.py", {"src/a.py", "src/deep/b.py"}),
        ("**/src/*.py", {"src/a.py", "lib/src/z.py"}),
        ("src/**", {"src/a.py", "src/deep/b.py", "src/deep/c.ts", "src/deep/c.tsx", "src/a*b"}),
        ("a.py/**", set()),
        ("**/*.{ts,tsx}", {"src/deep/c.ts", "src/deep/c.tsx"}),
        ("{src,doc}/*", {"src/a.py", "src/a*b", "doc/x.md"}),
        ("{src/*,src/a.*}", {"src/a.py", "src/a*b"}),
        ("src/a.py", {"src/a.py"}),
        ("./src/a.py", {"src/a.py"}),
        ("src/deep/../a.py", {"src/a.py"}),
        ("src/", {"src/a.py", "src/a*b"}),
        (".*", {".env"}),
        ("**/.*", {".env", "src/.hidden.py"}),
        (".github/*", {".github/ci.yml"}),
        ("**/.github/*.yml", {".github/ci.yml"}),
        (".*/*", {".github/ci.yml"}),
        ("**/config", set()),
        ("*/x.py", {"sp ace/x.py"}),
        ("[[]x]/*", {"[x]/y.py"}),
        (r"src/a\*b", {"src/a*b"}),
        ("src/?.py", {"src/a.py"}),
        ("src", set()),
        ("**/**/b.*", {"b.txt", "src/deep/b.py"}),
        ("**", {"a.py", "b.txt", "src/a.py", "src/deep/b.py", "src/deep/c.ts", "src/deep/c.tsx", "doc/x.md",
                "sp ace/x.py", "[x]/y.py", "src/a*b", "lib/src/z.py"}),
    ],
)  # fmt: skip
async def test_files_are_found_by_pattern(box: Box, tmp_path: Path, pattern: str, expected: set[str]) -> None:
    make(tmp_path, *TREE)
    text = await box.text("Glob", pattern=pattern)
    assert set(text.split("\n")) == (expected or {NO_FILES})


async def test_the_newest_come_first(box: Box, tmp_path: Path) -> None:
    make(tmp_path, "old", "new", "middle")
    for name, when in [("old", 1), ("middle", 2), ("new", 3)]:
        os.utime(tmp_path / name, (when, when))
    assert await box.text("Glob", pattern="*") == "new\nmiddle\nold"


async def test_the_newest_of_all_are_shown_and_not_the_first_that_are_found(box: Box, tmp_path: Path) -> None:
    names = [f"{number:04}" for number in range(MOST_FILES + 50)]
    make(tmp_path, *names)
    for when, name in enumerate(names):
        os.utime(tmp_path / name, (when, when))
    *shown, note = (await box.text("Glob", pattern="*")).split("\n")
    assert shown == names[: -MOST_FILES - 1 : -1]
    assert note == f"({MOST_FILES} of {MOST_FILES + 50} files, the newest; narrow the pattern for others)"


async def test_what_git_ignores_is_left_out_unless_it_is_asked_for_by_name(box: Box, tmp_path: Path) -> None:
    make(tmp_path, "a.py", "a.pyc", "build/b.py", "src/build/c.py", "src/gen/d.py")
    (tmp_path / ".gitignore").write_text("*.pyc\n/build/\n")
    (tmp_path / "src/.gitignore").write_text("gen\n")
    assert set((await box.text("Glob", pattern="**/*")).split("\n")) == {"a.py", "src/build/c.py"}
    assert await box.text("Glob", pattern="build/*") == "build/b.py"
    assert await box.text("Glob", pattern="*", path="build") == "build/b.py"


async def test_links_are_listed_but_not_followed(box: Box, tmp_path: Path) -> None:
    make(tmp_path, "dir/a")
    (tmp_path / "dir/loop").symlink_to("..")
    (tmp_path / "file-link").symlink_to("dir/a")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    assert set((await box.text("Glob", pattern="**/*")).split("\n")) == {"dir/a", "file-link"}


async def test_paths_are_from_the_workspace_also_when_the_search_begins_below(box: Box, tmp_path: Path) -> None:
    make(tmp_path, "src/deep/a.py")
    assert await box.text("Glob", pattern="**/*.py", path="src") == "src/deep/a.py"
    assert await box.text("Glob", pattern=f"{tmp_path}/src/**/*.py") == "src/deep/a.py"


async def test_other_places_have_absolute_paths(
    box: Box, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    make(other, "a.py")
    assert await box.text("Glob", pattern="*.py", path=str(other)) == f"{other}/a.py"


@pytest.mark.parametrize(
    ("args", "outside"),
    [
        ({"pattern": "**/*.py"}, False),
        ({"pattern": "/etc/*"}, True),
        ({"pattern": "../*"}, True),
        ({"pattern": "src/../../*"}, True),
        ({"pattern": "{src,../other}/*"}, True),
        ({"pattern": "~/*"}, True),
        ({"pattern": "*", "path": "/etc"}, True),
        ({"pattern": "link/*"}, True),
        ({"pattern": "*/x"}, False),
        ({"pattern": "{" * 3}, False),
    ],
)
async def test_it_knows_when_it_would_leave_the_workspace(
    box: Box, tmp_path: Path, args: dict[str, object], outside: bool
) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert box.toolbox.read("Glob", args).outside is outside


async def test_a_link_out_cannot_be_entered_by_a_wildcard(box: Box, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert await box.text("Glob", pattern="*/passwd") == NO_FILES


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"pattern": "[a"}, "Bad pattern"),
        ({"pattern": "*/../x"}, "Bad pattern"),
        ({"pattern": "{a,b}" * 20}, "Bad pattern"),
        ({"pattern": "*", "path": "nowhere"}, "Failed to search nowhere: No such file or directory"),
        ({"pattern": "*", "path": "file"}, "Failed to search file: it is not a directory"),
    ],
)
async def test_what_makes_no_sense_is_said(box: Box, tmp_path: Path, args: dict[str, str], problem: str) -> None:
    make(tmp_path, "file")
    assert (await box.error("Glob", **args)).startswith(problem)


async def test_a_search_that_finds_too_much_to_look_at_says_so(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, *(f"{number}" for number in range(30)))
    monkeypatch.setattr(glob, "MOST_ENTRIES", 10)
    lines = (await box.text("Glob", pattern="**")).split("\n")
    assert len(lines) == 11
    assert lines[-1].startswith("(not all directories were looked at")


async def test_a_search_that_takes_too_long_says_so(box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a")
    monkeypatch.setattr(glob, "GLOB_SECONDS", -1.0)
    assert "(not all directories were looked at" in await box.text("Glob", pattern="*")


async def test_a_directory_that_may_not_be_read_is_passed_by(
    box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a/x", "b/x")
    scandir = os.scandir

    def closed(path: str) -> object:
        if path.endswith("/a"):
            raise PermissionError(13, "no")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)
    assert await box.text("Glob", pattern="**/x") == "b/x"


async def test_a_name_that_is_no_text_can_be_listed(box: Box, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).touch()
    text = await box.text("Glob", pattern="*.txt")
    assert text.encode() == "caf\N{REPLACEMENT CHARACTER}.txt".encode()


async def test_a_search_ends_when_it_is_cancelled(box: Box, tmp_path: Path) -> None:
    make(tmp_path, *(f"{number}/{other}" for number in range(30) for other in range(10)))
    task = asyncio.ensure_future(box.call("Glob", pattern="**/*"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_it_says_what_it_does(box: Box) -> None:
    reading = box.toolbox.read("Glob", {"pattern": "**/*.py"})
    assert reading.description == "Search for **/*.py"
    assert (reading.tool.category, reading.tool.concurrent) == ("info", True)
