"""A few seconds of attack on a running Tryll server, and the proof that it would find something."""

from __future__ import annotations

import re

import pytest

from tests.fuzz import tryll_planted, tryll_server

pytestmark = [pytest.mark.process, pytest.mark.fuzz, pytest.mark.long]

#: Long enough that each way to attack has its turn.
SECONDS = 4
#: More than a server has that is looked at only when an attack is over.
ENOUGH_BYTES = 1 << 30


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
        ("leaks", r"more MiB of nothing after each attack: \d+, then \d+, then \d+"),
    ],
)
def test_a_planted_defect_is_found(
    defect: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if defect == "blocks":
        monkeypatch.setattr(tryll_server, "TURN_SECONDS", tryll_planted.BLOCKED_SECONDS * 0.9)
    if defect == "leaks":
        monkeypatch.setattr(tryll_server, "ATTACKED_BYTES", ENOUGH_BYTES)
    monkeypatch.setattr(tryll_server, "SETTLE_SECONDS", 1.0)
    program = ("-m", "tests.fuzz.tryll_planted", defect)
    # The attack ends with what it finds. Only who forgets its clients, or leaks, is looked at when the last has gone.
    seconds = str(SECONDS) if defect in {"forgets", "leaks"} else "60"
    code = tryll_server.main(["--seconds", seconds, "--seed", "1"], program)
    found = capsys.readouterr().out
    assert code == tryll_server.EXIT_FOUND, found
    assert re.search(f"finding: .*({told})", found, re.DOTALL), found


@pytest.mark.timeout(300)
def test_what_is_kept_once_is_no_leak(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sieges: list[int] = []
    besieged = tryll_server.besieged

    async def counted(watch: tryll_server.Watch, seconds: float, seed: int) -> str:
        sieges.append(seed)
        return await besieged(watch, seconds, seed)

    monkeypatch.setattr(tryll_server, "besieged", counted)
    monkeypatch.setattr(tryll_server, "ATTACKED_BYTES", ENOUGH_BYTES)
    code = tryll_server.main(["--seconds", str(SECONDS), "--seed", "1"], ("-m", "tests.fuzz.tryll_planted", "caches"))
    told = capsys.readouterr().out
    assert code == 0, told
    assert 1 < len(sieges) <= 1 + tryll_server.AGAIN
    assert set(sieges) == {1}
