"""What an agent says first. Needs no event loop: a host that waits for it need not wait for one either."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from trunkline.base.vocabulary import IMAGE_INPUT, MODES, Mode
from trunkline.core.agent import Capabilities
from trunkline.wires.jsonstream import codec, messages
from trunkline.wires.jsonstream.messages import PROTOCOL_VERSION

_SANDBOX: Mapping[bool | None, Literal["on", "off"] | None] = {True: "on", False: "off", None: None}
_IMAGE_INPUT = {sees: word for word, sees in IMAGE_INPUT.items()}


def greeting(can: Capabilities, mode: Mode, session_id: str | None) -> bytes:
    """The lines that say that initialisation is done. `session_id` is None where nothing is kept."""
    lines = codec.encode(messages.Ready(PROTOCOL_VERSION, wire_capabilities(can, mode), session_id))
    if mode != "default":
        # Begun with, or restored: a host that believes in the default would wait for requests in vain.
        lines += codec.encode(messages.Info("", f"mode: {mode}"))
    return lines


def wire_capabilities(can: Capabilities, mode: Mode) -> messages.Capabilities:
    """What the agent can do, in this wire's words, and which mode holds."""
    return messages.Capabilities(
        tool_approval=can.approval,
        thinking=can.thinking,
        mcp=can.mcp,
        image_input=_IMAGE_INPUT[can.images],
        effort=bool(can.effort_levels),
        effort_levels=can.effort_levels,
        modes=MODES,
        current_mode=mode,
        steering=can.steerable,
        sandbox=_SANDBOX[can.sandbox],
    )
