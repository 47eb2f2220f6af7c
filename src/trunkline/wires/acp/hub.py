"""Agents of other people that speak the Agent Client Protocol: how each is started, got and paid for."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.base.values import Value


class KnownAcpAgent(Value):
    """An agent that goes by a short name: `acp:opencode`."""

    argv: tuple[str, ...]
    about: str
    install: str
    login: str = ""
    """How to log in, where that is possible."""
    keys: tuple[str, ...] = ()
    """Variables that are used instead of a login, each enough by itself."""
    note: str = ""
    """What else it needs."""
    mode: str = ""
    """Its own mode in which it asks, where that is not to be seen from its name."""

    @property
    def how_to_install(self) -> str:
        """In a sentence."""
        return (
            f"To install it, {self.install}."
            if self.install.startswith("see ")
            else f"Install it with `{self.install}`."
        )


PROGRAMS: Mapping[str, KnownAcpAgent] = {
    "claude-agent-acp": KnownAcpAgent(
        ("claude-agent-acp",),
        "Claude Code, Anthropic's coding agent.",
        "npm install -g @agentclientprotocol/claude-agent-acp",
        "`claude`, and there `/login`",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        "node 22 or newer",
    ),
    "codex-acp": KnownAcpAgent(
        ("codex-acp",),
        "Codex, OpenAI's coding agent.",
        "npm install -g @agentclientprotocol/codex-acp",
        "`codex login`",
        ("CODEX_API_KEY", "OPENAI_API_KEY"),
        mode="read-only",
    ),
    "gemini-cli": KnownAcpAgent(
        ("gemini", "--acp"),
        "Gemini CLI, Google's coding agent.",
        "npm install -g @google/gemini-cli",
        "`gemini`",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "node 20 or newer",
    ),
    "goose": KnownAcpAgent(
        ("goose", "acp"),
        "goose, an agent with any model.",
        "see https://github.com/aaif-goose/goose",
        "`goose configure`",
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"),
    ),
    "opencode": KnownAcpAgent(
        ("opencode", "acp"),
        "OpenCode, a coding agent with any model.",
        "npm install -g opencode-ai",
        "`opencode auth login`",
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "OPENCODE_API_KEY"),
    ),
    "qwen-code": KnownAcpAgent(
        ("qwen", "--acp"),
        "Qwen Code, Alibaba's coding agent.",
        "npm install -g @qwen-code/qwen-code",
        "`qwen`",
        ("OPENAI_API_KEY", "DASHSCOPE_API_KEY"),
        "node 22 or newer",
    ),
}
