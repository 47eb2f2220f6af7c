"""A Google service account for tests, with a key of its own, and the service that gives it tokens."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from tests.support.provider import Reply, Request

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

EMAIL = "agent@some-project.iam.gserviceaccount.com"


@cache
def _key() -> RSAPrivateKey:
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def write_account(path: Path, token_url: str, **changes: Any) -> Path:
    """The file of a service account, as Google's console gives it out."""
    from cryptography.hazmat.primitives import serialization

    pem = _key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "project_id": "some-project",
        "private_key_id": "k1",
        "private_key": pem.decode(),
        "client_email": EMAIL,
        "client_id": "1",
        "token_uri": token_url,
    }
    path.write_text(json.dumps(account | changes))
    return path


def token_reply(token: str, seconds: int = 3600) -> Reply:
    """A token that is good for some time."""
    body = {"access_token": token, "expires_in": seconds, "token_type": "Bearer"}
    return Reply([json.dumps(body).encode()], headers={"content-type": "application/json"})


def claims_of(request: Request) -> dict[str, Any]:
    """What the account claims in its question for a token; its signature is checked."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    form = parse_qs(request.body.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    signed, _, signature = form["assertion"][0].rpartition(".")
    _key().public_key().verify(_decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    claims: dict[str, Any] = json.loads(_decoded(signed.split(".")[1]))
    return claims


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
