"""What a log line is about."""

from __future__ import annotations

import asyncio

from trunkline.base import log_context


def known(logger: str = "trunkline.core.session") -> dict[str, str | int]:
    return log_context.known(logger)


def test_a_block_tells_its_own_besides_what_is_told_around_it() -> None:
    assert known() == {}
    with log_context.about(wire="tryll", session="s1"):
        with log_context.about(session="s2", turn=3):
            assert known() == {"wire": "tryll", "session": "s2", "turn": 3}
        assert known() == {"wire": "tryll", "session": "s1"}
    assert known() == {}


async def test_what_a_task_adds_holds_for_what_it_begins_and_for_nobody_else() -> None:
    async def child() -> dict[str, str | int]:
        return known()

    async def task() -> dict[str, str | int]:
        log_context.add(session="s1")
        log_context.add(turn=1)
        return await asyncio.create_task(child())

    assert await asyncio.create_task(task()) == {"session": "s1", "turn": 1}
    assert await asyncio.to_thread(known) == {}


def test_a_logger_of_a_wire_names_it_unless_somebody_knows_better() -> None:
    assert known("trunkline.wires.acp.peer") == {"wire": "acp"}
    with log_context.about(wire="mcp"):
        assert known("trunkline.wires.acp.peer") == {"wire": "mcp"}


def test_what_is_the_processs_own_is_told_of_every_line() -> None:
    log_context.of_process["node"] = "a"
    try:
        assert known() == {"node": "a"}
    finally:
        log_context.of_process.clear()
