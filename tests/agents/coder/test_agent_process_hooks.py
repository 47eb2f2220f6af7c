"""Hooks from outside: what they are told, what their exit codes and words decide, and what the model hears of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.coder.test_agent_process_mcp import add
from tests.support.agent_process import gone
from tests.support.coding import calls, coding, eventually, of, says, text_of
from trunkline.agents.coder import words
from trunkline.agents.coder.settings_hooks import read_hook
from trunkline.base.config import user_file

pytestmark = pytest.mark.process

#: Keeps what it was told, one object a line.
KEEP = "cat >> told; echo >> told"


def configured(text: str) -> None:
    path = Path(user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def hook(event: str, command: str, **more: Any) -> str:
    members = {"command": command, **more}
    return f"[[hooks.{event}]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in members.items())


def told(workspace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (workspace / "told").read_text().splitlines() if line]


def bash(command: str) -> Any:
    return calls(("Bash", {"command": command}))


def infos(lines: list[dict[str, Any]]) -> str:
    return "\n".join(line["message"] for line in of(lines, "info"))


def test_a_hook_reads_one_object_at_each_moment(tmp_path: Path) -> None:
    moments = ("session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "stop", "session_end")
    configured("".join(hook(event, KEEP) for event in moments))
    with coding(tmp_path, bash("echo hello"), says("Done.")) as agent:
        agent.ask("Run it.")
        assert agent.end() == 0
    seen = told(tmp_path)
    assert [each["event"] for each in seen] == list(moments)
    assert {each["workspace"] for each in seen} == {str(tmp_path)}
    assert len({each["session_id"] for each in seen}) == 1
    assert seen[0]["session_id"]
    assert seen[1]["prompt"] == "Run it."
    assert (seen[2]["tool_name"], seen[2]["tool_input"]) == ("Bash", {"command": "echo hello"})
    assert "hello" in seen[3]["tool_output"]
    assert set(seen[4]) == {"event", "session_id", "workspace"}


def test_exit_code_2_denies_the_call_with_the_words_on_standard_error(tmp_path: Path) -> None:
    configured(hook("pre_tool_use", "echo 'never on main' >&2; exit 2", matcher="Bash|Edit"))
    with coding(tmp_path, bash("touch made"), says("I see."), flags=("--no-session", "--mode", "yolo")) as agent:
        lines = agent.ask("Run it.")
        assert not of(lines, "tool_request")
        assert not of(lines, "tool_running")
        (result,) = agent.asked.results
        assert "never on main" in result
        assert text_of(lines) == "I see."
    assert not (tmp_path / "made").exists()


def test_allow_counts_as_an_allow_rule_and_ask_asks_even_in_yolo(tmp_path: Path) -> None:
    configured(hook("pre_tool_use", """echo '{"decision": "allow"}'""", matcher="Bash"))
    with coding(tmp_path, bash("touch made"), says("Done.")) as agent:
        assert not of(agent.ask("Run it."), "tool_request")
    assert (tmp_path / "made").exists()
    configured(
        hook("pre_tool_use", """echo '{"decision": "allow"}'""")
        + hook("pre_tool_use", """echo '{"decision": "ask", "reason": "it is late"}'""", matcher="*")
    )
    with coding(tmp_path, bash("touch more"), says("Done."), flags=("--no-session", "--mode", "yolo")) as agent:
        agent.message("Run it.")
        assert "it is late" in agent.request()["tool"]["description"]
        assert not (tmp_path / "more").exists()


def test_changed_arguments_are_what_is_asked_judged_and_run_and_pass_from_hook_to_hook(tmp_path: Path) -> None:
    configured(
        hook("pre_tool_use", """echo '{"tool_input": {"command": "touch first"}}'""")
        + hook("pre_tool_use", 'cat > told; echo \'{"tool_input": {"command": "touch second"}}\'')
    )
    with coding(tmp_path, bash("touch asked"), says("Done.")) as agent:
        agent.message("Run it.")
        wanted = agent.request()
        assert wanted["tool"]["args"] == {"command": "touch second"}
        assert wanted["tool"]["description"] == "Execute: touch second"
        agent.approve(wanted)
        agent.see_out()
    assert told(tmp_path)[0]["tool_input"] == {"command": "touch first"}
    assert [name for name in ("asked", "first", "second") if (tmp_path / name).exists()] == ["second"]


def test_changed_arguments_that_lead_outside_are_asked_about_and_bad_ones_are_an_error(tmp_path: Path) -> None:
    configured(
        hook("pre_tool_use", """echo '{"tool_input": {"file_path": "/etc/hostname"}}'""", matcher="Read")
        + hook("pre_tool_use", """echo '{"tool_input": {}}'""", matcher="Bash")
    )
    steps = (calls(("Read", {"file_path": "a.txt"})), bash("touch made"), says("Done."))
    with coding(tmp_path, *steps) as agent:
        agent.message("Go.")
        wanted = agent.request()
        assert wanted["tool"]["args"] == {"file_path": "/etc/hostname"}
        agent.deny(wanted, "no")
        agent.see_out()
        assert agent.asked.results[-1] == "Missing required parameter: command"


def test_a_hook_that_fails_is_told_and_work_goes_on(tmp_path: Path) -> None:
    configured(
        hook("pre_tool_use", "echo oops >&2; exit 1", name="broken")
        + hook("pre_tool_use", "sleep 300 & echo $! > pid; wait", timeout=2.5)
        + hook("pre_tool_use", """echo '{"decision": "perhaps"}'""")
        + hook("pre_tool_use", "echo '{not json'")
        + hook("pre_tool_use", "echo plain words")
    )
    with coding(tmp_path, bash("touch made"), says("Done.")) as agent:
        lines = agent.ask("Run it.")
        notices = infos(lines)
        assert "The hook `broken` (pre_tool_use) exited with 1: oops. Work goes on without it." in notices
        assert "did not end within 2.5 s, and was stopped" in notices
        assert '"perhaps"' in notices
        assert notices.count("Work goes on") == 4
        assert of(lines, "tool_request")
        assert gone(int((tmp_path / "pid").read_text()))
    assert (tmp_path / "made").exists()


def test_context_goes_to_the_model_with_the_message_and_the_result_and_to_nobody_else(tmp_path: Path) -> None:
    configured(
        "".join(
            hook(event, f"""echo '{{"context": "words at {event}"}}'""")
            for event in ("session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use")
        )
    )
    with coding(tmp_path, bash("echo out"), says("Done."), says("Again.")) as agent:
        lines = agent.ask("Run it.")
        assert agent.asked.words.startswith("Run it.")
        for event in ("session_start", "user_prompt_submit"):
            assert f"{words.HOOK_SAYS}\nwords at {event}" in agent.asked.words
        (result,) = agent.asked.results
        assert result.index("out") < result.index("words at pre_tool_use") < result.index("words at post_tool_use")
        (shown,) = of(lines, "tool_result")
        assert "words at" not in shown["output"]
        agent.ask("And again.", "m2")
        assert "session_start" not in agent.asked.words


def test_a_denied_message_never_reaches_the_model(tmp_path: Path) -> None:
    configured(hook("user_prompt_submit", "grep -q secret && { echo 'not that word' >&2; exit 2; }; exit 0"))
    with coding(tmp_path, says("Hello.")) as agent:
        lines = agent.ask("A secret.")
        assert lines[-1]["type"] == "stream_end"
        assert "not that word" in of(lines, "error")[0]["error"]["message"]
        assert not agent.requests
        assert text_of(agent.ask("Hi.", "m2")) == "Hello."
        assert [each.text for each in agent.asked.said] == ["Hi."]


def test_stop_runs_once_and_its_no_lets_the_model_go_on_once(tmp_path: Path) -> None:
    configured(hook("stop", "echo run >> runs; echo 'run the tests first' >&2; exit 2"))
    with coding(tmp_path, says("Ready."), says("Tested.")) as agent:
        lines = agent.ask("Do it.")
        assert text_of(lines) == "Ready.Tested."
        assert agent.asked.words == f"{words.HOOK_GOES_ON} run the tests first"
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_no_after_the_tool_is_an_error_beside_its_result(tmp_path: Path) -> None:
    configured(hook("post_tool_use", """echo '{"decision": "deny", "reason": "not formatted"}'""", matcher="Bash"))
    with coding(tmp_path, bash("echo out"), says("Done."), provider="anthropic") as agent:
        lines = agent.ask("Run it.")
        (result,) = agent.asked.results
        assert "out" in result
        assert result.endswith(f"{words.HOOK_OBJECTS}\nnot formatted")
        assert agent.requests[-1].json["messages"][-1]["content"][0]["is_error"]
        assert of(lines, "tool_result")[0]["status"] == "success"
        assert "not formatted" in infos(lines)


def test_a_no_after_the_tool_that_gives_no_reason_says_so(tmp_path: Path) -> None:
    configured(hook("post_tool_use", "exit 2", matcher="Bash"))
    with coding(tmp_path, bash("echo out"), says("Done.")) as agent:
        lines = agent.ask("Run it.")
        assert agent.asked.results[0].endswith(f"{words.HOOK_OBJECTS}\nit does not say why")
        assert "A hook objects to what Bash did: it does not say why" in infos(lines)


def test_a_compaction_can_be_denied_or_told_more(tmp_path: Path) -> None:
    configured(
        hook("pre_compact", "test -e no && { echo 'keep it all' >&2; exit 2; }; echo '{\"context\": \"names!\"}'")
    )
    with coding(tmp_path, says("One."), says("In short.")) as agent:
        agent.ask("Hello.")
        (tmp_path / "no").touch()
        assert "keep it all" in infos(agent.ask("/compact", "m2"))
        assert len(agent.requests) == 1
        (tmp_path / "no").unlink()
        agent.ask("/compact", "m3")
        assert agent.asked.words.endswith("names!")


def test_matchers_are_names_or_expressions_for_the_whole_name(tmp_path: Path) -> None:
    configured(
        hook("pre_tool_use", "echo one >> ran", matcher="Bas")
        + hook("pre_tool_use", "echo two >> ran", matcher="Edit|Bash")
        + hook("pre_tool_use", "echo three >> ran", matcher="B.*")
        + hook("pre_tool_use", "echo four >> ran", matcher="mcp__.*")
        + hook("pre_tool_use", "echo five >> ran", matcher=" Edit | Bash ")
    )
    with coding(tmp_path, bash("true"), says("Done.")) as agent:
        agent.ask("Run it.")
    assert (tmp_path / "ran").read_text() == "two\nthree\nfive\n"


def test_one_that_cannot_be_read_holds_for_every_call_and_elsewhere_for_none(tmp_path: Path) -> None:
    """What would deny must not fail to because of a slip."""
    configured(
        hook("pre_tool_use", "echo 'never' >&2; exit 2", matcher="Bash(")
        + hook("post_tool_use", "echo after >> ran", matcher="Bash(")
    )
    with coding(tmp_path, bash("touch ran"), says("Done.")) as agent:
        notices = infos(agent.ask("Run it."))
    assert "`hooks.pre_tool_use`, number 1: Its `matcher` is not a valid regular expression" in notices
    assert "This hook is run for every tool." in notices
    assert "This hook is not run." in notices
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("event", "matcher", "part", "meant"),
    [
        ("pre_tool_use", "bash", "bash", "Bash"),
        ("pre_tool_use", "Edit|write", "write", "Write"),
        ("pre_tool_use", "Bash(touch:*)", "Bash(touch:*)", "Bash"),
        ("post_tool_use", "Bsh", "Bsh", "Bash"),
        ("session_start", "Startup", "Startup", "startup"),
    ],
)
def test_a_matcher_that_matches_nothing_is_told_with_what_to_write(
    event: str, matcher: str, part: str, meant: str
) -> None:
    table = {"matcher": matcher, "command": "true"}
    assert read_hook(event, table)[1] == [f"Its `matcher` has `{part}`, which matches nothing: write `{meant}`."]


@pytest.mark.parametrize("matcher", ["Bash", "B.*", "mcp__.*", "echo", "(Edit|Write)", "*", "", "Web.*|mcp__x"])
def test_one_that_matches_something_or_may_is_not_told(matcher: str) -> None:
    assert read_hook("pre_tool_use", {"matcher": matcher, "command": "true"})[1] == []


@pytest.mark.parametrize("matcher", ["mcp__.*", "mcp__small__echo", "echo"])
def test_a_matcher_knows_the_tool_of_a_server_by_both_of_its_names(tmp_path: Path, matcher: str) -> None:
    configured(hook("pre_tool_use", "exit 2", matcher=matcher))
    with coding(tmp_path, calls(("echo", {"word": "quokka"})), says("I see.")) as agent:
        add(agent, "small")
        agent.until("mcp_ready")
        assert not of(agent.ask("Use it."), "tool_request")
        assert agent.asked.results == ["Tool denied: A hook denied it"]


def test_hooks_of_a_workspace_that_nobody_trusts_are_told_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "trunkline.toml").write_text(hook("session_start", "touch theirs") + hook("stop", "touch theirs"))
    with coding(tmp_path, says("Hi.")) as agent:
        notices = infos(agent.ask("Hello."))
        assert "not followed: `hooks.session_start`, `hooks.stop`" in notices
        agent.end()
    assert not (tmp_path / "theirs").exists()
    configured(f"trust = [{json.dumps(str(tmp_path))}]\n" + hook("session_start", "touch ours"))
    with coding(tmp_path, says("Hi.")) as agent:
        agent.ask("Hello.")
    assert (tmp_path / "theirs").exists()
    assert (tmp_path / "ours").exists()


def test_hooks_that_were_written_for_aionrs_are_run_as_it_runs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "aionrs.toml"
    path.write_text(
        hook(
            "pre_tool_use",
            'echo "${TOOL_NAME} ${TOOL_INPUT_FILE_PATH}"; exit 1',
            name="guard",
            tool_match=["Wri*"],
            file_match=["*.lock"],
            timeout_ms=5000,
        )
        + hook("post_tool_use", 'printf "%s" "$TOOL_OUTPUT" > output', name="after", tool_match=["Write"])
        + hook("stop", "touch ended", name="end")
    )
    monkeypatch.setenv("TRUNKLINE_AIONRS_CONFIG", str(path))
    hostile = "$(touch hacked).lock"
    steps = (
        calls(("Write", {"file_path": hostile, "content": "x"})),
        calls(("Write", {"file_path": "a.txt", "content": "x"})),
        says("Done."),
    )
    with coding(tmp_path, *steps) as agent:
        agent.ask("Write.")
        assert agent.asked.results[0].endswith(f"Hook 'guard' blocked execution: Write {hostile}")
        assert not (tmp_path / "ended").exists()
        agent.end()
    assert "a.txt" in (tmp_path / "output").read_text()
    assert (tmp_path / "a.txt").exists()
    assert not (tmp_path / hostile).exists()
    assert not (tmp_path / "hacked").exists()
    assert (tmp_path / "ended").exists()


def test_a_stop_ends_the_hook_at_once_with_all_that_it_started(tmp_path: Path) -> None:
    configured(hook("pre_tool_use", "sleep 300 & echo $! > pid.new; mv pid.new pid; wait"))
    with coding(tmp_path, bash("touch made")) as agent:
        agent.message("Run it.")
        eventually((tmp_path / "pid").exists, "the hook runs")
        assert agent.stop()[-1]["type"] == "stream_end"
        assert gone(int((tmp_path / "pid").read_text()))


def test_the_hooks_of_a_sub_agents_calls_are_run_too(tmp_path: Path) -> None:
    configured(hook("pre_tool_use", KEEP))
    spawn = calls(("Spawn", {"tasks": [{"name": "t", "prompt": "look"}]}))
    with coding(tmp_path, spawn, bash("true"), says("Looked."), says("Done.")) as agent:
        agent.ask("Go.")
    assert [each["tool_name"] for each in told(tmp_path)] == ["Spawn", "Bash"]
