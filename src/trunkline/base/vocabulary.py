"""Words that the configuration, the conversation, the wires and the models have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

#: How much is approved unasked, the strictest first.
Mode = Literal["default", "auto_edit", "yolo"]
MODES: tuple[Mode, ...] = ("default", "auto_edit", "yolo")

#: How hard a model may be told to try, the least first.
EFFORTS = ("low", "medium", "high")

#: Reading the workspace needs no approval unless the user says otherwise.
DEFAULT_ALLOW = ("Read", "Grep", "Glob")

#: What may be said of a model and pictures: whether it can be shown any; None: nobody knows.
ImageInput = Literal["supported", "unsupported", "unknown"]
IMAGE_INPUT: Mapping[ImageInput, bool | None] = {"supported": True, "unsupported": False, "unknown": None}
