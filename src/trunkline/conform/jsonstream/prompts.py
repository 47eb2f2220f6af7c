"""What the kit says to make an agent do something: in words that a language model follows and a script can match.

`{text}` and `{command}` stand for what a check fills in. A file of prompts in other words may replace any of them.
"""

from __future__ import annotations

from trunkline.conform.wording import Wording

PROMPTS: dict[str, str] = {
    "hello": "Reply with the single word: hello. Do not use any tool.",
    "repeat": "Repeat the text between the double angle brackets exactly, and say nothing else: <<{text}>>",
    "long": "Count from 1 to 2000 in digits, one number per line. Do not use any tool, and do not stop early.",
    "think": "Think step by step before you answer: how many prime numbers are below 50? Do not use any tool.",
    "attachment": "If the attached file cannot be read, say so, then reply with the single word: done.",
    "write": "Use the Write tool to create the file conform-write.txt with the content `hello`. Do nothing else.",
    "write-again": "Use the Write tool to create the file conform-again.txt with the content `hello`. Do nothing else.",
    "write-two": (
        "Use the Write tool twice in one step, both calls at once (in parallel): create conform-a.txt with the content "
        "`a` and conform-b.txt with the content `b`. Do nothing else."
    ),
    "write-denied": (
        "Use the Write tool to create the file conform-denied.txt with the content `x`. If that is denied, do not try "
        "again: reply with the reason that you were given, word for word."
    ),
    "edit": "Use the Edit tool to replace `hello` by `goodbye` in the file conform-edit.txt. Do nothing else.",
    "read": "Use the Read tool to read the file conform-read.txt. Do nothing else.",
    "bash": "Use the Bash tool to run exactly this command: `{command}` Do nothing else.",
    "mcp": "Use any one tool of an MCP server, once. Do nothing else.",
    "image": "Use the ViewImage tool to look at the file conform-image.png. Do nothing else.",
    "recall": "Which code words were named earlier in this conversation? Reply with all of them and nothing else.",
    "count": "How many messages have I sent you in this conversation, this one included? Reply with digits only.",
    "unreachable": "Reply with the single word: hello. (This is a test of what happens when the model fails.)",
}

WORDING = Wording(PROMPTS, {"repeat": "{text}", "bash": "{command}"})
