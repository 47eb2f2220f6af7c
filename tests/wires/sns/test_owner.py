"""The owner's end: what a network refuses is told in its words, and no secret is cut into one that nobody knows."""

from __future__ import annotations

import httpx
import pytest

from trunkline.base.redact import Redactor
from trunkline.wires.sns.drive import MAX_MESSAGE, SnsError
from trunkline.wires.sns.owner import Owner
from trunkline.wires.sns.wallet import Wallet

URL = "http://127.0.0.1:4317"
SECRET = "S3cretKeyOfTheOwner99"


async def refusal(error: object) -> SnsError:
    """What is told of a network that refuses with that."""
    transport = httpx.MockTransport(lambda request: httpx.Response(403, json={"error": error}))
    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(SnsError) as caught:
            await Owner(client, URL, Wallet("0x" + "11" * 32)).call("GET", "/api/agents/mine")
    return caught.value


async def test_a_refusal_is_the_networks_own_words_or_a_text_with_the_status() -> None:
    assert str(await refusal("Only the owner may.")) == "Only the owner may."
    nothing: object
    for nothing in ("", 5, None, []):
        assert str(await refusal(nothing)) == "It was refused (403)"


async def test_a_long_refusal_is_cut_between_words_so_that_a_secret_in_it_is_known_for_one() -> None:
    told = "x" * (MAX_MESSAGE - len(SECRET) // 2 - 1) + " " + SECRET
    shown = Redactor([SECRET]).text(str(await refusal(told)))
    assert SECRET[:4] not in shown
    assert shown == "x" * (MAX_MESSAGE - len(SECRET) // 2 - 1) + " ..."
    assert str(await refusal(told[:MAX_MESSAGE])) == told[:MAX_MESSAGE]
