from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import trunkline.demo
from tests.support.npm import modules
from tests.support.patience import PATIENCE_SECONDS
from trunkline.demo.chain.artefacts import artefact

FOLDER = Path(trunkline.demo.__file__).parent / "contracts"


@pytest.mark.slow
@pytest.mark.process
def test_the_bytecode_is_what_the_compiler_makes_of_the_source(tmp_path: Path) -> None:
    made = tmp_path / "Vault.json"
    command = ["node", str(FOLDER / "compile.js"), "Vault", str(made)]
    subprocess.run(
        command, check=True, timeout=PATIENCE_SECONDS, env=os.environ | {"NODE_PATH": str(modules("solc@0.8.30"))}
    )
    assert made.read_text() == (FOLDER / "Vault.json").read_text()


def test_a_contract_comes_with_its_source_and_what_was_made_of_it() -> None:
    vault = artefact("Vault")
    assert vault.bytecode.startswith("0x60")
    assert "contract Vault" in vault.source
    assert {entry.get("name") for entry in vault.abi} > {"inc", "deposit", "withdraw", "fee", "TooLittle"}
