"""Bodies, hashes and signatures."""

from __future__ import annotations

import pytest

from trunkline.core.faults import RemoteProtocolError
from trunkline.wires.sns import codec
from trunkline.wires.sns.messages import Signature

TOKEN = "rnr_" + "0123456789abcdef" * 4
AGENT = "cmlq0agent0000000000000001"

#: nonce, timestamp, token, agent, body, hash of the body, signature: as the original computes them.
VECTORS = (
    (
        "00112233445566778899aabbccddeeff",
        "1771400000000",
        TOKEN,
        AGENT,
        (
            rb'{"communityId":"cmlq0comm00000000000000001","title":"Deposit rounding",'
            rb'"body":"Line 1\nLine 2 \"quoted\" \\ back","type":"REPORT_TO_HUMAN"}'
        ),
        "b21ba4e998cefd12cc13229c7468569a968cbb507fd95cc9401a20487e013be7",
        "bdd895e3c6cd30ae754bd607f6415fbffc18b72c4ef2427ce22dd25b2defa030",
    ),
    (
        "0123456789abcdef0123456789abcdef",
        "1771400001000",
        "rnr_" + "f" * 64,
        "cmlq0agent0000000000000002",
        b'{"status":"resolved"}',
        "4c33ba4c21917c9864576cb9fa0ec2c137a98183f50872b23d19aa8c25ca2f84",
        "2f5ff6d22f8af2144890954acb1b1de16f07d9e2bdee6274c4c9117fee63e346",
    ),
    (
        "c" * 32,
        "1771400004000",
        TOKEN,
        AGENT,
        b"{}",
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "0fed045c34c9e96d7be5e6f2410679ddab5c051c9874e1a5ad876318d4f8867c",
    ),
    (
        "d" * 32,
        "1771400005000",
        TOKEN,
        AGENT,
        b'{ "isIssued" : true }',
        "5c8c55896a382fb8177e6cda633a8574e23f6afd1f8951d4db3f40105e2643bd",
        "c83846064aeda87b32286fe7af1d34153405a546bd168bbc2bae9104ccd340cc",
    ),
)


@pytest.mark.parametrize(("nonce", "timestamp", "token", "agent", "body", "hashed", "signature"), VECTORS)
def test_a_write_is_signed_as_the_original_signs_it(
    nonce: str, timestamp: str, token: str, agent: str, body: bytes, hashed: str, signature: str
) -> None:
    assert codec.body_hash(codec.parse_body(body)) == hashed
    assert codec.sign(token, codec.payload(nonce, timestamp, hashed, agent)) == signature


def test_the_server_keeps_the_hash_of_a_token() -> None:
    assert codec.token_hash(TOKEN) == "c8eab2f7fe962f3bd1496feb78a97562fbc970e6de9684207b4f45eaa8efa801"


def test_signatures_are_equal_only_if_they_are_the_same() -> None:
    assert codec.same_signature("a" * 64, "a" * 64)
    assert not codec.same_signature("a" * 64, "a" * 63)
    assert not codec.same_signature("a" * 64, "A" * 64)
    assert not codec.same_signature("a" * 64, "\ud800é")


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"a":1,}', b"NaN", b'{"a":Infinity}', b"\xff", b"[" * 20_000 + b"]" * 20_000, b"{} {}"]
)
def test_what_is_not_json_is_the_peers_fault(body: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="Invalid JSON body"):
        codec.parse_body(body)


def test_the_largest_body_is_taken_and_one_byte_more_is_not() -> None:
    largest = b'"' + b"x" * (codec.MAX_BODY - 2) + b'"'
    assert len(codec.parse_body(largest)) == codec.MAX_BODY - 2
    with pytest.raises(RemoteProtocolError, match="are the most"):
        codec.parse_body(largest + b" ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e12", 1e12),
        (" 12 ", 12),
        ("0x10", 16),
        ("0b11", 3),
        ("0o17", 15),
        ("", 0),
        (".5", 0.5),
        ("5.", 5),
        ("-5", -5),
        ("abc", None),
        ("1_000", None),
        ("0x", None),
        ("0x1_0", None),
        ("-0x10", None),
        ("Infinity", None),
        ("NaN", None),
        ("1e400", None),
        ("١٢", None),
        ("1 2", None),
        ("0x" + "f" * 400, None),
    ],
)
def test_a_header_is_the_number_that_javascript_takes_it_for(text: str, value: float | None) -> None:
    assert codec.js_number(text) == value


def test_the_headers_of_a_signed_write_are_the_five_of_the_protocol() -> None:
    assert Signature("t", "a", "n", "1", "s").headers() == {
        "x-runner-token": "t",
        "x-agent-id": "a",
        "x-agent-nonce": "n",
        "x-agent-timestamp": "1",
        "x-agent-signature": "s",
    }
