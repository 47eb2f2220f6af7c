"""Tools of which a model knows the names, and `ToolSearch`, which brings them."""

from __future__ import annotations

import json

from tests.support.fake_model import Recorded
from trunkline.tools.tool_search import MOST_FOUND, MOST_LISTED_CHARS, MOST_SELECTED, ToolSearch
from trunkline.tools.toolbox import Toolbox


def tool(name: str, description: str = "A tool for tests.") -> Recorded:
    made = Recorded(name)
    made.description = description
    made.parameters = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    return made


def boxed(*tools: Recorded) -> Toolbox:
    box = Toolbox(tools)
    box.defer(each.name for each in tools)
    box.add(ToolSearch(tools, box.bring))
    return box


async def found(box: Toolbox, query: str) -> list[str]:
    output = await box.run("ToolSearch", {"query": query}, print)
    return [each["name"] for each in json.loads(output.text)] if output.status == "success" else []


async def test_only_names_are_told_until_a_tool_is_brought() -> None:
    box = boxed(tool("send_mail"), tool("read_mail"))
    assert [spec[0] for spec in box.specs()] == ["ToolSearch"]
    ((_, description, _),) = box.specs()
    assert "send_mail, read_mail" in description
    assert await found(box, "select:read_mail") == ["read_mail"]
    assert [spec[0] for spec in box.specs()] == ["read_mail", "ToolSearch"]
    # The words stay, so that a provider need not read them again.
    assert box.specs()[-1][1] == description


async def test_words_are_found_in_names_before_descriptions() -> None:
    box = boxed(tool("post", "Sends mail."), tool("mail_send", "Does it."), tool("clock", "Tells the time."))
    assert await found(box, "send mail please") == ["mail_send", "post"]
    assert await found(box, "TIME") == ["clock"]


async def test_a_search_without_a_find_says_so() -> None:
    output = await boxed(tool("clock")).run("ToolSearch", {"query": "zebra"}, print)
    assert (output.status, output.text) == ("error", 'No deferred tools matching "zebra" found.')


async def test_exact_names_are_brought_and_others_named() -> None:
    box = boxed(tool("a"), tool("b"))
    output = await box.run("ToolSearch", {"query": "select: a, nothing"}, print)
    assert output.status == "success"
    assert "`nothing`" in output.text
    assert not box.hides("a")
    assert box.hides("b")
    for query in ("select:", "select:nothing", "select:" + "a," * (MOST_SELECTED + 1)):
        assert (await box.run("ToolSearch", {"query": query}, print)).status == "error"


async def test_a_search_brings_no_more_than_can_be_read() -> None:
    assert len(await found(boxed(*(tool(f"owl_{number}") for number in range(30))), "owl")) == MOST_FOUND


def test_a_list_that_is_too_long_says_how_many_are_left_out() -> None:
    search = ToolSearch([tool(f"{'x' * 50}{number}") for number in range(1000)], lambda names: None)
    assert len(search.description) < MOST_LISTED_CHARS + 500
    assert "more that a search finds" in search.description


async def test_a_tool_that_was_not_brought_works_if_the_arguments_fit() -> None:
    wanted = tool("clock")
    box = boxed(wanted)
    assert (await box.run("clock", {"word": "now"}, print)).status == "success"
    for args in ({}, {"word": 3}, {"word": "now", "zone": "UTC"}):
        output = await box.run("clock", args, print)
        assert output.status == "error"
        assert "ToolSearch with `select:clock`" in output.text
    assert wanted.calls == [{"word": "now"}]
    box.bring(["clock"])
    assert "ToolSearch" not in (await box.run("clock", {}, print)).text
