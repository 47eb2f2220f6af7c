"""Words that the configuration, the conversation, the wires and the models have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

#: How much is approved unasked. In `plan` nothing is: what would change something is not done at all.
Mode = Literal["default", "auto_edit", "yolo", "plan"]
MODES: tuple[Mode, ...] = ("default", "auto_edit", "yolo", "plan")
STRICTEST_FIRST: tuple[Mode, ...] = ("plan", "default", "auto_edit", "yolo")
#: The tool with which an agent shows its plan, in order to leave the mode `plan`.
EXIT_PLAN = "ExitPlanMode"

#: What the coding agent's own tools are called, also those that it does not always have: a server's tool must not pass
#: for one of them, nor be allowed by its name.
OWN_TOOLS = (
    "Bash", "BashOutput", "Edit", "EnterPlanMode", "ExitPlanMode", "Glob", "Grep", "KillBash", "NotebookEdit", "Read",
    "Skill", "Spawn", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Write",
)  # fmt: skip

#: Whether commands are fenced in: always, where the kernel can do it, or not.
SANDBOX_MODES = ("on", "auto", "off")

#: How hard a model may be told to try, the least first.
EFFORTS = ("low", "medium", "high")

#: Reading the workspace needs no approval unless the user says otherwise.
DEFAULT_ALLOW = ("Read", "Grep", "Glob")

#: What may be said of a model and pictures: whether it can be shown any; None: nobody knows.
ImageInput = Literal["supported", "unsupported", "unknown"]
IMAGE_INPUT: Mapping[ImageInput, bool | None] = {"supported": True, "unsupported": False, "unknown": None}
