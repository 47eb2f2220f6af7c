"""What a chat is called for agents: another name for each, which may be a directory's."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.chat.chat_session import LONGEST_NAME, name_of
from trunkline.wires.agentproc.launch import leads_down


@pytest.mark.parametrize(
    ("platform", "chat", "name"),
    [
        ("telegram", "-1001234", "telegram--1001234"),
        ("telegram", "-1001234/7", "telegram--1001234%2F7"),
        ("matrix", "!room:example.org", "matrix-!room:example.org"),
        ("terminal", "..", "terminal-.."),
    ],
)
def test_a_chat_is_called_by_its_platform_and_its_id(platform: str, chat: str, name: str) -> None:
    assert name_of(platform, chat) == name


@given(st.text(), st.text())
def test_two_chats_never_share_a_name_and_each_can_be_a_directory(one: str, other: str) -> None:
    assert (name_of("x", one) == name_of("x", other)) is (one == other)
    assert leads_down("rooms/{{SESSION_NAME}}", {"SESSION_NAME": name_of("x", one)})


def test_a_long_name_is_shortened_and_stays_its_own() -> None:
    names = {name_of("x", "y" * 500 + end) for end in ("a", "b")}
    assert len(names) == 2
    assert all(len(os.fsencode(name)) <= LONGEST_NAME for name in names)
