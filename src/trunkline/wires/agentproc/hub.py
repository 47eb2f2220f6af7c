"""The profiles that come with this package, and what there is to know about the programs that they start.

names()             all of them
load("codex")       one, ready to be run
text("codex")       its YAML, comments and all: the beginning of a profile of one's own
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from trunkline.base.nearest import nearest
from trunkline.base.own_python import module_command
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.profile import Profile

#: Our own program, which is the one that runs here, whatever else is on the `PATH`.
OWN_PROGRAM = "trunkline"

_FOLDER = os.path.join(os.path.dirname(__file__), "profiles")
_SUFFIX = ".yaml"


class ProfileProgram(Value):
    """The program of a profile: how to get it, and how it knows who pays."""

    command: str
    install: str
    login: str
    """How to log in, where that is possible."""
    keys: tuple[str, ...] = ()
    """Variables that are used instead of a login, each enough by itself."""


PROGRAMS: Mapping[str, ProfileProgram] = {
    "agy": ProfileProgram("agy", "see https://antigravity.google", "`agy`"),
    "aider": ProfileProgram(
        "aider",
        "uv tool install aider-chat",
        "",
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY"),
    ),
    "claude-code": ProfileProgram(
        "claude",
        "npm install -g @anthropic-ai/claude-code",
        "`claude`, and there `/login`",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    ),
    "codebuddy": ProfileProgram("codebuddy", "see https://www.codebuddy.ai", "`codebuddy`", ("CODEBUDDY_API_KEY",)),
    "codex": ProfileProgram(
        "codex", "npm install -g @openai/codex", "`codex login`", ("CODEX_API_KEY", "OPENAI_API_KEY")
    ),
    "cursor": ProfileProgram("cursor-agent", "see https://cursor.com/cli", "`cursor-agent login`", ("CURSOR_API_KEY",)),
    "deepseek": ProfileProgram(
        "deepseek", "see https://deepseek.com/downloads", "`deepseek login`", ("DEEPSEEK_API_KEY",)
    ),
    "echo-agent": ProfileProgram(OWN_PROGRAM, "it is here", ""),
    "gemini-cli": ProfileProgram(
        "gemini", "npm install -g @google/gemini-cli", "`gemini`", ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    ),
    "goose": ProfileProgram(
        "goose",
        "see https://github.com/block/goose",
        "`goose configure`",
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "DATABRICKS_TOKEN"),
    ),
    "grok-build": ProfileProgram("grok", "see https://x.ai/cli", "`grok login`", ("XAI_API_KEY",)),
    "kimi": ProfileProgram(
        "kimi", "npm install -g @moonshot-ai/kimi-code", "`kimi login`", ("KIMI_API_KEY", "KIMI_MODEL_API_KEY")
    ),
    "opencode": ProfileProgram(
        "opencode",
        "npm install -g opencode-ai",
        "`opencode auth login`",
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_API_KEY"),
    ),
    "pi": ProfileProgram(
        "pi",
        "npm install -g @earendil-works/pi-coding-agent",
        "`pi`, and there `/login`",
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_OAUTH_TOKEN"),
    ),
    "qwen-code": ProfileProgram(
        "qwen", "npm install -g @qwen-code/qwen-code", "`qwen`", ("OPENAI_API_KEY", "DASHSCOPE_API_KEY")
    ),
    "recursive": ProfileProgram(
        "recursive", "see https://github.com/jeffkit/recursive", "`recursive init`", ("RECURSIVE_API_KEY",)
    ),
    OWN_PROGRAM: ProfileProgram(
        OWN_PROGRAM, "it is here", "", ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TRUNKLINE_API_KEY")
    ),
}


def names() -> tuple[str, ...]:
    """The names of the bundled profiles, in alphabetical order."""
    return tuple(PROGRAMS)


def load(name: str) -> Profile:
    """A bundled profile.

    Raises:
        ConfigError: there is none of that name.
    """
    from trunkline.wires.agentproc.profile.file import parse

    # It has no place of its own: whatever it names is relative to where the bridge runs.
    profile = parse(text(name), f"the bundled profile `{name}`", None)
    if profile.command[0] == OWN_PROGRAM:
        return profile.replace(command=module_command(OWN_PROGRAM, profile.command[1:]))
    return profile


def text(name: str) -> str:
    """The YAML of a bundled profile.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in PROGRAMS:
        raise ConfigError(f"There is no bundled profile `{name}`.", hint=_suggestion(name))
    with open(os.path.join(_FOLDER, f"{name}{_SUFFIX}"), encoding="utf-8") as file:
        return file.read()


def how_to_install(command: str) -> str | None:
    """The command that installs a program, or where that is told, in a sentence; None if the program is not known."""
    way = next((program.install for program in PROGRAMS.values() if program.command == command), None)
    if way is None:
        return None
    return f"To install it, {way}." if way.startswith("see ") else f"Install it with `{way}`."


def _suggestion(name: str) -> str:
    meant = nearest(name, PROGRAMS)
    return f"Did you mean `{meant}`?" if meant else "`trunkline agentproc hub list` shows those there are."
