"""What an agent says first. Needs no event loop: a host that waits for it need not wait for one either."""

from __future__ import annotations

from trunkline.core.agent import Capabilities
from trunkline.core.approvals import MODES
from trunkline.core.events import Mode
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.messages import PROTOCOL_VERSION


def greeting(can: Capabilities, mode: Mode, session_id: str | None) -> bytes:
    """The lines that say that initialisation is done. `session_id` is None where nothing is kept."""
    lines = codec.encode(messages.Ready(PROTOCOL_VERSION, wire_capabilities(can), session_id))
    if mode != "default":
        # Begun with, or restored: a host that believes in the default would wait for requests in vain.
        lines += codec.encode(messages.Info(None, f"mode: {mode}"))
    return lines


def wire_capabilities(can: Capabilities, mode: Mode | None = None) -> messages.Capabilities:
    """What the agent can do, in this wire's words; with a mode also which there are, and which it is."""
    return messages.Capabilities(
        tool_approval=can.approval,
        thinking=can.thinking,
        mcp=can.mcp,
        modes=None if mode is None else tuple(MODES),
        current_mode=mode,
    )
