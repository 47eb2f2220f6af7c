"""The Grep tool, by ripgrep and by our own search alike."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import require
from tests.support.loop import hold_limits
from tests.support.patience import PATIENCE_SECONDS
from trunkline.base.redact import Redactor
from trunkline.tools import grep
from trunkline.tools.grep import LONGEST_LINE, MOST_LINES, NO_MATCHES, Grep, MatchLines, find_ripgrep
from trunkline.tools.tool import ToolOutput
from trunkline.tools.toolbox import Toolbox
from trunkline.tools.workspace import Workspace

pytestmark = pytest.mark.process

FILES: dict[str, bytes] = {
    "a.py": b"import os\ndef hello():\n    return 'Hello'\n",
    "b.txt": b"hello world\r\nHELLO\r\nno end",
    "src/c.py": b"# hello\n" + b"x" * 20 + b"\n",
    "src/deep/d.ts": "hällo\nhello \N{GRINNING FACE}\n".encode(),
    "src-2/e.py": b"hello\n",
    "src.py": b"hello\n",
    ".hidden.py": b"hello\n",
    ".github/ci.yml": b"hello\n",
    "build/gen.py": b"hello\n",
    "ignored.log": b"hello\n",
    "keep.log": b"hello\n",
    "sub/ignored.log": b"hello\n",
    "sub/local.py": b"hello\n",
    "binary": b"hello\n\0\n",
    "latin": b"hello caf\xe9\n",
    "bom.txt": b"\xef\xbb\xbfhello bom\n",
    "utf16.txt": b"\xff\xfe" + "hello wide\n".encode("utf-16-le"),
    "empty": b"",
    "dash/-x": b"hello\n",
    ".git/config": b"hello\n",
    ".gitignore": b"/build/\n*.log\n!keep.log\n",
    "sub/.gitignore": b"/local.py\n",
}

# What is searched for, and the files and lines in which it is found.
SEARCHES: list[tuple[dict[str, Any], list[str]]] = [
    ({"pattern": "hello"}, [
        "a.py:2", "b.txt:1", "bom.txt:1", "dash/-x:1", "keep.log:1", "latin:1", "src/c.py:1", "src/deep/d.ts:2",
        "src-2/e.py:1", "src.py:1", "utf16.txt:1",
    ]),
    ({"pattern": "hello", "case_insensitive": True, "glob": "*.{py,txt}"}, [
        ".hidden.py:1", "a.py:2", "a.py:3", "b.txt:1", "b.txt:2", "bom.txt:1", "src/c.py:1", "src-2/e.py:1", "src.py:1",
        "sub/local.py:1", "utf16.txt:1",
    ]),
    ({"pattern": "^hello$"}, ["dash/-x:1", "keep.log:1", "src-2/e.py:1", "src.py:1"]),
    ({"pattern": "HELLO$", "path": "b.txt"}, ["b.txt:2"]),
    ({"pattern": "end$"}, ["b.txt:3"]),
    ({"pattern": "hello", "path": "src"}, ["src/c.py:1", "src/deep/d.ts:2"]),
    ({"pattern": "hello", "path": "build"}, ["build/gen.py:1"]),
    ({"pattern": "hello", "path": "ignored.log"}, ["ignored.log:1"]),
    ({"pattern": "hello", "path": ".github"}, [".github/ci.yml:1"]),
    ({"pattern": "hello", "path": "dash/-x"}, ["dash/-x:1"]),
    ({"pattern": "hello", "glob": "src/**"}, ["src/c.py:1", "src/deep/d.ts:2"]),
    ({"pattern": "hello", "glob": "src/*.py"}, ["src/c.py:1"]),
    ({"pattern": "hello", "glob": "/*.py"}, [".hidden.py:1", "a.py:2", "src.py:1"]),
    ({"pattern": "hello", "glob": "!*.py"}, [
        "b.txt:1", "bom.txt:1", "dash/-x:1", "keep.log:1", "latin:1", "src/deep/d.ts:2", "utf16.txt:1",
    ]),
    ({"pattern": "hello", "glob": "!{src,src-2,dash}/"}, [
        "a.py:2", "b.txt:1", "bom.txt:1", "keep.log:1", "latin:1", "src.py:1", "utf16.txt:1",
    ]),
    ({"pattern": "hello", "glob": "*.log"}, ["ignored.log:1", "keep.log:1", "sub/ignored.log:1"]),
    ({"pattern": "hello", "path": "src", "glob": "*.ts"}, ["src/deep/d.ts:2"]),
    ({"pattern": "h.llo", "path": "src/deep"}, ["src/deep/d.ts:1", "src/deep/d.ts:2"]),
    ({"pattern": "HÄLLO", "case_insensitive": True}, ["src/deep/d.ts:1"]),
    ({"pattern": r"def \w+\(\)"}, ["a.py:2"]),
    ({"pattern": r"(?<first>import) os$"}, ["a.py:1"]),
    ({"pattern": r"x{20}"}, ["src/c.py:2"]),
    ({"pattern": "-x"}, []),
    ({"pattern": "--files"}, []),
    ({"pattern": "nowhere at all"}, []),
    ({"pattern": "hello", "glob": "*.rs"}, []),
    ({"pattern": "hello", "path": "empty"}, []),
]  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "link").symlink_to("src")
    (tmp_path / "file-link").symlink_to("a.py")
    (tmp_path / "loop").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.fixture(params=["ripgrep", "fallback"])
def program(request: pytest.FixtureRequest) -> str:
    """Ripgrep's program, or nothing: then our own search is used."""
    if request.param == "fallback":
        return ""
    require("ripgrep", bool(find_ripgrep()), "pip install 'trunkline[coder]'")
    return find_ripgrep()


