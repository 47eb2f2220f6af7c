"""Skills, commands, output styles and memory in a conversation: its model is a fake, its tools are real."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.agents.coder.extending.test_skills import skill
from tests.agents.coder.test_conversation import Talk, notices, talking
from tests.agents.coder.test_history import Notebook
from tests.support.fake_model import call, calls, words
from trunkline.agents.coder.commands import LISTED_CHARS, MOST_LISTED
from trunkline.agents.coder.extending import memory
from trunkline.agents.coder.extending.skills import LIST_CHARS
from trunkline.base import programs
from trunkline.core.agent import Deny
from trunkline.core.approvals import Policy
from trunkline.core.events import ToolFinished, ToolRequested
from trunkline.core.faults import ConfigError, Mistyped
from trunkline.models.messages import Text, ToolResultBlock


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    place.mkdir()
    return place


def tools(talk: Talk) -> list[str]:
    return [tool.name for tool in talk.model.requests[-1].tools]


def system(talk: Talk) -> str:
    return talk.model.requests[-1].system


def said(talk: Talk) -> str:
    """The user's latest words, as the model has them."""
    return "".join(block.text for block in talk.model.asked[-1].content if isinstance(block, Text))


def results(talk: Talk) -> list[ToolResultBlock]:
    return [block for block in talk.model.asked[-1].content if isinstance(block, ToolResultBlock)]


def requests(talk: Talk) -> dict[str, ToolRequested]:
    return {event.name: event for event in talk.events if isinstance(event, ToolRequested)}


