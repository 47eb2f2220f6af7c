"""What may be done unasked, as flags and configuration say it together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trunkline.agents.coder.conversation_tools import ConversationTools
from trunkline.base.redact import Redactor
from trunkline.base.vocabulary import DEFAULT_ALLOW
from trunkline.cli import opening
from trunkline.core.approvals import BUILT_IN, Policy
from trunkline.core.faults import ConfigError
from trunkline.core.rules import NO_RULES


def coder(**settings: Any) -> Any:
    known = {
        "mode": None,
        "auto_approve": False,
        "allow": None,
        "allow_outside": False,
        "mcp_servers": (),
        "permissions": NO_RULES,
    }
    return SimpleNamespace(settings=SimpleNamespace(**(known | settings)))


def policy(allow: str | None = None, agent: Any = None, **more: Any) -> Policy:
    return opening.policy(allow, agent=agent or coder(), **more)


async def test_the_tools_that_are_known_are_those_that_there_are(tmp_path: Any) -> None:
    tools = ConversationTools(str(tmp_path), lambda event: None, {}, Redactor())
    tools.add_own(SimpleNamespace(), print, SimpleNamespace(is_on=False))
    # A search needs an engine, which is in no file here, and Skill a skill.
    assert {*tools.toolbox.offered, "WebSearch", "Skill"} == set(BUILT_IN)
    await tools.close()


def test_the_flag_adds_to_what_needs_no_approval() -> None:
    assert policy().allow == DEFAULT_ALLOW
    assert policy("Write, Edit").allow == (*DEFAULT_ALLOW, "Write", "Edit")
    assert policy("").allow == DEFAULT_ALLOW
    assert policy("Bash", coder(allow=("Read",))).allow == ("Read", "Bash")
    assert policy("Bash", coder(allow=())).allow == ("Bash",)
    assert policy("Anything", SimpleNamespace()).allow == (*DEFAULT_ALLOW, "Anything")


@pytest.mark.parametrize(
    ("name", "advice"), [("Bsh", "`Bash`?"), ("bash", "`Bash`?"), ("write", "`Write`?"), ("Teleport", "There are Read")]
)
def test_a_tool_that_there_is_not_is_an_error_with_advice(name: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=f"`--allow`: There is no tool `{name}`") as caught:
        policy(f"Read,{name}")
    assert advice in str(caught.value)


def test_tools_of_servers_are_known_only_later() -> None:
    for more in ({"agent": coder(mcp_servers=("s",))}, {"more_tools": True}):
        assert policy("query_database", **more).allow[-1] == "query_database"
        with pytest.raises(ConfigError, match="Did you mean `Bash`"):
            policy("bash", **more)
    assert policy("mcp__db__query").allow[-1] == "mcp__db__query"


def test_of_several_agents_each_has_to_be_ours_for_a_name_to_be_known_as_wrong() -> None:
    with pytest.raises(ConfigError, match="There is no tool `Bsh`"):
        opening.tools_named("Bsh", coder(), coder())
    assert opening.tools_named("Bsh", coder(), SimpleNamespace()) == ("Bsh",)
    assert opening.tools_named(" Read,,Bash ", coder()) == ("Read", "Bash")
    assert opening.tools_named("Anything") == ("Anything",)


def test_auto_approve_is_the_mode_to_begin_with() -> None:
    assert opening.first_mode("default", auto_approve=True) == "yolo"
    assert opening.first_mode("plan", auto_approve=True) == "plan"
    assert opening.first_mode(None, auto_approve=False) is None
    assert policy(agent=coder(mode="auto_edit")).mode == "auto_edit"


def test_what_reaches_outside_is_allowed_by_its_name_only_if_configured() -> None:
    for configured, verdict in ((False, "ask"), (True, "allow")):
        assert policy(agent=coder(allow_outside=configured)).verdict("Read", "info", outside=True) == verdict
