"""When what is spoken in a turn."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.core.graph.ordinals import TtsMarkKind


class TtsMark(Value, hot=True):
    """A word, or what the mouth shows, from one time to another. Times count from the first sound of the turn.

    The text of a viseme is one of `models.voice.visemes`.
    """

    kind: int = TtsMarkKind.WORD
    text: str = ""
    start_ms: int = 0
    end_ms: int = 0