async def run(root: Path, program: str, **args: Any) -> ToolOutput:
    toolbox = Toolbox([Grep(Workspace(root), program)])
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await toolbox.run("Grep", args, lambda line: None)


@pytest.mark.parametrize(("args", "expected"), SEARCHES, ids=[str(args) for args, _ in SEARCHES])
async def test_both_find_the_same_in_the_same_order(
    tree: Path, program: str, args: dict[str, Any], expected: list[str]
) -> None:
    output = await run(tree, program, **args)
    assert output.status == "success"
    if not expected:
        assert output.text == NO_MATCHES
    else:
        assert [":".join(line.split(":")[:2]) for line in output.text.split("\n")] == expected


async def test_rules_of_git_hold_without_a_repository(tmp_path: Path, program: str) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a.log").write_text("hello\n")
    (tmp_path / "a.txt").write_text("hello\n")
    assert (await run(tmp_path, program, pattern="hello")).text == "a.txt:1:hello"


async def test_a_line_is_shown_with_its_path_and_number(tree: Path, program: str) -> None:
    assert (await run(tree, program, pattern="world")).text == "b.txt:1:hello world"
    assert (await run(tree, program, pattern="return")).text == "a.py:3:    return 'Hello'"
    assert (await run(tree, program, pattern="caf")).text == "latin:1:hello caf\N{REPLACEMENT CHARACTER}"


