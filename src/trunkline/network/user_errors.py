"""What went wrong in people's browsers: one line of JSON for each, one file for each day.

Anybody may send them, so everything is cut, what looks like a secret is masked, and a day's file has a limit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from trunkline.base import jsontext
from trunkline.base.paths import ensure_dir
from trunkline.base.redact import MASK
from trunkline.network.texts import cut16, iso

#: The largest file of one day.
MAX_BYTES = 10 * 1024 * 1024
#: The longest texts, by member.
CLIPS = {"source": 80, "message": 1200, "stack": 16000, "path": 320, "url": 800, "userAgent": 400}
_CONTEXT_CHARS = 6000

#: Runner tokens, session tokens, private keys, keys of model providers. All but the first may be something harmless.
_SECRETS = re.compile(r"rnr_\w+|Bearer\s+[\w.~+/=-]+|\bsk-[\w-]{8,}|(?:0x)?[0-9a-fA-F]{64}|\b[0-9a-fA-F]{48}\b")


def normalised(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is kept of a report; None if it does not say what happened and where."""
    entry: dict[str, Any] = {name: _clipped(body.get(name), length) for name, length in CLIPS.items()}
    if not entry["source"] or not entry["message"]:
        return None
    context = body.get("context")
    if context is not None:
        written = context if isinstance(context, str) else jsontext.dumps(context).decode()
        entry["context"] = _clipped(written, _CONTEXT_CHARS)
    return {name: value for name, value in entry.items() if value}


def append(home: str, now: int, entry: Mapping[str, Any]) -> bool:
    """Write a report. Whether it was written: not if the day's file is full.

    Raises:
        OSError: the disk did not take it.
    """
    moment = iso(now)
    folder = os.path.join(home, "logs")
    ensure_dir(folder)
    line = jsontext.dumps({"at": moment, **entry}) + b"\n"
    path = os.path.join(folder, f"sns-user-errors-{moment[:10]}.log.ndjson")
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        if os.fstat(file).st_size + len(line) > MAX_BYTES:
            return False
        os.write(file, line)
    finally:
        os.close(file)
    return True


def _clipped(value: Any, length: int) -> str:
    if not isinstance(value, str):
        return ""
    # Masked before it is cut: half a secret is not recognised.
    return cut16(_SECRETS.sub(MASK, value[: 8 * length]).strip(), length)
