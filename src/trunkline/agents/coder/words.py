"""What the agent says to its model on the user's side, in brackets: the user did not say it."""

from __future__ import annotations

from trunkline.models.messages import Block, Text

STOPPED = "[The user stopped the answer here.]"
CRASHED = "[The process ended in the middle of the answer.]"
NO_MORE_TOOLS = "[You have used all the tool rounds that this message may have. Answer now, without tools.]"
NO_ANSWER = "[You gave no answer. Answer now, in words.]"
GO_ON = "[Your answer was cut off by its length limit. Go on exactly where it ended.]"
CLEARED = "[Tool result cleared to save room. Use the tool again if it is needed.]"
PICTURE_CLEARED = "[A picture was here. It was cleared to save room.]"
COMPACTED = "[Conversation compacted: what was said before is summarised here.]"
DROPPED = "[The beginning of the conversation was dropped, because the model's window is full.]"
LATEST = "[The user's latest message:]"

#: Results of calls that have none.
UNSEEN = "The process ended before this tool did. It may or may not have had its effect."
NOT_BEGUN = "Not run: the process ended before this tool began."
NOT_RUN = "Not run: all tool rounds of this message are used."

_OURS = frozenset({STOPPED, CRASHED, NO_MORE_TOOLS, NO_ANSWER, GO_ON, CLEARED, PICTURE_CLEARED, DROPPED, LATEST})


def is_ours(block: Block) -> bool:
    """Whether a text on the user's side is the agent's own."""
    return isinstance(block, Text) and (block.text in _OURS or block.text.startswith(COMPACTED))
