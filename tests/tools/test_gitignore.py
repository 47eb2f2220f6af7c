"""What git ignores, by our rules and by git's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import require
from trunkline.tools.gitignore import Ignore


def walk(root: Path) -> set[str]:
    """The files that are not ignored."""
    found = set()
    waiting = [(str(root), Ignore.above(str(root)))]
    while waiting:
        directory, ignore = waiting.pop()
        for entry in os.scandir(directory):
            if entry.name == ".git" or ignore.ignores(entry.path, entry.is_dir()):
                continue
            if entry.is_dir():
                waiting.append((entry.path, ignore.inside(entry.path)))
            else:
                found.add(os.path.relpath(entry.path, root))
    return found


def git(root: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    ran = subprocess.run(["git", *arguments], cwd=root, env=environment, capture_output=True, check=True)
    return ran.stdout.decode()


def listed_by_git(root: Path) -> set[str]:
    return set(git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")) - {""}


def make(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())


NAMES = [
    "a.log", "b.txt", "build/x", "build/deep/y.log", "src/build/z", "src/a.log", "src/keep.log", "src/deep/a/b/c",
    "src/foo", "foo/bar", "doc/frotz/x", "a/doc/frotz/x", "#hash", "!bang", "end ", "sp ace", "[b]", "star*", "x.pyc",
    ".hidden/x", "node_modules/p/index.js", "lib/node_modules/p/i.js", "a/b/c/d/e", "Readme", "ä.txt",
]  # fmt: skip

RULES = {
    "names": "*.log\nfoo\n",
    "directories": "build/\nnode_modules/\n",
    "anchored": "/build\n/src/foo\ndoc/frotz\n",
    "negated": "*.log\n!keep.log\n",
    "negated in an ignored directory": "src/\n!src/keep.log\n",
    "everything but": "/*\n!/src\n/src/*\n!/src/keep.log\n",
    "stars": "**/build\nsrc/**/c\na/**\n",
    "star in the middle": "src/*/a\n",
    "comments and spaces": "# *\n\\#hash\n\\!bang\nend\\ \nsp ace   \n\n",
    "brackets": "[[]b[]]\nx.py[co]\n[!a-z]*\n",
    "escapes": "star\\*\n\\a.log\n",
    "broken": "[a\nfoo\\\n*.txt\n",
    "windows": "*.log\r\nbuild/\r\n",
    "slash": "/\n//\n",
    "only a star": "*\n!*/\n!*.txt\n",
    "two stars in a name": "s**c\nfo**\n",
    "braces are characters": "*.{log,txt}\n",
    "byte order mark": "\ufeff*.log\n",
    "dots": ".*\n!.hidden\n",
    "unicode": "ä.*\n?.txt\n",
    "question mark": "fo?\n???\n",
}


@pytest.mark.process
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
def test_git_agrees(tmp_path: Path, rules: str) -> None:
    require("git", shutil.which("git") is not None, "install git")
    make(tmp_path, dict.fromkeys(NAMES, "x") | {".gitignore": rules})
    git(tmp_path, "init", "-q")
    assert walk(tmp_path) == listed_by_git(tmp_path)


@pytest.mark.process
def test_git_agrees_about_files_in_several_places(tmp_path: Path) -> None:
    require("git", shutil.which("git") is not None, "install git")
    own = {
        ".gitignore": "*.log\nfoo\n",
        "src/.gitignore": "!*.log\n/deep/a\n",
        "a/.gitignore": "b/c/\n",
        "build/.gitignore": "*\n!.gitignore\n",
    }
    make(tmp_path, dict.fromkeys(NAMES, "x") | own)
    git(tmp_path, "init", "-q")
    (tmp_path / ".git/info/exclude").write_text("Readme\nfoo/\n")
    assert walk(tmp_path) == listed_by_git(tmp_path)


PATTERN_PARTS = st.sampled_from(["a", "b", "*", "**", "?", "a*", "[ab]", "*b"])
PATTERNS = st.builds(
    lambda negated, slash, parts, end: ("!" if negated else "") + ("/" if slash else "") + "/".join(parts) + end,
    st.booleans(),
    st.booleans(),
    st.lists(PATTERN_PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "/", " "]),
)


@pytest.mark.process
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERNS, max_size=5), st.lists(PATTERNS, max_size=3))
def test_git_agrees_about_anything(
    tmp_path_factory: pytest.TempPathFactory, outer: list[str], inner: list[str]
) -> None:
    require("git", shutil.which("git") is not None, "install git")
    root = tmp_path_factory.mktemp("any")
    names = ["a", "b", "c/a", "c/b", "d/a/a", "d/a/b", "d/b/ab", "d/ba/a/b", "ab/a", "ab/c/b"]
    make(root, dict.fromkeys(names, "x"))
    (root / ".gitignore").write_text("\n".join(outer))
    (root / "d/.gitignore").write_text("\n".join(inner))
    git(root, "init", "-q")
    assert walk(root) == listed_by_git(root)


def test_rules_hold_without_a_repository_and_from_above(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "*.log\n/top\n", "sub/a.log": "", "sub/b": "", "sub/top": ""})
    assert walk(tmp_path / "sub") == {"b", "top"}


def test_another_repository_has_rules_of_its_own(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "*.log\n", "inner/.git/HEAD": "", "inner/a.log": "", "a.log": ""})
    assert walk(tmp_path) == {".gitignore", "inner/a.log"}
    assert walk(tmp_path / "inner") == {"a.log"}


def test_rules_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    make(tmp_path, {"a": ""})
    (tmp_path / ".gitignore").mkdir()
    assert walk(tmp_path) == {"a"}
    os.rmdir(tmp_path / ".gitignore")
    os.mkfifo(tmp_path / ".gitignore")
    assert "a" in walk(tmp_path)
