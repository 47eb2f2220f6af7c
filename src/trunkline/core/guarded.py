"""Files in a workspace that make programs run behind the back of whoever works there, or loosen what we ask about.

A change of such a file is more than an edit, and counts as one outside the workspace. The list is what
`docs/explanation/approvals.md` says. Code that somebody has to run (a `Makefile`, a test) is not in it, and neither is
what only models read (`AGENTS.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline.core.events import Category

#: Everything in directories of these names, at any depth; or a file of that name, as worktrees have.
DIRECTORIES = frozenset(
    {
        ".git", "git~1", ".hg", ".svn", ".jj", ".husky", ".githooks", ".lefthook", ".vscode", ".idea", ".zed",
        ".devcontainer", ".trunkline", ".aionrs", ".claude", ".cursor", ".codex", ".gemini", ".qwen", ".kiro", ".roo",
        ".windsurf", ".continue", ".opencode", ".amazonq", ".ssh", ".direnv", ".mise", "site-packages", ".bin",
    }
)  # fmt: skip
#: Files of these names, at any depth.
FILES = frozenset(
    {
        "trunkline.toml", ".aionrs.toml", ".mcp.json", "opencode.json", "opencode.jsonc", ".aider.conf.yml",
        ".envrc", ".autoenv", ".autoenv.zsh", ".pre-commit-config.yaml", ".pre-commit-config.yml",
        ".devcontainer.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".gitconfig", ".hgrc",
        ".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".zshrc",
        ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el",
        # With it, a directory may be a repository of its own, whose `config` names programs that `git status` runs.
        "head",
    }
)  # fmt: skip
#: The same with a dot in front or without, in whichever form a configuration is written.
STEMS = frozenset({"lefthook", "lefthook-local", "mise", "mise.local"})
FORMS = ("yml", "yaml", "toml", "json")
#: Endings of such names: what starts with an editor or with every Python.
ENDINGS = (".code-workspace", ".pth")
#: Characters that some disks pass over in a name, and git with them: `.g<U+200C>it` is `.git` there.
_PASSED_OVER = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))


def starts_programs(parts: Sequence[str]) -> bool:
    """Whether a file makes programs run; `parts` is its path below the workspace. Some disks ignore case."""
    names = [_as_on_any_disk(part) for part in parts]
    if not names or not DIRECTORIES.isdisjoint(names):
        return bool(names)
    stem, _, form = names[-1].removeprefix(".").rpartition(".")
    return names[-1] in FILES or names[-1].endswith(ENDINGS) or (stem in STEMS and form in FORMS)


def _as_on_any_disk(name: str) -> str:
    """A name as the disk reads it that is least particular: about case, about characters without a look, and about
    dots and blanks at the end."""
    return name.casefold().translate(_PASSED_OVER).rstrip(". ")


def beyond(category: Category, args: Mapping[str, Any]) -> str:
    """Where a call reaches that counts as outside, in words for whoever is asked. Reading makes no program run."""
    paths = [args[key] for key in ("file_path", "path", "notebook_path") if isinstance(args.get(key), str)]
    if category != "info" and any(starts_programs(path.split("/")) for path in paths):
        return "to a file that makes programs run"
    return "outside the workspace"
