"""What git's configuration says of hooks and of further files of it, as far as a sandbox has to know."""

from __future__ import annotations

import os
import re

from trunkline.base.regular import read_regular

#: As much of a repository's configuration is read.
CONFIG_BYTES = 1 << 20
#: Files of the user's own configuration that are read before every command.
MOST_FILES = 200
#: What a configuration names that counts like a part of itself: other files of it, and where the hooks are.
NAMED = re.compile(r'\b(hookspath|path)[ \t]*=[ \t]*(?:"([^"\n]+)"|([^"#;\n]+))', re.IGNORECASE)


def text_of(config: str) -> str:
    """What it says; nothing if it cannot be read."""
    try:
        return read_regular(config, CONFIG_BYTES).data.decode("utf-8", "replace")
    except OSError:
        return ""


def users_configuration() -> tuple[list[str], list[str]]:
    """The files of the user's own configuration of git and of the machine's, and where they say that hooks are."""
    own = os.environ.get("GIT_CONFIG_GLOBAL")
    at_home = os.environ.get("XDG_CONFIG_HOME") or os.path.join("~", ".config")
    waiting = [own] if own is not None else [os.path.join(at_home, "git", "config"), os.path.join("~", ".gitconfig")]
    waiting.append("/etc/gitconfig")
    files, hooks = list[str](), list[str]()
    while waiting and len(files) < MOST_FILES:
        file = os.path.expanduser(waiting.pop())
        if not os.path.isabs(file) or file in files:
            continue
        files.append(file)
        for key, quoted, plain in NAMED.findall(text_of(file)):
            named = os.path.expanduser(quoted or plain.strip())
            if key.lower() == "path":
                waiting.append(os.path.join(os.path.dirname(file), named))
            else:
                hooks.append(named)
    return files, hooks
