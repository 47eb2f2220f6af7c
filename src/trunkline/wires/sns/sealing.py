"""An agent's secrets as a network keeps them: encrypted by their owner, and of no use to the network.

AES-256-GCM, `{"v": 2, "iv", "ciphertext"}` in Base64, as the pages write it. The key comes from the password and the
owner's address, which is public: all depends on the password. Older forms (`v` 1, or none) can be opened.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, cast

from trunkline.base import jsontext, recursion
from trunkline.base.extras import adding
from trunkline.core.faults import ConfigError

#: What an agent's secrets are called, in the order in which they are written.
NAMES = ("llmApiKey", "executionWalletPrivateKey", "alchemyApiKey", "githubIssueToken")
#: In UTF-16 units, as the pages count.
MIN_PASSWORD = 12

#: What the owner signs for the older form. It must never be sent anywhere.
_SIGNED_FOR_OLDER = "24-7-playground-security"
_INFO, _OLDER_INFO = b"agent-manager-v2", b"agent-manager"
_VERSION = 2
_OLDER = 1
_IV_BYTES, _TAG_BYTES, _KEY_BYTES = 12, 16, 32
#: The network keeps no longer ones.
_MAX_CIPHERTEXT = 64 * 1024


def long_enough(password: str) -> bool:
    """Whether secrets may be sealed with a password. Older ones that were sealed with a shorter one can be opened."""
    return len(password.encode("utf-16-le", "surrogatepass")) // 2 >= MIN_PASSWORD


def seal(secrets: Mapping[str, str], password: str, address: str, iv: bytes | None = None) -> dict[str, Any]:
    """What the network is given to keep. Every name is in it: those that are not given are empty.

    Args:
        iv: never twice with the same password; a random one unless given.

    Raises:
        ConfigError: the password is too short, or a library is not installed.
    """
    if not long_enough(password):
        raise ConfigError(f"The password needs {MIN_PASSWORD} characters or more.")
    iv = iv or os.urandom(_IV_BYTES)
    plain = jsontext.dumps({name: secrets.get(name, "") for name in NAMES})
    ciphertext, tag = _cipher(address.lower(), password, _INFO, iv).encrypt_and_digest(plain)
    return {"v": _VERSION, "iv": b64encode(iv).decode(), "ciphertext": b64encode(ciphertext + tag).decode()}


def unseal(kept: Mapping[str, Any], password: str, address: str, sign: Callable[[str], str]) -> dict[str, str]:
    """The secrets in what the network kept, by name; those that are empty are left out.

    Args:
        sign: signs a text with the owner's wallet; asked for the older form only.

    Raises:
        ConfigError: the password is wrong, it is another wallet's, or a library is not installed.
    """
    version = _version(kept.get("v"))
    found = None
    if version != _OLDER:
        found = _opened(kept, address.lower(), password, _INFO)
    if found is None and version < _VERSION:
        found = _opened(kept, sign(_SIGNED_FOR_OLDER), password, _OLDER_INFO)
    if found is None:
        raise ConfigError("That is not the password, or the secrets belong to another wallet.")
    return {name: value for name in NAMES if isinstance(value := found.get(name), str) and value}


def _version(value: Any) -> int:
    """As the pages read it: what is no number is none."""
    return int(value) if isinstance(value, int | float) else 0


def _opened(kept: Mapping[str, Any], material: str, password: str, info: bytes) -> dict[str, Any] | None:
    texts = kept.get("iv"), kept.get("ciphertext")
    if not all(isinstance(text, str) and len(text) <= 2 * _MAX_CIPHERTEXT for text in texts):
        return None
    try:
        iv, sealed = (b64decode(str(text), validate=True) for text in texts)
        plain = _cipher(material, password, info, iv).decrypt_and_verify(sealed[:-_TAG_BYTES], sealed[-_TAG_BYTES:])
        found = jsontext.loads(plain)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _cipher(material: str, password: str, info: bytes, iv: bytes) -> Any:
    try:
        with recursion.kept():
            from Crypto.Cipher import AES
            from Crypto.Hash import SHA256
            from Crypto.Protocol.KDF import HKDF
    except ImportError:
        raise ConfigError("An agent's secrets need `pycryptodome`.", hint=adding("network")) from None
    salt = sha256(password.encode("utf-8", "surrogatepass")).digest()
    key = cast(bytes, HKDF(material.encode(), _KEY_BYTES, salt, SHA256, context=info))
    return AES.new(key, AES.MODE_GCM, nonce=iv, mac_len=_TAG_BYTES)
