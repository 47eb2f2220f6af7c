"""A few seconds of attack on a running Tryll server, and the proof that it would find something."""

from __future__ import annotations

import re

import pytest

from tests.fuzz import tryll_planted, tryll_server

pytestmark = [pytest.mark.process, pytest.mark.fuzz, pytest.mark.long]

#: Long enough that each way to attack has its turn.
SECONDS = 4


@pytest.mark.timeout(300)
def test_good_clients_hardly_notice_that_others_attack(capsys: pytest.CaptureFixture[str]) -> None:
    code = tryll_server.main(["--seconds", str(SECONDS), "--seed", "1"])
    told = capsys.readouterr().out
    assert code == 0, told
    done = {name: float(number) for name, number in re.findall(r"(\w+)=([\d.]+)", told)}
    assert done["connections"] > 500
    assert done["frames"] > 5000
    assert done["turns"] > 5


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("defect", "told"),
    [
        ("stumbles", "the server complains: .*IndexError"),
        ("crashes", "the server ended by itself, with 3"),
        ("grows", "the server grew from"),
        ("blocks", "a turn took"),
        ("forgets", "after the last has gone: HealthResponse"),
    ],
)
def test_a_planted_defect_is_found(
    defect: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if defect == "blocks":
        monkeypatch.setattr(tryll_server, "TURN_SECONDS", tryll_planted.BLOCKED_SECONDS * 0.9)
    monkeypatch.setattr(tryll_server, "SETTLE_SECONDS", 1.0)
    program = ("-m", "tests.fuzz.tryll_planted", defect)
    # The attack ends with what it finds. Only who has forgotten its clients is looked at when the last has gone.
    seconds = "4" if defect == "forgets" else "60"
    code = tryll_server.main(["--seconds", seconds, "--seed", "1"], program)
    found = capsys.readouterr().out
    assert code == tryll_server.EXIT_FOUND, found
    assert re.search(f"finding: .*({told})", found, re.DOTALL), found
