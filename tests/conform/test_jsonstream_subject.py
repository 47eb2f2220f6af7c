"""The kit's end of the pipes, with programs that do not speak the protocol at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.conform import process
from trunkline.conform.jsonstream.stage import is_ready
from trunkline.conform.jsonstream.subject import SeenEvent, Subject
from trunkline.conform.kit import Broken, NotExercised
from trunkline.conform.record import Record

pytestmark = pytest.mark.process


async def started(folder: Path, program: str) -> Subject:
    argv = (sys.executable, "-S", "-c", program)
    return await Subject.start(argv, str(folder), os.environ, Record("test", argv))


async def test_lines_that_are_no_events_are_recorded_and_passed_over(tmp_path: Path) -> None:
    agent = await started(tmp_path, r"""print('noise\n[1]\n{"type":5}\n{"type":"ready"}')""")
    found = await agent.expect("`ready`", is_ready, PATIENCE_SECONDS)
    await agent.close()
    assert [event.type for event in found] == ["ready"]
    assert [entry.line for entry in agent.record.entries][:3] == [b"noise", b"[1]", b'{"type":5}']


async def test_what_does_not_come_in_time_is_missed(tmp_path: Path) -> None:
    agent = await started(tmp_path, "import time; time.sleep(600)")
    with pytest.raises(Broken, match=r"no `ready` within 0.05 s"):
        await agent.expect("`ready`", is_ready, 0.05)
    with pytest.raises(NotExercised, match=r"no `ready` within 0.05 s"):
        await agent.hope("`ready`", is_ready, 0.05)
    await agent.close()


async def test_a_program_that_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    agent = await started(tmp_path, "import sys; sys.exit('out of luck')")
    with pytest.raises(Broken, match=r"exited with 1 before `ready` \(it said: out of luck\)"):
        await agent.expect("`ready`", is_ready, 600)
    await agent.close()


async def test_a_program_that_ignores_everything_is_ended_in_the_end(tmp_path: Path) -> None:
    ignore = (
        'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(\'{"type":"ready"}\', flush=True)'
    )
    agent = await started(tmp_path, f"{ignore}; time.sleep(600)")
    await agent.expect("`ready`", is_ready, PATIENCE_SECONDS)
    await agent.close()
    assert agent.record.was_killed
    assert agent.record.exit_code == 137


async def test_a_flood_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_OUTPUT", 1_000_000)
    agent = await started(tmp_path, "while True: print('x' * 1000)")
    with pytest.raises(Broken, match=r"closed its standard output before `ready`"):
        await agent.expect("`ready`", is_ready, 20)
    await agent.close()
    assert len(agent.record.entries) < 2000


async def test_a_line_without_its_end_is_kept_apart(tmp_path: Path) -> None:
    agent = await started(tmp_path, """import sys; sys.stdout.write('{"type":"ready"}\\n{"type"')""")
    assert await agent.exit_code(10) == 0
    await agent.close()
    assert agent.record.unfinished == b'{"type"'


async def test_what_the_program_does_not_read_does_not_block(tmp_path: Path) -> None:
    agent = await started(tmp_path, 'import os; os.close(0); print(\'{"type":"ready"}\', flush=True); input()')
    await agent.expect("`ready`", is_ready, PATIENCE_SECONDS)
    await agent.write(b"x" * 3_000_000 + b"\n")
    await agent.close()


def test_members_of_what_is_no_object_are_none() -> None:
    event = SeenEvent(0.0, {"type": "tool_request", "tool": 5, "msg_id": 5, "call_id": None})
    assert (event.member("tool", "name"), event.msg_id, event.call_id) == (None, None, None)
