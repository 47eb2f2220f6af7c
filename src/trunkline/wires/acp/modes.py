"""What a user of an editor can choose for a session: how much is asked, and how hard the model tries."""

from __future__ import annotations

from collections.abc import Mapping

from trunkline.base.vocabulary import MODES, Mode
from trunkline.core.agent import Capabilities
from trunkline.wires.acp.messages_sessions import (
    ConfigChoice,
    SelectOption,
    SessionConfigOption,
    SessionMode,
    SessionModeState,
)

#: The option for how hard the model tries.
EFFORT = "effort"
#: The value of that option as long as nobody has chosen: as the agent is configured.
AS_CONFIGURED = "default"

_MODES: Mapping[Mode, tuple[str, str]] = {
    "default": ("Ask", "Asks before it changes files, runs commands or uses tools of servers"),
    "auto_edit": (
        "Edit without asking",
        "Changes files unasked; asks about commands and tools of servers",
    ),
    "yolo": ("Never ask", "Does everything unasked, commands included"),
    "plan": ("Plan", "Looks and plans, and changes nothing until the plan is approved"),
}


def modes(current: Mode) -> SessionModeState:
    """The modes, and which of them applies."""
    return SessionModeState(current, tuple(SessionMode(mode, *_MODES[mode]) for mode in MODES))


def options(capabilities: Capabilities, effort: str) -> tuple[SessionConfigOption, ...]:
    """The options that this agent has."""
    if not capabilities.effort_levels:
        return ()
    levels = (AS_CONFIGURED, *capabilities.effort_levels)
    choices = tuple(ConfigChoice(level.capitalize(), level) for level in levels)
    return (SelectOption(EFFORT, "Effort", effort, choices, "How hard the model tries", "thought_level"),)
