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
PICTURE_REFUSED = "[A picture was here. The model's provider did not take it.]"
COMPACTED = "[Conversation compacted: what was said before is summarised here.]"
DROPPED = "[The beginning of the conversation was dropped, because the model's window is full.]"
LATEST = "[The user's latest message:]"
PLAN_KEPT = "[The plan that the user approved:]"
TODOS_KEPT = "[Your to-do list:]"
FILE_KEPT = "[A file that you worked with, and what is in it now, if it is shown:]"
HOOK_SAYS = "[From a hook:]"
HOOK_OBJECTS = "[Error: a hook objects to this:]"
HOOK_GOES_ON = "[A hook does not let you end here:]"
UNDONE = (
    "[The user has undone what you changed in your last turns: files are as they were before. "
    "Read a file again before you rely on what you know of it.]"
)
PLANNING = (
    "[The session is in plan mode: look, think and plan, and change nothing. Calls that would write, edit or run "
    "something are not done. When you know what is to be done, show your plan with ExitPlanMode; work begins once the "
    "user has approved it. A question that needs no change is simply answered.]"
)
PLAN_LEFT = "[The session is no longer in plan mode: changes are possible again, with the usual approvals.]"

#: What the result of a call begins with that a person, a rule, a hook or the mode did not allow.
TOOL_DENIED = "Tool denied: "
#: Results of calls that have none.
UNSEEN = "The process ended before this tool did. It may or may not have had its effect."
NOT_BEGUN = "Not run: the process ended before this tool began."
NOT_RUN = "Not run: all tool rounds of this message are used."
#: For people, of a turn whose changes are not all known.
RAN_ON = "A command ran on in the background when its turn was over."

_OURS = frozenset(
    {
        STOPPED, CRASHED, NO_MORE_TOOLS, NO_ANSWER, GO_ON, CLEARED, PICTURE_CLEARED, PICTURE_REFUSED, DROPPED, LATEST,
        UNDONE, PLANNING, PLAN_LEFT,
    }
)  # fmt: skip


def is_ours(block: Block) -> bool:
    """Whether a text on the user's side is the agent's own."""
    return isinstance(block, Text) and (
        block.text in _OURS
        or block.text.startswith((COMPACTED, HOOK_SAYS, HOOK_GOES_ON, PLAN_KEPT, TODOS_KEPT, FILE_KEPT))
    )
