"""What a hook prints, and what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.agents.coder.hooks import Hooks, HookVerdict
from trunkline.agents.coder.settings_hooks import Hook
from trunkline.core.events import Event, Notice

pytestmark = pytest.mark.process

NO = r"{\"decision\": \"deny\", \"reason\": \"late\"}"


async def answered(workspace: Path, printed: str) -> tuple[HookVerdict, str]:
    """What a hook decides that prints this, and what people are told."""
    notices: list[str] = []

    async def say(event: Event) -> None:
        assert isinstance(event, Notice)
        notices.append(event.message)

    hooks = Hooks({"pre_tool_use": (Hook(f'printf "{printed}"'),)}, workspace=str(workspace))
    return await hooks.run("pre_tool_use", say, "Bash", tool_input={}), "".join(notices)


@pytest.mark.parametrize("mark", ["", r"\357\273\277", r"\n  "])
async def test_an_object_is_read_also_behind_a_byte_order_mark(tmp_path: Path, mark: str) -> None:
    assert await answered(tmp_path, mark + NO) == (HookVerdict("deny", "late"), "")


@pytest.mark.parametrize("printed", [f"checked 3 files\\n{NO}", f"ok: {NO}\\n"])
async def test_people_are_told_of_words_before_an_object(tmp_path: Path, printed: str) -> None:
    verdict, told = await answered(tmp_path, printed)
    assert verdict == HookVerdict()
    assert "printed something before its JSON object" in told


@pytest.mark.parametrize("printed", ["", "all is well", "set {a, b}", "[1]"])
async def test_other_words_are_nobodys_business(tmp_path: Path, printed: str) -> None:
    assert await answered(tmp_path, printed) == (HookVerdict(), "")