async def test_places_outside_have_absolute_paths(
    tree: Path, program: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    output = await run(elsewhere, program, pattern="world", path=str(tree))
    assert output.text == f"{tree}/b.txt:1:hello world"


async def test_only_the_first_lines_are_shown(tmp_path: Path, program: str) -> None:
    (tmp_path / "a").write_text("x\n" * MOST_LINES)
    exact = (await run(tmp_path, program, pattern="x")).text.split("\n")
    assert len(exact) == MOST_LINES
    (tmp_path / "a").write_text("x\n" * 100_000)
    *lines, note = (await run(tmp_path, program, pattern="x")).text.split("\n")
    assert lines == exact
    assert note.startswith(f"(only the first {MOST_LINES} lines are shown")


async def test_large_files_are_searched_to_their_end(tmp_path: Path, program: str) -> None:
    (tmp_path / "a").write_bytes(b"first\r\n" + b"some text, again and again\n" * 400_000 + b"last\r\n")
    assert (await run(tmp_path, program, pattern="^(first|last)$")).text == "a:1:first\na:400002:last"


async def test_long_lines_are_shortened(tmp_path: Path, program: str) -> None:
    (tmp_path / "a").write_text("x" * 3_000_000 + "\nxy\n")
    first, *_, last = (await run(tmp_path, program, pattern="x")).text.split("\n")
    assert first == f"a:1:{'x' * LONGEST_LINE}..."
    assert last == "a:2:xy"


async def test_a_pattern_without_a_meaning_is_an_error(tree: Path, program: str) -> None:
    for args in ({"pattern": "a("}, {"pattern": "a\\nb"}, {"pattern": "a\nb"}, {"pattern": "a", "glob": "[a"}):
        output = await run(tree, program, **args)
        assert output.status == "error", args
        assert output.text.startswith("rg error: " if program else "grep error: ")
        assert len(output.text) > 20


async def test_what_only_python_knows_is_searched_by_python(tree: Path, program: str) -> None:
    output = await run(tree, program, pattern=r"hello(?= world)")
    assert output.text == "b.txt:1:hello world"
    output = await run(tree, program, pattern=r"(l)\1o wo")
    assert output.text == "b.txt:1:hello world"


async def test_a_path_that_is_not_there_is_an_error(tree: Path, program: str) -> None:
    output = await run(tree, program, pattern="x", path="no/where")
    assert (output.status, output.text.split(".")[0]) == (
        "error",
        "Failed to search no/where: No such file or directory",
    )


async def test_what_no_program_can_be_given_is_an_error(tree: Path, program: str) -> None:
    output = await run(tree, program, pattern="a\0b")
    assert output.status == "error"
    assert "NUL" in output.text


async def test_a_program_that_does_not_run_is_not_needed(tree: Path) -> None:
    broken = tree / "rg"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    assert (await run(tree, str(broken), pattern="world")).text == "b.txt:1:hello world"


async def test_a_users_own_settings_for_ripgrep_change_nothing(
    tree: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "rc").write_text("--hidden\n--files\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tree / "rc"))
    assert (await run(tree, program, pattern="world")).text == "b.txt:1:hello world"


async def test_modules_in_the_workspace_are_not_taken_for_ours(tree: Path) -> None:
    for name in ("re", "os", "json", "trunkline"):
        (tree / f"{name}.py").write_text("raise SystemExit('taken over')")
    assert (await run(tree, "", pattern="world")).text == "b.txt:1:hello world"


async def test_a_pattern_that_runs_away_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep, "GREP_SECONDS", 1.0)
    (tmp_path / "0").write_text("found: aaa\n")
    (tmp_path / "1").write_text("a" * 40 + "!\n")
    with monkeypatch.context() as patched:
        time_is_up, feed = hold_limits(patched, grep.GREP_SECONDS), grep.MatchLines.feed

        def found(lines: grep.MatchLines, data: bytes) -> bool:
            time_is_up()
            return feed(lines, data)

        patched.setattr(grep.MatchLines, "feed", found)
        output = await run(tmp_path, "", pattern="found|^(a|a|aa)+$")
    assert output.status == "success"
    assert output.text.split("\n")[0] == "0:1:found: aaa"
    assert "(stopped after 1 s" in output.text
    (tmp_path / "0").unlink()
    output = await run(tmp_path, "", pattern="^(a|a|aa)+$")
    assert (output.status, output.text[:8]) == ("error", "(stopped")


async def test_a_search_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    # That nothing is left running is seen at the end of the run, too.
    started = tmp_path / "started"
    os.mkfifo(started)
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\necho $$ > {started}\nexec sleep 600\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    task = asyncio.ensure_future(run(tmp_path, str(slow), pattern="x"))
    pid = int(await asyncio.to_thread(started.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_ripgrep_is_found_on_the_path_and_beside_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "beside" / "python"))
    monkeypatch.setenv("PATH", f".:{tmp_path}/path")
    assert find_ripgrep() == ""
    for folder in ("beside", "path"):
        program = tmp_path / folder / "rg"
        program.parent.mkdir()
        program.touch(0o755)
        assert find_ripgrep() == str(program)


def test_output_in_any_pieces_gives_the_same_lines() -> None:
    data = b"./a\x001:one\n./b c\x0022:two: three\r\nno path\nlast\x001:" + b"x" * 10_000
    expected = ["a:1:one", "b c:22:two: three", "no path", f"last:1:{'x' * LONGEST_LINE}..."]
    for size in (1, 2, 3, 7, 5000, 20_000):
        lines = MatchLines()
        for start in range(0, len(data), size):
            assert lines.feed(data[start : start + size])
        lines.finish()
        assert lines.lines == expected


@pytest.mark.parametrize("before", [0, LONGEST_LINE - 10, LONGEST_LINE - 1, LONGEST_LINE + 50])
def test_a_line_is_cleaned_before_it_is_cut(before: int) -> None:
    secret = "sk-live-0123456789abcdef"
    lines = MatchLines(Redactor([secret]))
    lines.feed(b"./a\x001:" + b"." * before + secret.encode() + b"." * 9000 + b"\n")
    assert "sk-" not in lines.lines[0]
    assert len(lines.lines[0]) < LONGEST_LINE + 20


def test_a_line_full_of_secrets_shows_no_half_of_one_where_it_was_cut_for_the_memory() -> None:
    key = "k" + "0123456789abcdef" * 20
    lines = MatchLines(Redactor([key]))
    lines.feed(b"./a\x001:" + key.encode() * 100 + b"\n")
    assert lines.lines[0].startswith("a:1:[redacted][redacted]")
    assert "0123" not in lines.lines[0]


async def test_it_says_what_it_does(tmp_path: Path) -> None:
    toolbox = Toolbox([Grep(Workspace(tmp_path))])
    assert toolbox.read("Grep", {"pattern": "x y", "path": "src"}).description == "Grep 'x y' in src"
    assert toolbox.read("Grep", {"pattern": "x"}).description == "Grep 'x' in ."
    assert toolbox.read("Grep", {"pattern": "x", "path": "/etc"}).outside
    assert not toolbox.read("Grep", {"pattern": "x"}).outside
    assert toolbox.read("Grep", {"pattern": "x"}).tool.concurrent
