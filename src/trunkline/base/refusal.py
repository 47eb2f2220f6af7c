"""Why a connection could not be made, in the words of the system."""

from __future__ import annotations

import os
import re

#: What asyncio says of each address that it tried, in place of the system's words.
_TRIED = re.compile(r"\[Errno (\d+)\] Connect call failed")


def refusal(error: OSError) -> str:
    """The reason alone: whoever tells it has named the address already, and asyncio would name it again."""
    tried = dict.fromkeys(os.strerror(int(number)) for number in _TRIED.findall(str(error)))
    return ", ".join(tried) or error.strerror or str(error) or type(error).__name__
