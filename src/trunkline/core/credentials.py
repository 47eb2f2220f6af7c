"""Files that open something: keys, tokens and passwords, by where they lie and what they are called.

The list is what `docs/explanation/prompt-injection.md` says. It is for noticing a call that is about such a file, and
not for keeping anybody out: that is for deny rules and the sandbox.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

#: Everything in directories of these names, at any depth.
DIRECTORIES = frozenset(
    {
        ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".gcloud", ".oci", ".password-store", "keyrings",
        "keychains", "mcp-logins",
    }
)  # fmt: skip
#: The same of these below `.config`.
CONFIGURED = frozenset({"gcloud", "gh", "glab-cli", "hub", "doctl", "rclone", "op"})
#: Files of these names, at any depth.
FILES = frozenset(
    {
        ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token",
        ".terraformrc", ".htpasswd", ".env", ".envrc", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "kubeconfig",
        "credentials", "credentials.json", "credentials.toml", "credentials.tfrc.json", "credentials.db",
        "application_default_credentials.json", ".dockercfg", ".s3cfg", ".boto",
    }
)  # fmt: skip
#: Endings of key files and stores of keys.
ENDINGS = (".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk")
#: `.env.local`, but not `.env.example`.
_ENVIRONMENT = re.compile(r"\.env\.(?!(?:.*\.)?(?:example|sample|template|dist|defaults?)$).+")
_SYSTEM = re.compile(r"/etc/g?shadow-?|/proc/[^/]+/environ")
#: What ends a name in a text that is no path: quotes, brackets, blanks, and what stands between two words.
_BETWEEN = re.compile(r"[\s'\"`()\[\]{}<>|;&=,:@$*?\\]+")


def opens_something(path: str) -> bool:
    """Whether a file holds credentials, or a directory does, by its path alone."""
    names = _names(path)
    return is_named(path) or bool(names and names[-1].endswith(ENDINGS) and names[-1] not in ENDINGS)


def is_named(path: str) -> bool:
    """The same without the endings, which other things have, too: `jq .item.key`."""
    names = _names(path)
    if not names:
        return False
    if not DIRECTORIES.isdisjoint(names) or _below_config(names) or _SYSTEM.fullmatch(os.path.normpath(path)):
        return True
    return names[-1] in FILES or _ENVIRONMENT.fullmatch(names[-1]) is not None


def named_in(text: str) -> str:
    """The first such name in a text of any kind, such as a program on a command line; empty if there is none."""
    return next((word for word in _BETWEEN.split(text) if is_named(word)), "")


def _below_config(names: Sequence[str]) -> bool:
    return any(name in CONFIGURED and names[at - 1] == ".config" for at, name in enumerate(names) if at)


def _names(path: str) -> list[str]:
    """Some disks ignore case, and a pattern may go on behind a name."""
    return [name for name in path.casefold().rstrip("*").split("/") if name not in ("", ".")]
