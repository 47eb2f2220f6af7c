"""What the kit writes for a bridge: the part that the agent plays, and the profile that starts it.

Profiles are written in plain YAML that the simplest reader understands: one key to a line, texts in double quotes only
where they need them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trunkline.base import jsontext
from trunkline.conform import probe

Step = list[Any]

#: A text that means itself in YAML.
_PLAIN = re.compile(r"(?!(?:true|false|yes|no|on|off|null)\Z)[A-Za-z/._][A-Za-z0-9/._=+ -]*", re.IGNORECASE)

#: The program that plays the agent, and its arguments up to the folder of its part.
PYTHON = sys.executable
PROBE = ("-I", "-S", str(Path(probe.__file__)))


def out(text: str | bytes) -> Step:
    """Write to standard output."""
    return ["out", _latin(text)]


def said(*lines: str) -> Step:
    """Write whole lines to standard output."""
    return out("".join(f"{line}\n" for line in lines))


def err(text: str) -> Step:
    """Write to standard error."""
    return ["err", _latin(text)]


def in_bytes(text: str | bytes) -> Step:
    """Write to standard output byte by byte."""
    return ["bytes", _latin(text)]


def partial(text: str) -> str:
    """The line of a partial."""
    return f"AGENT_PARTIAL:{jsontext.quote_ascii(text)}"


def error(text: str) -> str:
    """The line of an error."""
    return f"AGENT_ERROR:{jsontext.quote_ascii(text)}"


def plan(steps: tuple[Step, ...]) -> bytes:
    """The part as its file."""
    return jsontext.dumps(list(steps))


def profile(folder: Path, more: Mapping[str, Any]) -> str:
    """A profile that starts the agent with the part of that folder; `more` adds to it or replaces. None leaves out."""
    fields = {"command": PYTHON, "args": [*PROBE, str(folder)], "timeout_secs": 20, **more}
    return "".join(_field(name, value) for name, value in fields.items() if value is not None)


def _field(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"{name}:\n" + "".join(f"  - {_scalar(item)}\n" for item in value)
    if isinstance(value, Mapping):
        return f"{name}:\n" + "".join(f"  {key}: {_scalar(item)}\n" for key, item in value.items())
    return f"{name}: {_scalar(value)}\n"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text == text.strip() else jsontext.quote(text)


def _latin(text: str | bytes) -> str:
    return (text.encode() if isinstance(text, str) else text).decode("latin-1")
