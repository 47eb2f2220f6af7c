from __future__ import annotations

from typing import Any

import pytest

from trunkline.demo.chain.artefacts import artefact
from trunkline.runner.chain import abi, arguments
from trunkline.runner.chain.abi import Function, Refusal

ABI = artefact().abi
OWNER = "0x52908400098527886E0F7030069857D2E4169EE7"


def function(*types: str, outputs: tuple[str, ...] = (), **more: Any) -> Function:
    inputs = [{"name": f"p{number}", "type": type, **more} for number, type in enumerate(types)]
    returned = [{"name": "", "type": type, **more} for type in outputs]
    return abi.read({"type": "function", "name": "f", "inputs": inputs, "outputs": returned})


def test_a_function_is_found_by_its_name_or_by_its_signature() -> None:
    assert abi.choose(ABI, "fee").signature == "fee(uint256)"
    assert abi.choose(ABI, " inc( uint ) ").signature == "inc(uint256)"
    assert abi.choose(ABI, "inc()").inputs == ()
    # What every tool computes for this signature.
    assert abi.choose(ABI, "withdraw").selector.hex() == "2e1a7d4d"


def test_a_name_that_several_functions_have_is_refused_with_all_of_them() -> None:
    with pytest.raises(Refusal, match=r"`deposit\(\)`, `deposit\(address\)`"):
        abi.choose(ABI, "deposit")


@pytest.mark.parametrize("name", ["nope", "inc(uint8)", "TooLittle", "Counted", "", None, 5, "Fee", "fee(", "()"])
def test_what_is_no_function_of_the_abi_is_not_allowed(name: Any) -> None:
    with pytest.raises(Refusal, match=r"^Function not allowed\.$"):
        abi.choose(ABI, name)


def test_old_compilers_said_in_other_words_what_a_function_changes() -> None:
    assert abi.read({"name": "f", "constant": True}).is_view
    assert abi.read({"name": "f", "payable": True, "constant": False}).is_payable
    assert not abi.read({"name": "f"}).is_view


