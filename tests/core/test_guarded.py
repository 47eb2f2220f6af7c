"""Files that make programs run."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.core.guarded import DIRECTORIES, ENDINGS, FILES, FORMS, STEMS, beyond, starts_programs

APPROVALS = Path(__file__).parents[2] / "docs" / "explanation" / "approvals.md"


@pytest.mark.parametrize(
    "path",
    [
        *(".git/config", ".git/hooks/x", "a/b/.git/config", ".GIT/config", ".git", ".husky/x", "a/.envrc", ".NPMRC"),
        # Names that are `.git` on a disk which is less particular.
        *(".g\u200cit/config", ".git\ufeff/config", ".git./config", ".git /config", ".envrc.", "GIT~1/config"),
        # A directory that is a repository once it has one.
        *("HEAD", "a/HEAD"),
        *("lefthook-local.yaml", ".lefthook.toml", "mise.local.toml", ".config/mise.toml", ".devcontainer.json"),
        *(".jj/repo/config.toml", ".opencode/x", "x.code-workspace", ".venv/lib/site-packages/x.pth", "x.pth"),
        "node_modules/.bin/x",
    ],
)
def test_these_make_programs_run(path: str) -> None:
    assert starts_programs(path.split("/"))
    assert beyond("edit", {"file_path": path}) == "to a file that makes programs run"


@pytest.mark.parametrize(
    "path",
    [
        "a.py",
        ".gitignore",
        ".github/x",
        "git/config",
        "Makefile",
        "AGENTS.md",
        ".envrc/x",
        "",
        "mise.md",
        "a/heads",
        ".",
    ],
)
def test_these_do_not(path: str) -> None:
    assert not starts_programs(path.split("/"))
    assert beyond("edit", {"file_path": path}) == "outside the workspace"


def test_to_read_one_is_no_change_of_it() -> None:
    assert beyond("info", {"file_path": "~/.ssh/id_rsa"}) == "outside the workspace"


def test_the_documentation_lists_them_all() -> None:
    said = APPROVALS.read_text()
    assert [name for name in sorted({*DIRECTORIES, *FILES, *STEMS, *FORMS, *ENDINGS}) if f"`{name}`" not in said] == []
