"""What the kit says to make an agent do something: in words that a language model follows and a script can match.

`{text}` stands for what a check fills in. A file of prompts in other words may replace any of them.
"""

from __future__ import annotations

from trunkline.conform.wording import Wording

PROMPTS: dict[str, str] = {
    "hello": "Reply with the single word: hello. Do not use any tool.",
    "repeat": "Repeat the text between the double angle brackets exactly, and say nothing else: <<{text}>>",
    "long": "Count from 1 to 2000 in digits, one number per line. Do not use any tool, and do not stop early.",
    "write": "Use the Write tool to create the file conform-write.txt with the content `hello`. Do nothing else.",
    "write-again": "Use the Write tool to create the file conform-again.txt with the content `hello`. Do nothing else.",
    "count": "How many messages have I sent you in this conversation, this one included? Reply with digits only.",
}

WORDING = Wording(PROMPTS, {"repeat": "{text}"})

#: The files that the prompts ask for.
FILES = {"write": "conform-write.txt", "write-again": "conform-again.txt"}
