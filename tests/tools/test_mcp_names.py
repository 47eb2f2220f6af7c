from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from trunkline.tools.mcp.names import Names

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def test_a_tool_keeps_its_name_where_that_is_free() -> None:
    assert Names({"Read"}).of("files", "list_files") == "list_files"


def test_a_name_that_is_taken_gets_the_servers_name_in_front() -> None:
    names = Names({"Read"})
    assert names.of("files", "Read") == "mcp__files__Read"
    assert names.of("one", "search") == "search"
    assert names.of("two", "search") == "mcp__two__search"


def test_a_tool_keeps_the_name_that_it_was_given() -> None:
    names = Names()
    given = [names.of("one", "search"), names.of("two", "search")]
    assert [names.of("one", "search"), names.of("two", "search")] == given


def test_what_services_refuse_is_replaced() -> None:
    assert Names().of("s", "git.log/all") == "git_log_all"
    assert Names({"a_b"}).of("my server", "a.b") == "mcp__my_server__a_b"


def test_long_names_are_cut_and_stay_apart() -> None:
    names = Names()
    first, second = names.of("s", "x" * 100 + "1"), names.of("s", "x" * 100 + "2")
    assert first != second
    assert len(first) == len(second) == 64
    assert Names().of("s", "x" * 100 + "2") == second


@given(st.lists(st.tuples(st.text(max_size=70), st.text(max_size=70)), unique=True))
def test_all_names_are_different_and_allowed(tools: list[tuple[str, str]]) -> None:
    names = Names({"Read", "Bash", "a"})
    given = [names.of(*tool) for tool in tools]
    assert len(set(given)) == len(tools)
    assert all(NAME.fullmatch(name) for name in given)
    assert not {"Read", "Bash", "a"} & set(given)