@pytest.mark.parametrize(
    ("type", "problem"),
    [
        ("fixed128x18", "not known"),
        ("uint7", "not known"),
        ("bytes33", "not known"),
        ("uint256[0]", "array of 0"),
        ("uint256" + "[]" * 50, "deep"),
        ("tuple", "not a list"),
        (None, "no type"),
        ({}, "no type"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused_with_its_reason(type: Any, problem: str) -> None:
    with pytest.raises(Refusal, match=problem):
        abi.choose([{"type": "function", "name": "f", "inputs": [{"name": "x", "type": type}]}], "f")


@pytest.mark.parametrize("entries", [[None], [5], [{"type": "function"}], [{"name": "f", "inputs": 5}], [[]]])
def test_odd_entries_elsewhere_in_an_abi_do_no_harm(entries: list[Any]) -> None:
    assert abi.choose([*entries, *ABI], "fee").name == "fee"
    assert [error.name for error in abi.errors([*entries, *ABI])] == ["TooLittle"]


@pytest.mark.parametrize(
    ("type", "given", "word"),
    [
        ("uint256", 41, 41),
        ("uint256", "41", 41),
        ("uint256", "0x29", 41),
        ("uint256", 41.0, 41),
        ("uint256", 1e18, 10**18),
        ("uint256", str(2**256 - 1), 2**256 - 1),
        ("int8", -128, 2**256 - 128),
        ("bool", True, 1),
        ("bool", "false", 0),
        ("address", OWNER, int(OWNER, 16)),
        ("address", OWNER.lower(), int(OWNER, 16)),
        ("bytes4", "0x01020304", 0x01020304 << 224),
    ],
)
def test_an_argument_becomes_the_word_that_it_stands_for(type: str, given: Any, word: int) -> None:
    assert arguments.encode(function(type), [given])[4:] == word.to_bytes(32, "big")


@pytest.mark.parametrize(
    ("type", "given", "problem"),
    [
        ("uint8", 256, "from 0 to 255"),
        ("uint256", -1, "from 0"),
        ("int8", 128, "from -128 to 127"),
        ("uint256", 1.5, "whole number"),
        ("uint256", 1e23, "whole number"),
        ("uint256", "1 ether", "whole number"),
        ("uint256", "9" * 5000, "whole number"),
        ("uint256", True, "whole number"),
        ("uint256", None, "whole number"),
        ("bool", 1, "true or false"),
        ("address", "vitalik.eth", "40 hexadecimal"),
        ("address", OWNER.replace("E", "e", 1), "EIP-55"),
        ("address", 5, "a string"),
        ("bytes4", "0x0102", "4 bytes, and has 2"),
        ("bytes", "0x012", "even number"),
        ("string", "\ud800", "an unpaired surrogate"),
        ("uint256[2]", [1], "2 items, and has 1"),
        ("uint256[]", "1,2", "an array"),
        ("uint256[]", [1, "x"], r"args\[0\]\[1\]"),
    ],
)
def test_an_argument_that_does_not_fit_is_refused_with_what_would(type: str, given: Any, problem: str) -> None:
    with pytest.raises(Refusal, match=problem):
        arguments.encode(function(type), [given])


@pytest.mark.parametrize("given", [[], [1, 2], None])
def test_the_number_of_arguments_is_checked(given: Any) -> None:
    with pytest.raises(Refusal, match=r"takes 1 argument \(uint256 p0\)"):
        arguments.encode(function("uint256"), given)


def test_arguments_are_an_array() -> None:
    with pytest.raises(Refusal, match="must be an array"):
        arguments.encode(function("uint256"), {"p0": 1})


def test_a_tuple_is_given_in_order_or_by_name() -> None:
    members = [{"name": "a", "type": "uint256"}, {"name": "b", "type": "bool[]"}]
    takes = function("tuple", components=members)
    assert takes.signature == "f((uint256,bool[]))"
    by_name = arguments.encode(takes, [{"b": [True], "a": "5"}])
    assert by_name == arguments.encode(takes, [[5, [True]]])
    with pytest.raises(Refusal, match="the members a, b"):
        arguments.encode(takes, [{"a": 5}])


def test_more_than_a_transaction_takes_is_refused() -> None:
    with pytest.raises(Refusal, match="131072"):
        arguments.encode(function("bytes"), ["0x" + "00" * 200_000])


@pytest.mark.parametrize(
    ("given", "value"), [(None, 0), ("", 0), ("0", 0), ("1000", 1000), (1000, 1000), (1e3, 1000), (" 7 ", 7)]
)
def test_value_is_wei(given: Any, value: int) -> None:
    assert arguments.wei(given) == value


@pytest.mark.parametrize("given", ["1.5", "1 ether", -1, "-1", 0.5, True, "0x10", [], {}, 2**256, "१"])
def test_a_value_that_is_no_decimal_wei_is_refused(given: Any) -> None:
    with pytest.raises(Refusal, match="decimal string"):
        arguments.wei(given)


def test_what_comes_back_is_json_with_numbers_as_strings() -> None:
    from eth_abi.abi import encode

    returns = function(outputs=("uint8", "bytes3", "address[]", "string", "bool"))
    data = encode(["uint8", "bytes3", "address[]", "string", "bool"], [7, b"abc", [OWNER], "héllo", True])
    assert arguments.decode(returns.outputs, data) == ["7", "0x616263", [OWNER], "héllo", True]
    assert arguments.decode((), b"") is None


def test_named_members_come_back_by_name() -> None:
    account = abi.choose(ABI, "accountOf").outputs
    data = int(OWNER, 16).to_bytes(32, "big") + (5).to_bytes(32, "big") + (1).to_bytes(32, "big")
    assert arguments.decode(account, data) == {"owner": OWNER, "balance": "5", "deposits": "1"}


@pytest.mark.parametrize("data", [b"", b"\xff" * 32, b"\xff" * 100, (2**255).to_bytes(32, "big") * 2])
def test_bytes_that_are_not_what_the_abi_says_are_refused(data: bytes) -> None:
    with pytest.raises(Refusal):
        arguments.decode(function(outputs=("uint256[]",)).outputs, data)


def test_pointers_that_all_lead_to_one_place_do_not_make_much_of_little() -> None:
    word = (32).to_bytes(32, "big")
    level = (100).to_bytes(32, "big") + (3200).to_bytes(32, "big") * 100
    with pytest.raises(Refusal, match="many times"):
        arguments.decode(function(outputs=("uint256[][][][]",)).outputs, word + level * 4 + bytes(3200))


def test_more_than_a_prompt_takes_is_not_read() -> None:
    with pytest.raises(Refusal, match="32768"):
        arguments.decode(function(outputs=("bytes",)).outputs, bytes(40_000))