def home_skills(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the user's own skills, in a home that is the test's."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    return tmp_path / "user" / ".trunkline" / "skills"


async def test_a_skill_is_told_by_its_description_and_read_when_it_is_called(workspace: Path) -> None:
    folder = skill(workspace / ".claude/skills/release", "How to make a release.", "Say $ARGUMENTS three times.")
    asks = calls(call("Skill", skill="release", args="hooray"))
    async with talking(workspace, asks, words("ok")) as talk:
        await talk.say("Release it.")
        first = talk.model.requests[0]
        assert "- release: How to make a release." in first.system
        assert "three times" not in first.system
        assert [tool.name for tool in first.tools][-1] == "Skill"
        assert [(event.category, event.asking) for event in requests(talk).values()] == [("info", "allow")]
        (result,) = results(talk)
        assert str(folder) in result.text
        assert result.text.endswith("Say hooray three times.")
        assert [event.output for event in talk.events if isinstance(event, ToolFinished)] == [result.text]


async def test_without_skills_there_is_no_tool_for_them_and_changes_count_from_the_next_message(
    workspace: Path,
) -> None:
    async with talking(workspace, words("a"), words("b"), words("c"), words("d")) as talk:
        await talk.say("one")
        assert "Skill" not in tools(talk)
        skill(workspace / ".trunkline/skills/new", "Brand new.")
        await talk.say("two")
        assert "Skill" in tools(talk)
        assert "- new: Brand new." in system(talk)
        before = system(talk)
        await talk.say("three")
        assert system(talk) == before
        (workspace / ".trunkline/skills/new/SKILL.md").unlink()
        await talk.say("four")
        assert "Skill" not in tools(talk)


async def test_an_unknown_and_a_hidden_skill_are_errors_that_say_so(workspace: Path) -> None:
    skill(workspace / ".claude/skills/release")
    skill(workspace / ".claude/skills/secret", "For people.", disable_model_invocation="true")
    asks = calls(call("Skill", "t1", skill="relaese"), call("Skill", "t2", skill="secret"))
    async with talking(workspace, asks, words("ok")) as talk:
        await talk.say("Go.")
        assert "For people." not in talk.model.requests[0].system
        unknown, hidden = results(talk)
        assert unknown.is_error
        assert "Did you mean `release`?" in unknown.text
        assert hidden.is_error
        assert "for the user alone" in hidden.text


async def test_a_skill_that_did_not_fit_into_the_list_can_be_called(workspace: Path) -> None:
    for number in range(400):
        skill(workspace / f".claude/skills/s{number:03}", "long words " * 40, f"This is {number}.")
    async with talking(workspace, calls(call("Skill", skill="s399")), words("ok")) as talk:
        await talk.say("Go.")
        assert "s399" not in talk.model.requests[0].system
        told = talk.model.requests[0].system.partition("# Skills")[2]
        assert len(told) < LIST_CHARS
        assert results(talk)[0].text.endswith("This is 399.")


async def test_people_call_a_skill_by_its_name_hidden_or_not(workspace: Path) -> None:
    folder = skill(workspace / ".claude/skills/Tidy", "Tidies.", "Tidy $ARGUMENTS.", disable_model_invocation="true")
    async with talking(workspace, words("ok")) as talk:
        await talk.say("/tidy the attic")
        assert str(folder) in said(talk)
        assert said(talk).endswith("Tidy the attic.")
        assert talk.conversation.commands["/tidy"] == "Tidies."  # type: ignore[attr-defined]


@pytest.mark.parametrize("tool", ["Read", "Grep", "Glob"])
async def test_files_beside_a_skill_are_read_unasked_wherever_its_folder_is(
    workspace: Path, tmp_path: Path, tool: str
) -> None:
    host = skill(tmp_path / "host/linked")
    (host / "more.md").write_text("the details\n")
    (workspace / ".aionrs/skills").mkdir(parents=True)
    link = workspace / ".aionrs/skills/linked"
    link.symlink_to(host)
    args: dict[str, Any] = {
        "Read": {"file_path": str(link / "more.md")},
        "Grep": {"pattern": "details", "path": str(host)},
        "Glob": {"pattern": "*.md", "path": str(link)},
    }[tool]
    async with talking(workspace, calls(call(tool, **args)), words("ok")) as talk:
        await talk.say("Look.")
        assert not requests(talk)[tool].outside
        assert "more.md" in results(talk)[0].text or "the details" in results(talk)[0].text


async def test_only_reading_is_unasked_there_and_not_through_links_that_lead_out(
    workspace: Path, tmp_path: Path
) -> None:
    host = skill(tmp_path / "host/linked")
    (tmp_path / "diary.txt").write_text("dear diary\n")
    (host / "out.txt").symlink_to(tmp_path / "diary.txt")
    (workspace / ".claude/skills").mkdir(parents=True)
    (workspace / ".claude/skills/linked").symlink_to(host)
    for use in (
        call("Read", file_path=str(host / "out.txt")),
        call("Read", file_path=str(host / "../../diary.txt")),
        call("Write", file_path=str(host / "new.txt"), content="x"),
        call("Write", file_path=str(workspace / ".claude/skills/linked/SKILL.md"), content="x"),
    ):
        async with talking(workspace, calls(use), words("ok")) as talk:
            await talk.say("Go.", lambda request: Deny("no"))
            assert requests(talk)[use.name].outside
            assert not requests(talk)[use.name].asking


async def test_a_file_beside_a_skill_is_read_unasked_also_where_reading_is_asked_about(workspace: Path) -> None:
    folder = skill(workspace / ".claude/skills/release")
    (folder / "more.md").write_text("the details\n")
    (workspace / "notes.md").write_text("notes\n")
    uses = (call("Read", file_path=str(folder / "more.md")), call("Read", file_path="notes.md"))
    for use, verdict in zip(uses, ("allow", "ask"), strict=True):
        async with talking(workspace, calls(use), words("ok")) as talk:
            await talk.say("Look.")
            assert Policy(allow=()).judge(requests(talk)["Read"]).verdict == verdict


async def test_a_folder_that_holds_the_home_or_the_workspace_does_not_open_it(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "SKILL.md").write_text("---\nname: all\ndescription: All of it.\n---\nx\n")
    (tmp_path / "diary.txt").write_text("dear diary\n")
    (workspace / ".claude/skills").mkdir(parents=True)
    (workspace / ".claude/skills/all").symlink_to(tmp_path)
    async with talking(workspace, calls(call("Read", file_path=str(tmp_path / "diary.txt"))), words("ok")) as talk:
        await talk.say("Go.", lambda request: Deny("no"))
        assert requests(talk)["Read"].outside


@pytest.mark.parametrize(
    ("own", "trusted", "asking"),
    [(True, False, "allow"), (False, True, "allow"), (False, False, "")],
    ids=["user", "trusted", "untrusted"],
)
async def test_allowed_tools_count_for_the_turn_where_the_skill_is_trusted(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool, trusted: bool, asking: str
) -> None:
    users = home_skills(monkeypatch, tmp_path)
    skill((users if own else workspace / ".trunkline/skills") / "sweep", allowed_tools="Bash")
    bash = calls(call("Bash", "t2", command="true"))
    replies = (bash, words("not yet"), calls(call("Skill", skill="sweep")), bash, words("ok"), bash, words("later"))
    async with talking(workspace, *replies, trusted=trusted) as talk:
        await talk.say("Before.")
        assert requests(talk)["Bash"].asking == ""
        await talk.say("Sweep.")
        assert requests(talk)["Bash"].asking == asking
        await talk.say("After.")
        assert requests(talk)["Bash"].asking == ""


async def test_a_called_skill_allows_its_tools_too(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill(home_skills(monkeypatch, tmp_path) / "sweep", allowed_tools="Bash")
    bash = calls(call("Bash", "t2", command="true"))
    async with talking(workspace, bash, words("ok"), bash, words("ok")) as talk:
        await talk.say("/sweep")
        assert requests(talk)["Bash"].asking == "allow"
        await talk.say("And now?")
        assert requests(talk)["Bash"].asking == ""


async def test_sub_agents_have_the_skills_and_the_memory(workspace: Path) -> None:
    skill(workspace / ".claude/skills/release", "How to make a release.", "Like this.")
    keep(workspace, "The answer is 42.")
    spawns = calls(call("Spawn", tasks=[{"name": "one", "prompt": "Find out."}]))
    replies = (spawns, calls(call("Skill", skill="release")), words("done"), words("ok"))
    async with talking(workspace, *replies) as talk:
        await talk.say("Go.")
        sub = talk.model.requests[1]
        assert "- release: How to make a release." in sub.system
        assert "The answer is 42." in sub.system
        assert results_of(talk, 2)[0].text.endswith("Like this.")


def results_of(talk: Talk, number: int) -> list[ToolResultBlock]:
    last = talk.model.requests[number].messages[-1]
    return [block for block in last.content if isinstance(block, ToolResultBlock)]


async def test_broken_skills_are_told_once_and_the_conversation_goes_on(workspace: Path) -> None:
    for name in "abcde":
        folder = workspace / f".claude/skills/{name}"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("nothing")
    async with talking(workspace, words("ok"), words("ok")) as talk:
        (note,) = notices(await talk.say("one"))
        assert "and 2 more" in note
        assert f"`{programs.own_command()} skills check`" in note
        assert not notices(await talk.say("two"))


# Commands of one's own


def own_command(folder: Path, name: str, text: str) -> None:
    file = folder / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


async def test_a_command_of_ones_own_is_said_to_the_model_with_its_arguments(workspace: Path) -> None:
    commands = workspace / ".trunkline/commands"
    own_command(
        commands, "fix", "---\ndescription: Fixes.\nargument-hint: ISSUE WHO\n---\nFix $1 for $2. All: $ARGUMENTS."
    )
    own_command(commands, "git/commit", "Commit it.\n!`touch pwned`\n")
    async with talking(workspace, words("ok"), words("ok")) as talk:
        await talk.say("/fix 12 'Ada L'")
        assert said(talk) == "Fix 12 for Ada L. All: 12 'Ada L'."
        await talk.say("/git:commit now, don't wait")
        assert said(talk) == "Commit it.\n!`touch pwned`\n\nARGUMENTS: now, don't wait"
        (help_text,) = notices(await talk.say("/help"))
        assert "/fix ISSUE WHO  Fixes." in help_text
        assert "/git:commit [ARGUMENTS]  Commit it." in help_text
    assert not (workspace / "pwned").exists()


@pytest.mark.parametrize(
    ("name", "typed"), [("v1.2", "v1.2"), ("2nd", "2nd"), ("Größe", "größe"), ("a b", "A-b"), ("usr", "usr")]
)
async def test_whatever_a_skill_or_a_command_is_called_it_can_be_typed(workspace: Path, name: str, typed: str) -> None:
    skill(workspace / ".claude/skills/one", body="A skill.", name=name)
    own_command(workspace / ".claude/commands", f"{name}x", "A command.")
    async with talking(workspace, *[words("ok")] * 4) as talk:
        await talk.say(f"/{typed} now")
        assert "A skill." in said(talk)
        await talk.say(f"/{typed}x")
        assert said(talk) == "A command."
        # What is no command and does not look like one is a message.
        await talk.say("/index.html is broken")
        assert said(talk) == "/index.html is broken"
        await talk.say("/etc is a directory")
        assert said(talk) == "/etc is a directory"
        with pytest.raises(Mistyped):
            await talk.say("/nothing")


async def test_a_workspace_that_nobody_trusts_shows_no_other_files_by_links(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "diary.md").write_text("---\ndescription: Private.\n---\nDear diary.\n")
    for kind in ("commands", "output-styles"):
        folder = workspace / ".claude" / kind
        folder.mkdir(parents=True)
        (folder / "diary.md").symlink_to(tmp_path / "diary.md")
        (folder / "aaa.md").symlink_to("aaa.md")
        (folder / "aab").symlink_to("aab")
        (folder / "good.md").write_text("Good.")
    for trusted in (False, True):
        async with talking(workspace, words("ok"), words("ok"), trusted=trusted) as talk:
            await talk.say("/good")
            assert said(talk) == "Good."
            listed = notices(await talk.say("/help"))[0] + notices(await talk.say("/output-style"))[0]
            assert "good  Good." in listed
            assert ("Private." in listed, "diary  " in listed) == (trusted, trusted)


async def test_a_command_without_a_text_is_a_mistake(workspace: Path) -> None:
    own_command(workspace / ".claude/commands", "empty", "---\ndescription: Nothing.\n---\n")
    async with talking(workspace) as talk:
        with pytest.raises(ConfigError, match="no text"):
            await talk.say("/empty")


async def test_commands_of_the_user_come_first_and_ours_before_all(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = home_skills(monkeypatch, tmp_path).parent.parent / ".claude/commands"
    own_command(users, "both", "The user's.")
    own_command(workspace / ".claude/commands", "both", "The workspace's.")
    own_command(workspace / ".claude/commands", "clear", "Not this.")
    skill(workspace / ".claude/skills/memory", "Not this either.")
    async with talking(workspace, words("ok")) as talk:
        await talk.say("/both")
        assert said(talk) == "The user's."
        assert notices(await talk.say("/clear")) == ["The conversation was cleared. The log keeps it."]
        assert "Nothing is remembered" in notices(await talk.say("/memory"))[0]


async def test_the_allowed_tools_of_a_command_count_only_where_it_is_trusted(workspace: Path) -> None:
    own_command(workspace / ".claude/commands", "sweep", "---\nallowed-tools: Bash\n---\nSweep.")
    bash = calls(call("Bash", "t2", command="true"))
    for trusted, asking in ((True, "allow"), (False, "")):
        async with talking(workspace, bash, words("ok"), trusted=trusted) as talk:
            await talk.say("/sweep")
            assert requests(talk)["Bash"].asking == asking


async def test_a_command_that_has_gone_is_a_mistake_and_not_a_message(workspace: Path) -> None:
    own_command(workspace / ".claude/commands", "fix", "Fix it.")
    async with talking(workspace) as talk:
        assert "/fix" in talk.conversation.commands  # type: ignore[attr-defined]
        (workspace / ".claude/commands/fix.md").unlink()
        with pytest.raises(Mistyped, match="no command `/fix`"):
            await talk.say("/fix")


async def test_lists_for_people_are_bounded_however_many_there_are(workspace: Path) -> None:
    for number in range(MOST_LISTED + 20):
        skill(workspace / f".trunkline/skills/s{number:03}", "long words " * 80)
    async with talking(workspace) as talk:
        for command in ("/skills", "/help"):
            *lines, last = notices(await talk.say(command))[0].splitlines()
            assert len(lines) == MOST_LISTED
            assert max(map(len, lines)) <= LISTED_CHARS + 10
            assert last.startswith("and ")
        (shown,) = notices(await talk.say("/skills"))
        assert shown.endswith(f"and 20 more; `{programs.own_command()} skills list` lists them all")


async def test_commands_and_styles_that_cannot_be_used_are_told_once(workspace: Path, tmp_path: Path) -> None:
    commands = workspace / ".trunkline/commands"
    own_command(commands, "broken", "---\nallowed-tools: [x\n---\nText.")
    own_command(commands, "large", "x" * 200_000)
    (tmp_path / "diary.md").write_text("Dear diary.")
    (commands / "link.md").symlink_to(tmp_path / "diary.md")
    own_command(workspace / ".trunkline/output-styles", "broken", "---\nname: [x\n---\nText.")
    async with talking(workspace, words("a"), words("b"), words("c")) as talk:
        of_commands, of_styles = notices(await talk.say("one"))
        assert of_commands.startswith("Commands that cannot be used: ")
        for name in ("broken", "large", "link"):
            assert f"{commands / name}.md`: " in of_commands
        assert of_styles.startswith("Output styles that cannot be used: ")
        assert notices(await talk.say("two")) == []
        own_command(commands, "empty", "---\nno end")
        (news,) = notices(await talk.say("three"))
        assert "empty.md" in news
        assert "large.md" not in news


# Output styles


async def test_an_output_style_is_in_the_system_prompt_and_can_be_changed(workspace: Path) -> None:
    own_command(workspace / ".trunkline/output-styles", "pirate", "---\ndescription: Like a pirate.\n---\nSay arrr.")
    async with talking(workspace, words("ok"), words("ok"), words("ok"), output_style="concise") as talk:
        await talk.say("one")
        assert "# Output style: concise" in system(talk)
        (listed,) = notices(await talk.say("/output-style"))
        assert "`concise`" in listed
        assert "pirate  Like a pirate." in listed
        assert "`pirate`" in notices(await talk.say("/output-style Pirate"))[0]
        await talk.say("two")
        assert "# Output style: pirate\n\nSay arrr." in system(talk)
        with pytest.raises(Mistyped, match="Did you mean `concise`"):
            await talk.say("/output-style conzise")
        await talk.say("/output-style default")
        await talk.say("three")
        assert "# Output style" not in system(talk)


async def test_the_output_style_of_a_session_is_kept(workspace: Path) -> None:
    async with talking(workspace, words("ok")) as talk:
        # Before anything is said: the session is not kept yet.
        await talk.say("/output-style concise")
        assert "style" not in [record["role"] for record in talk.notebook.kept]
        await talk.say("one")
        notebook = Notebook(*talk.notebook.kept)
    async with talking(workspace, words("ok"), notebook=notebook, output_style="explanatory") as talk:
        await talk.say("two")
        assert "# Output style: concise" in system(talk)


async def test_an_output_style_that_there_is_not_is_told_and_the_default_is_used(workspace: Path) -> None:
    async with talking(workspace, words("ok"), output_style="baroque") as talk:
        (note,) = notices(await talk.say("one"))
        assert "no output style `baroque`" in note
        assert "`explanatory`" in note
        assert "# Output style" not in system(talk)


# Memory


def keep(workspace: Path, text: str) -> Path:
    file = Path(memory.file(str(workspace)))
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


async def test_the_system_prompt_names_the_memory_and_the_model_writes_it_as_an_edit_inside(workspace: Path) -> None:
    file = memory.file(str(workspace))
    beside = str(Path(file).parent / "build.md")
    replies = (
        calls(call("Write", "t1", file_path=file, content="- 2026-01-01: use tabs\n")),
        calls(call("Write", "t2", file_path=beside, content="long\n")),
        calls(call("Read", "t3", file_path=beside)),
        words("ok"),
    )
    async with talking(workspace, *replies) as talk:
        await talk.say("Remember.")
        assert file in talk.model.requests[0].system
        assert [(event.category, event.outside) for event in talk.events if isinstance(event, ToolRequested)] == [
            ("edit", False),
            ("edit", False),
            ("info", False),
        ]
        assert "use tabs" not in system(talk)
    places = (Path(file), Path(beside), Path(file).parent)
    assert [stat.S_IMODE(place.stat().st_mode) for place in places] == [0o600, 0o600, 0o700]
    async with talking(workspace, words("ok")) as talk:
        await talk.say("What do I use?")
        assert "- 2026-01-01: use tabs" in system(talk)
        assert re.search(r"last changed on \d{4}-\d\d-\d\d", system(talk))


async def test_other_memories_and_what_links_lead_to_are_outside(workspace: Path, tmp_path: Path) -> None:
    file = keep(workspace, "x\n")
    (file.parent / "link").symlink_to(tmp_path)
    for path in (file.parent.parent / "other/MEMORY.md", file.parent / "link/x.md", file.parent.parent / "x.md"):
        async with talking(workspace, calls(call("Write", file_path=str(path), content="x")), words("ok")) as talk:
            await talk.say("Write.", lambda request: Deny("no"))
            assert requests(talk)["Write"].outside


@pytest.mark.parametrize("length", [0, 300])
async def test_the_first_200_lines_are_told(workspace: Path, length: int) -> None:
    file = keep(workspace, "".join(f"{'x' * length}line {number}\n" for number in range(1, 301)))
    async with talking(workspace, words("ok")) as talk:
        await talk.say("hi")
        assert "line 200\n" in system(talk)
        assert "line 201" not in system(talk)
        assert f"Read `{file}`" in system(talk)


async def test_no_line_is_added_to_what_a_link_in_its_place_leads_to(workspace: Path, tmp_path: Path) -> None:
    file = keep(workspace, "")
    file.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("theirs\n")
    file.symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic links"):
        memory.ProjectMemory(str(workspace)).add("use tabs")
    assert elsewhere.read_text() == "theirs\n"


async def test_what_is_told_of_the_memory_has_an_end(workspace: Path) -> None:
    keep(workspace, f"line 1\n{'x' * memory.MOST_BYTES}\nline 3\n")
    async with talking(workspace, words("ok")) as talk:
        await talk.say("hi")
        assert "line 1\n[... the rest was cut." in system(talk)


async def test_people_add_lines_with_a_date_and_the_model_knows_at_once(workspace: Path) -> None:
    async with talking(workspace, words("ok"), words("ok")) as talk:
        await talk.say("one")
        (note,) = notices(await talk.say("/memory add  use tabs,\n  not spaces"))
        assert re.fullmatch(r"Remembered: - \d{4}-\d\d-\d\d: use tabs, not spaces", note)
        await talk.say("two")
        assert "use tabs, not spaces" in system(talk)
        (shown,) = notices(await talk.say("/memory"))
        assert "use tabs, not spaces" in shown
        assert memory.file(str(workspace)) in shown
        with pytest.raises(Mistyped, match="not understood"):
            await talk.say("/memory forget it")
        with pytest.raises(ConfigError, match="at most 2000 characters") as told:
            await talk.say(f"/memory add {'x' * 3000}")
        assert "TRUNKLINE_HOME" not in str(told.value)


async def test_no_secret_is_kept_or_told(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-very-secret-4711-0815"
    monkeypatch.setenv("SHOP_API_KEY", secret)
    file = keep(workspace, f"It was {secret} before.\n")
    skill(workspace / ".claude/skills/leak", f"Uses {secret}.", f"Use {secret}.")
    replies = (
        calls(call("Write", "t1", file_path=str(file.parent / "key.md"), content=f"key: {secret}\n")),
        calls(call("Read", "t2", file_path=str(file)), call("Skill", "t3", skill="leak")),
        calls(call("Edit", "t4", file_path=str(file), old_string="before", new_string=f"and is {secret}")),
        words("ok"),
        words("ok"),
    )
    async with talking(workspace, *replies) as talk:
        await talk.say("Go.")
        await talk.say(f"/memory add the key is {secret}")
        await talk.say("/leak")
        assert "It was [redacted] before." in talk.model.requests[0].system
        assert all(secret not in request.system for request in talk.model.requests)
        assert secret not in said(talk)
    assert secret not in (file.parent / "key.md").read_text()
    assert file.read_text().count(secret) == 1
    assert file.read_text().count("[redacted]") == 2


async def test_nothing_that_looks_like_a_secret_is_kept_or_told(workspace: Path) -> None:
    secret = "AKIAIOSFODNN7EXAMPLE"
    file = keep(workspace, f"Yesterday's was {secret}.\n")
    write = calls(call("Write", "t1", file_path=str(file.parent / "key.md"), content=f"Use {secret}.\n"))
    async with talking(workspace, write, words("ok")) as talk:
        await talk.say("Go.")
        await talk.say(f"/memory add the key is {secret}")
        assert "Yesterday's was [redacted]." in talk.model.requests[0].system
    assert (file.parent / "key.md").read_text() == "Use [redacted].\n"
    assert file.read_text().endswith(": the key is [redacted]\n")
