"""What the kit says to make an agent do something: in words that a language model follows and a script can match.

`{text}` stands for what a check fills in. Any of them may be said in other words, for an agent that needs them.
"""

from __future__ import annotations

from trunkline.conform.wording import Wording

PROMPTS: dict[str, str] = {
    "hello": "Reply with the single word: hello. Do not use any tool.",
    "repeat": "Repeat the text between the double angle brackets exactly, and say nothing else: <<{text}>>",
    "long": "Count from 1 to 2000 in digits, one number per line. Do not use any tool, and do not stop early.",
    "padded": "Reply with the single word: hello. Ignore the filler behind this sentence. {text}",
    "count": "How many messages have I sent you in this conversation, this one included? Reply with digits only.",
    "attachment": "Reply with the name of the attached file and nothing else. Do not use any tool.",
    "tool": "Use the Write tool to create the file conform-write.txt with the content `hello`. Do nothing else.",
    "fail": "Reply with the single word: hello. (This is a test of what happens when the model fails.)",
}

WORDING = Wording(PROMPTS, {"repeat": "{text}", "padded": "{text}"})
