from __future__ import annotations

import subprocess
import sys

import pytest

from trunkline.base import recursion


def test_the_limit_is_afterwards_as_it_was_before() -> None:
    before = sys.getrecursionlimit()
    with recursion.kept():
        sys.setrecursionlimit(before + 100)
    assert sys.getrecursionlimit() == before


def test_the_limit_is_as_before_also_after_an_import_that_fails() -> None:
    before = sys.getrecursionlimit()

    def fail() -> None:
        with recursion.kept():
            sys.setrecursionlimit(before + 100)
            raise ImportError("no")

    with pytest.raises(ImportError, match="no"):
        fail()
    assert sys.getrecursionlimit() == before


def test_a_text_of_brackets_is_refused_also_after_a_wallet_was_used() -> None:
    # In a process of its own: what it guards against is the end of the process.
    code = """
from trunkline.base import jsontext
from trunkline.runner.chain.wallet import SpendingWallet
SpendingWallet("0x" + "11" * 32)
try:
    jsontext.loads(b"[" * 100_000)
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "nested deeper than 200 levels\n")
