"""The file that an exchange starts with: written to be read, with a comment for each part."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping

from trunkline.base import exchange_home, jsontext, paths
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.exchange.config_schema import is_name
from trunkline.exchange.settings import LISTEN

#: Random bytes in a token: too many to guess.
TOKEN_BYTES = 24
#: For people whose user name is not a valid name here.
NOBODY_IN_PARTICULAR = "me"


class Answers(Value):
    """What is asked before the file is written."""

    agent: str = "coder"
    workspace: str = "."
    listen: str = f"{LISTEN[0]}:{LISTEN[1]}"
    person: str = NOBODY_IN_PARTICULAR


def person_of(environ: Mapping[str, str]) -> str:
    """A name for the user who runs this."""
    found = environ.get("USER") or environ.get("LOGNAME") or ""
    return found if is_name(found) else NOBODY_IN_PARTICULAR


def new_token() -> str:
    """A new token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def text(answers: Answers, token: str, home: str | None = None) -> str:
    """The text of the file. It contains the token's digest, not the token.

    `home` is included if it is not the default.
    """
    digest = hashlib.sha256(token.encode()).hexdigest()
    at_home = f"home = {_quoted(home)}" if home is not None else '# home = "~/.local/state/trunkline/exchange"'
    return f"""\
# An exchange: named agents, conversations that outlive connections, and people who approve.
#   trunkline up --config trunkline.toml   runs it; changes here are loaded while it runs
#   trunkline doctor                       lists problems, each with the command that fixes it

[exchange]
listen = {_quoted(answers.listen)}
# For its database, conversations, and sockets for local clients:
{at_home}
# Called when something waits for approval: one POST with JSON. By default, approvals never expire.
# webhook = "https://example.org/hook"
# approvals_expire = "24h"

[agents.helper]
# coder, echo, graph:FILE, agentproc:PROFILE, acp:COMMAND, jsonstream:COMMAND, tryll:HOST:PORT, model:NAME,
# scripted:FILE or MODULE:NAME
agent = {_quoted(answers.agent)}
workspace = {_quoted(answers.workspace)}
mode = "default"
# Tools that need no approval:
allow = ["Read", "Grep", "Glob"]
description = "Works on the files in this directory"

# [agents.helper.budget]
# tokens_per_day = 2_000_000
# usd_per_day = 5.0
# turns_per_hour = 60
# seconds_per_turn = 900

# Repeats what it is told, without a model: for trying things out.
[agents.echo]
agent = "echo"

# [wires.tryll]
# listen = "127.0.0.1:9100"
# agents = ["helper"]

# [wires.telegram]
# agent = "helper"
# allow = ["telegram:12345"]

# An observer reads, a talker also sends messages, an approver also decides, an admin may do everything.
[people.{answers.person}]
role = "admin"
# The SHA-256 of the token. Or keep the token in a variable (token_env = "MY_TOKEN") or in the keyring (token_keyring).
token_sha256 = "{digest}"
"""


_DEMONSTRATION = """\
# The exchange of `trunkline up` without a file. You may edit it; changes are loaded while it runs.
# `trunkline init` writes a complete one with comments.

[exchange]
listen = "{listen}"

[agents.echo]
agent = "echo"
description = "Repeats what it is told"

[agents.tour]
agent = "scripted:tour"
description = "Plays a conversation, with tools that need your approval"

[agents.helper]
agent = "coder"
workspace = "{workspace}"
description = "A coding agent, with your key, your Ollama or a model that was pulled"

# For clients over HTTP; local ones need no token:
# [people.me]
# token_env = "MY_TOKEN"
# role = "admin"
"""


def demonstration_path(home: str) -> str:
    """The path of the file of an exchange that is run without naming one."""
    return os.path.join(home, exchange_home.FILE)


def demonstrate(path: str) -> None:
    """Write that file unless it exists: it is never overwritten, since somebody may have edited it.

    Raises:
        ConfigError: it cannot be written.
    """
    workspace = "workspace"
    try:
        paths.ensure_dir(os.path.join(os.path.dirname(path), workspace))
        write(path, _DEMONSTRATION.format(listen=f"{LISTEN[0]}:{LISTEN[1]}", workspace=workspace))
    except FileExistsError:
        return
    except OSError as error:
        raise ConfigError(f"`{path}` cannot be written: {error.strerror or error}.") from error


def write(path: str, contents: str) -> None:
    """Create a file.

    Raises:
        FileExistsError: it already exists.
        OSError: it cannot be written.
    """
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
        file.write(contents)


def _quoted(value: str) -> str:
    # The one character that JSON allows unescaped and TOML does not.
    return jsontext.dumps(value).decode().replace("\x7f", "\\u007f")
