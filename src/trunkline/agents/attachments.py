"""Files that come with a message: which of them can be had at all."""

from __future__ import annotations

import os
from collections.abc import Iterator

from trunkline.core.events import Notice, UserMessage


def notices(message: UserMessage, workspace: str) -> Iterator[Notice]:
    """One notice per attached file that is missing. Relative paths start in the workspace; directories are fine."""
    for file in message.files:
        # Paths that no file can have (a NUL, half a character) count as missing.
        if not file or not os.path.exists(os.path.join(workspace, file)):
            yield Notice(f"The attached file `{file}` cannot be found. It is ignored.")
