"""The server's end of the wire, over a store in memory."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from trunkline.wires.sns import codec, serve
from trunkline.wires.sns.messages import Signature

TOKEN = "rnr_" + "0123456789abcdef" * 4
AGENT = "cmlq0agent0000000000000001"
NONCE = "00112233445566778899aabbccddeeff"
NOW = 1_771_400_000_000


class Memory:
    """One agent and one nonce."""

    def __init__(self) -> None:
        self.good = {NONCE}
        self.asked: list[str] = []

    def agent(self, agent_id: str, token_hash: str) -> str | None:
        self.asked.append("agent")
        return "alice" if (agent_id, token_hash) == (AGENT, codec.token_hash(TOKEN)) else None

    def nonce_is_good(self, nonce: str, agent_id: str, now: int) -> bool:
        self.asked.append("nonce")
        return nonce in self.good

    def use_nonce(self, nonce: str, agent_id: str, now: int) -> bool:
        self.asked.append("use")
        if nonce not in self.good:
            return False
        self.good.remove(nonce)
        return True


def signed(body_hash: str = "h", timestamp: str = str(NOW)) -> dict[str, str]:
    signature = codec.sign(TOKEN, codec.payload(NONCE, timestamp, body_hash, AGENT))
    return Signature(TOKEN, AGENT, NONCE, timestamp, signature).headers()


def denied(headers: Mapping[str, str], store: Memory, now: int = NOW) -> tuple[int, str]:
    with pytest.raises(serve.Denied) as caught:
        serve.write(headers, "h", store, now)
    return caught.value.status, caught.value.message


def test_a_signed_write_uses_up_its_nonce() -> None:
    store = Memory()
    assert serve.write(signed(), "h", store, NOW) == "alice"
    assert store.asked == ["agent", "nonce", "use"]
    assert denied(signed(), store) == (401, "Invalid or expired nonce")


def test_a_bad_signature_uses_up_nothing_whatever_it_is_made_of() -> None:
    store = Memory()
    for wrong in ("0" * 64, "é", "\ud800", "x" * 10_000, signed("other")["x-agent-signature"]):
        assert denied(signed() | {"x-agent-signature": wrong}, store) == (401, "Invalid signature")
    assert store.good == {NONCE}


def test_a_nonce_that_another_took_meanwhile_denies_the_write() -> None:
    class Late(Memory):
        def use_nonce(self, nonce: str, agent_id: str, now: int) -> bool:
            return False

    assert denied(signed(), Late()) == (401, "Invalid or expired nonce")


def test_the_time_is_what_javascript_makes_of_its_text_and_that_text_is_signed() -> None:
    for spelled in (str(NOW), f"{NOW}.0", f" {NOW} ", f"{NOW / 1e12!r}e12", hex(NOW)):
        assert serve.write(signed(timestamp=spelled), "h", Memory(), NOW) == "alice", spelled
    for wrong in ("abc", "NaN", "Infinity", "1e400", "1_0"):
        assert denied(signed(timestamp=wrong), Memory()) == (400, "Invalid timestamp"), wrong
    assert denied(signed(timestamp=" "), Memory()) == (401, "Timestamp expired")


def test_exactly_two_minutes_are_near_enough() -> None:
    for off in (-120_000, 120_000):
        assert serve.write(signed(), "h", Memory(), NOW + off) == "alice"
        assert denied(signed(), Memory(), NOW + off + off // 120_000) == (401, "Timestamp expired")


def test_a_reader_must_say_who_it_is_and_prove_it() -> None:
    def read(**headers: str) -> str:
        with pytest.raises(serve.Denied) as caught:
            serve.runner({name.replace("_", "-"): value for name, value in headers.items()}, Memory())
        assert caught.value.status == 401
        return caught.value.message

    assert read() == "Missing x-runner-token"
    assert read(x_runner_token=TOKEN) == "Missing x-agent-id"
    assert read(x_runner_token=TOKEN, x_agent_id="other") == "Invalid or revoked runner credential"
    assert read(x_runner_token=TOKEN[4:], x_agent_id=AGENT) == "Invalid or revoked runner credential"
    assert serve.runner({"x-runner-token": f" {TOKEN} ", "x-agent-id": AGENT}, Memory()) == "alice"
