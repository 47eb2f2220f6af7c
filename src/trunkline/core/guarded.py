"""Files in a workspace that make programs run behind the back of whoever works there, or loosen what we ask about.

A change of such a file is more than an edit, and counts as one outside the workspace. The list is what
`docs/explanation/approvals.md` says. Code that somebody has to run (a `Makefile`, a test) is not in it, and neither is
what only models read (`AGENTS.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Everything in directories of these names, at any depth; or a file of that name, as worktrees have.
DIRECTORIES = frozenset(
    {
        ".git", "git~1", ".hg", ".svn", ".husky", ".githooks", ".vscode", ".idea", ".devcontainer", ".claude",
        ".cursor", ".codex", ".gemini", ".ssh", ".direnv",
    }
)  # fmt: skip
#: Files of these names, at any depth.
FILES = frozenset(
    {
        "trunkline.toml", ".aionrs.toml", ".mcp.json", ".envrc", ".pre-commit-config.yaml", "lefthook.yml",
        ".lefthook.yml", "mise.toml", ".mise.toml", ".npmrc", ".yarnrc", ".yarnrc.yml", ".gitconfig", ".profile",
        ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
    }
)  # fmt: skip


def starts_programs(parts: Sequence[str]) -> bool:
    """Whether a file makes programs run; `parts` is its path below the workspace. Some disks ignore case."""
    names = [part.casefold() for part in parts]
    return not DIRECTORIES.isdisjoint(names) or bool(names and names[-1] in FILES)


def beyond(args: Mapping[str, Any]) -> str:
    """Where a call reaches that counts as outside, in words for whoever is asked."""
    paths = [args[key] for key in ("file_path", "path", "notebook_path") if isinstance(args.get(key), str)]
    if any(starts_programs(path.split("/")) for path in paths):
        return "to a file that makes programs run"
    return "outside the workspace"
