"""The communication log."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from trunkline.runner import commlog
from trunkline.runner.commlog import CommunicationLog, Stamp

STAMP = Stamp("cagent", 4318, "runner-1-ab", 77)
DAY = 24 * 60 * 60


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_entry_has_its_members_each_type_once_and_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "new" / "log.jsonl"
    log = CommunicationLog(str(path), STAMP, redact=lambda text: text.replace("hidden", "[redacted]"))
    log.append("runner_to_agent", [" tx", "comment", "tx", ""], "two\nlines, hidden \ud800")
    (entry,) = read(path)
    assert list(entry) == [
        "id", "createdAt", "direction", "actionTypes", "instanceId", "port", "pid", "agentId", "content"
    ]  # fmt: skip
    assert entry["actionTypes"] == ["tx", "comment"]
    assert (entry["instanceId"], entry["port"], entry["pid"], entry["agentId"]) == ("runner-1-ab", 4318, 77, "cagent")
    assert entry["content"] == "two\nlines, [redacted] \ud800"
    assert str(entry["createdAt"]).endswith("Z")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_of_another_day_and_a_full_one_are_moved_aside_and_old_ones_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    (tmp_path / "log.2020-01-01.jsonl").write_text("")
    (tmp_path / "other.2020-01-01.jsonl").write_text("")
    for name in ("log.2020-01-01.jsonl", "other.2020-01-01.jsonl"):
        os.utime(tmp_path / name, (0, 0))
    log = CommunicationLog(str(path), STAMP)
    log.append("agent_to_runner", [], "yesterday")
    yesterday = time.time() - DAY
    os.utime(path, (yesterday, yesterday))
    log.append("agent_to_runner", [], "today")
    monkeypatch.setattr(commlog, "MAX_FILE_BYTES", 300)
    log.append("agent_to_runner", [], "again")
    log.append("agent_to_runner", [], "last")

    today, before = (time.strftime("%Y-%m-%d", time.gmtime(at)) for at in (time.time(), yesterday))
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(
        [f"log.{before}.jsonl", f"log.{today}.jsonl", f"log.{today}.2.jsonl", "log.jsonl", "other.2020-01-01.jsonl"]
    )
    assert [entry["content"] for entry in read(path)] == ["last"]


def test_lines_of_several_writers_are_whole_while_files_are_moved_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commlog, "MAX_FILE_BYTES", 4000)
    logs = [CommunicationLog(str(tmp_path / "log.jsonl"), STAMP) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: logs[number % 4].append("agent_to_runner", [], f"n{number}"), range(80)))
    found = [entry["content"] for file in tmp_path.iterdir() for entry in read(file)]
    assert sorted(map(str, found)) == sorted(f"n{number}" for number in range(80))


def test_a_log_that_cannot_be_written_is_reported_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    log = CommunicationLog(str(tmp_path / "file" / "log.jsonl"), STAMP)
    assert log.append("agent_to_runner", [], "one")["content"] == "one"
    log.append("agent_to_runner", [], "two")
    assert len(caplog.records) == 1
    os.mkfifo(tmp_path / "pipe")
    CommunicationLog(str(tmp_path / "pipe"), STAMP).append("agent_to_runner", [], "nobody reads")
    assert len(caplog.records) == 2


def test_the_last_entries_can_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "log.jsonl")
    assert commlog.tail(path, 5) == []
    log = CommunicationLog(path, STAMP)
    for number in range(20):
        log.append("agent_to_runner", [], f"n{number}")
    assert [entry["content"] for entry in commlog.tail(path, 2)] == ["n18", "n19"]
    assert commlog.tail(path, 0) == []
    monkeypatch.setattr(commlog, "TAIL_BYTES", 500)
    assert [entry["content"] for entry in commlog.tail(path, 50)] == ["n18", "n19"]
