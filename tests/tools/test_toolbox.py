"""Tools are found by name and called safely."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from trunkline.base.redact import Masked, Redactor
from trunkline.core.events import Category
from trunkline.tools.files import FileMemory
from trunkline.tools.tool import Interrupted, Report, Tool, ToolOutput
from trunkline.tools.toolbox import NOT_AN_OBJECT, PROGRESS_CHARS, Toolbox, standard_tools
from trunkline.tools.truncation import truncate
from trunkline.tools.workspace import Workspace


def ignore(line: str) -> None:
    """Nobody listens."""


class Fake:
    """A tool that does what it is told."""

    name = "Fake"
    category: Category = "mcp"
    description = "Does nothing."
    parameters: Mapping[str, Any] = {"properties": {"word": {"type": "string"}}, "required": ["word"]}
    limit = 20
    concurrent = False
    aliases: Mapping[str, str] = {"w": "word"}

    def __init__(self, output: ToolOutput | BaseException | None = None) -> None:
        self._output = output

    def describe(self, args: Mapping[str, Any]) -> str:
        return f"Say {args['word']}"

    def outside(self, args: Mapping[str, Any]) -> bool:
        return bool(args["word"] == "away")

    async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
        report("working")
        if isinstance(self._output, BaseException):
            raise self._output
        return self._output or ToolOutput(args["word"])


def test_a_tool_is_what_the_protocol_says(tmp_path: Path) -> None:
    tools: list[Tool] = [Fake(), *standard_tools(Workspace(tmp_path), FileMemory())]
    assert [tool.name for tool in tools] == ["Fake", "Read", "Write", "Edit", "Glob", "Grep"]


async def test_what_a_stopped_tool_has_written_is_cleaned_and_cut_like_any_output() -> None:
    stopped = Interrupted(ToolOutput("the key is sk-secret-of-ours" + "." * 1000, status="error"))
    toolbox = Toolbox([Fake(stopped)], Redactor(["sk-secret-of-ours"]))
    with pytest.raises(Interrupted) as caught:
        await toolbox.run("Fake", {"word": "x"}, ignore)
    text = caught.value.output.text
    assert "sk-secret" not in text
    assert len(text) < 200


async def test_a_call_gets_its_arguments_and_reports() -> None:
    reports: list[str] = []
    output = await Toolbox([Fake()]).run("Fake", {"w": "hello", "x": 1}, reports.append)
    assert output == ToolOutput("hello")
    assert reports == ["working"]


async def test_what_cannot_be_called_is_an_error_for_the_model() -> None:
    box = Toolbox([Fake()])
    assert await box.run("Other", {}, ignore) == ToolOutput("Unknown tool: Other", status="error")
    assert await box.run("Fake", None, ignore) == ToolOutput(NOT_AN_OBJECT, status="error")
    assert await box.run("Fake", {}, ignore) == ToolOutput("Missing required parameter: word", status="error")
    assert (await box.run("Fake", {"word": []}, ignore)).text == "Parameter `word` must be a string."


async def test_a_tool_that_raises_is_an_error_for_the_model_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        output = await Toolbox([Fake(KeyError("lost"))]).run("Fake", {"word": "x"}, ignore)
    assert output == ToolOutput(truncate(Masked("Fake failed with KeyError: 'lost'"), Fake.limit), status="error")
    assert "Tool `Fake` raised" in caplog.text


SECRET = "sk-live-0123456789abcdef"


async def test_what_a_tool_raises_is_cleaned_before_it_is_cut() -> None:
    box = Toolbox([Fake(KeyError(SECRET))], Redactor([SECRET]))
    output = await box.run("Fake", {"word": "x"}, ignore)
    assert not any(SECRET[place : place + 4] in output.text for place in range(len(SECRET) - 3))


@pytest.mark.parametrize("before", [0, PROGRESS_CHARS - 5, PROGRESS_CHARS + 100])
async def test_progress_is_cleaned_before_it_is_cut(before: int) -> None:
    class Chatty(Fake):
        async def run(self, args: Mapping[str, Any], report: Report) -> ToolOutput:
            report(f"{'.' * before}{SECRET}{'.' * 500}")
            return ToolOutput("done")

    lines: list[str] = []
    await Toolbox([Chatty()], Redactor([SECRET])).run("Fake", {"word": "x"}, lines.append)
    assert "sk-" not in lines[0]
    assert len(lines[0]) < PROGRESS_CHARS + 10


def test_a_description_is_cleaned_before_it_is_cut() -> None:
    class Cutting(Fake):
        def describe(self, args: Mapping[str, Any]) -> str:
            return f"Does {args['word'][:10]}"

    box = Toolbox([Cutting()], Redactor([SECRET]))
    assert box.read("Fake", {"word": SECRET}).description == "Does [redacted]"


async def test_being_cancelled_passes_through() -> None:
    with pytest.raises(asyncio.CancelledError):
        await Toolbox([Fake(asyncio.CancelledError())]).run("Fake", {"word": "x"}, ignore)


async def test_long_results_lose_their_middle_for_the_model_and_for_people() -> None:
    long = "a" * 15 + "b" * 15
    output = await Toolbox([Fake(ToolOutput(long, shown=long, output_type="diff"))]).run("Fake", {"word": "x"}, ignore)
    assert output.text == output.shown == "a" * 10 + "\n\n... [truncated 10 chars] ...\n\n" + "b" * 10
    assert output.output_type == "diff"


async def test_secrets_are_taken_out_before_anything_is_cut() -> None:
    secret = "hunter22-and-more"
    for padding in range(30):
        box = Toolbox([Fake(ToolOutput("." * padding + secret + "." * 40))], Redactor([secret]))
        output = await box.run("Fake", {"word": ""}, ignore)
        assert "hunt" not in output.text
        assert "more" not in output.text


async def test_a_redactor_that_learns_its_first_secret_later_is_the_same_one() -> None:
    redactor = Redactor()
    box = Toolbox([Fake(ToolOutput(f"it is {SECRET}"))], redactor)
    redactor.learn([SECRET])
    assert (await box.run("Fake", {"word": "x"}, ignore)).text == "it is [redacted]"


async def test_pictures_for_people_are_not_cut() -> None:
    picture = ToolOutput("ok", shown="x" * 100, output_type="image")
    assert await Toolbox([Fake(picture)]).run("Fake", {"word": "x"}, ignore) == picture


def test_two_tools_cannot_have_one_name_and_one_that_is_gone_leaves_it_free() -> None:
    box = Toolbox([Fake()])
    with pytest.raises(ValueError, match="`Fake`"):
        box.add(Fake())
    box.remove("Fake")
    box.remove("Fake")
    assert box.find("Fake") is None
    again = Fake()
    box.add(again)
    assert box.names == ("Fake",)
    assert box.find("Fake") is again


def test_what_is_said_about_a_call() -> None:
    box = Toolbox([Fake()])
    assert box.specs() == (("Fake", "Does nothing.", Fake.parameters),)
    reading = box.read("Fake", {"w": "hello", "extra": 1})
    assert (reading.args, reading.description, reading.outside) == ({"word": "hello"}, "Say hello", False)
    assert box.read("Fake", {"word": "away"}).outside
    assert reading.tool is box.find("Fake")


def test_where_a_tool_cannot_tell_somebody_must_decide() -> None:
    class Vague(Fake):
        parameters: Mapping[str, Any] = {}

    reading = Toolbox([Vague()]).read("Fake", {})
    assert (reading.description, reading.outside) == ("Fake", True)


def test_every_standard_tool_has_one_line_about_strange_arguments(tmp_path: Path) -> None:
    box = Toolbox(standard_tools(Workspace(tmp_path), FileMemory()))
    strange = "a\0b\ud800\n["
    for name in box.names:
        tool = box.find(name)
        assert tool is not None
        reading = box.read(name, dict.fromkeys(tool.parameters["required"], strange))
        assert "\n" not in reading.description
        assert reading.outside is False


@pytest.mark.process
def test_importing_the_tools_stays_cheap() -> None:
    # What somebody else has imported before, such as a measurement of coverage, is not our doing.
    code = "import sys; a = set(sys.modules); import trunkline.tools.toolbox; print(*set(sys.modules) - a)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pypdf", "difflib", "hashlib", "tempfile", "fnmatch", "shutil", "glob", "zlib", "pathlib"}
    assert "trunkline.tools.read" in ran.stdout.split()
    assert not heavy & set(ran.stdout.split())
