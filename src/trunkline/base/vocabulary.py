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

#: How the numbers are kept by which a local model remembers what it has read: with how many bits.
KV_CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
#: The engine of local models makes no smaller window, and is ended by the system if it is told to make one of a single
#: token. No model was made for more than the most; memory for a window is taken at once.
LEAST_WINDOW, MOST_WINDOW = 256, 1 << 24
#: More than any machine has cores; where the system makes no more threads, it ends the process.
MOST_THREADS = 256
#: More than any model has.
MOST_GPU_LAYERS = 1000

#: Reading the workspace needs no approval unless the user says otherwise.
DEFAULT_ALLOW = ("Read", "Grep", "Glob")

#: What may be said of a model and pictures: whether it can be shown any; None: nobody knows.
ImageInput = Literal["supported", "unsupported", "unknown"]
IMAGE_INPUT: Mapping[ImageInput, bool | None] = {"supported": True, "unsupported": False, "unknown": None}
