"""What the kit says to a model: in words that a language model follows and a script can match.

`{text}` stands for what a check fills in. A file of prompts in other words may replace any of them.
"""

from __future__ import annotations

from trunkline.conform.wording import Wording

PROMPTS: dict[str, str] = {
    "hello": "Reply with the single word: hello. Do not use any tool.",
    "repeat": "Repeat the text between the double angle brackets exactly, and say nothing else: <<{text}>>",
    "long": "Count from 1 to 2000 in digits, one number per line. Do not use any tool, and do not stop early.",
    "count": "How many messages have I sent you in this conversation, this one included? Reply with digits only.",
    "tool": "What is the weather in Paris? Use the tool get_weather to find out.",
    "json": "Reply with a JSON object that has the member `answer` with the value 42, and with nothing else.",
}

WORDING = Wording(PROMPTS, {"repeat": "{text}"})
