"""Undo from outside: an agent on the JSON stream whose model asks for Write, Edit and Bash, and the command line."""

from __future__ import annotations

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.coding import Coder, calls, eventually, of, says, serving, text_of
from tests.support.invoked import Invoked, invoke
from trunkline.agents.coder.undo.checkpoints import Checkpoints
from trunkline.cli.sessions import command

pytestmark = pytest.mark.process

SESSION = "s1"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    (place / ".gitignore").write_text("*.env\n")
    (place / "app.py").write_text("print('old')\n")
    (place / "secret.env").write_text("KEY=old\n")
    (place / "run.sh").write_text("echo\n")
    (place / "run.sh").chmod(0o640)
    return place


FIRST = (
    calls(("Read", {"file_path": "app.py"})),
    calls(("Edit", {"file_path": "app.py", "old_string": "old", "new_string": "new"})),
    calls(("Write", {"file_path": "made/by/write.txt", "content": "new\n"})),
    says("Done."),
)
SECOND = (
    calls(
        ("Bash", {"command": "echo KEY=new > secret.env; chmod 755 run.sh; mkdir empty; echo x > by_bash; rm app.py"})
    ),
    says("Done, too."),
)


def undo(*arguments: str) -> Invoked:
    return invoke(command, "undo", SESSION, *arguments)


def seen(work: Path) -> dict[str, str]:
    found = {str(path.relative_to(work)): path for path in work.rglob("*")}
    return {name: path.read_text() if path.is_file() else "" for name, path in sorted(found.items())}


def test_the_last_turns_are_undone_when_the_agent_is_gone(work: Path) -> None:
    before = seen(work)
    with serving(*FIRST, *SECOND) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Change it.")
        between = seen(work)
        agent.ask("Change more.", "m2")
        agent.end()
    assert (work / "by_bash").exists()
    done = undo("--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {
        "session": SESSION,
        "turns": 1,
        "restored": ["app.py", "by_bash", "empty", "run.sh", "secret.env"],
        "left": [],
        "uncovered": [],
    }
    assert seen(work) == between
    assert stat.S_IMODE((work / "run.sh").stat().st_mode) == 0o640
    done = undo("--turns", "5")
    assert done.exit_code == 0
    assert "5 turns were asked for." in done.stdout
    assert "Undid the last turn: 4 paths are as before." in done.stdout
    assert "outside of the workspace is not undone" in done.stdout
    assert seen(work) == before
    assert "nothing to undo" in undo().stdout


def test_programs_get_names_as_they_are_and_people_in_one_line(work: Path) -> None:
    names = ["a\nb", "c\td", os.fsdecode(b"e\xff")]
    steps = (calls(("Bash", {"command": r"touch $'a\nb' $'c\td' $'e\xff'"})), says("Made."))
    with serving(*steps, *steps) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Make them.")
        done = undo("--json")
        assert json.loads(done.stdout)["restored"] == names
        agent.ask("Again.", "m2")
        agent.end()
    (work / names[0]).write_text("theirs\n")
    done = undo("--json")
    assert (done.exit_code, json.loads(done.stdout)["left"][0]["path"]) == (1, names[0])


def test_it_is_said_that_fewer_turns_were_undone_and_that_a_command_ran_on(work: Path) -> None:
    behind = "until [ -e go ]; do sleep 0.02; done; echo later > app.py; touch done"
    steps = (calls(("Bash", {"command": behind, "run_in_background": True})), says("It runs."))
    with serving(*steps) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Run it.")
        (work / "go").touch()
        eventually((work / "done").exists, "it has ended")
        agent.end()
    done = undo("--turns", "2")
    assert "2 turns were asked for. No more have changed files" in done.stdout
    assert "Not all that commands changed is known: A command ran on in the background" in done.stdout


def test_a_repository_that_is_gone_is_named(work: Path) -> None:
    (work / "sub/.git").mkdir(parents=True)
    (work / "sub/.git/HEAD").touch()
    (work / "sub/s").write_text("s\n")
    steps = (calls(("Bash", {"command": "rm -rf sub"})), says("Gone."))
    with serving(*steps) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Remove it.")
        agent.end()
    assert "`sub/.git` is gone, and what it held is not kept." in undo().stdout
    assert (work / "sub/s").read_text() == "s\n"


def test_what_somebody_else_changed_is_left_and_named_and_the_exit_code_is_1(work: Path) -> None:
    with serving(*FIRST, *SECOND) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Change it.")
        agent.ask("Change more.", "m2")
        agent.end()
    (work / "secret.env").write_text("KEY=theirs\n")
    done = undo("--turns", "2")
    assert done.exit_code == 1
    assert "Left as they are:\n  secret.env: changed since by somebody else\n" in done.stdout
    assert (work / "secret.env").read_text() == "KEY=theirs\n"
    assert (work / "app.py").read_text() == "print('old')\n"
    assert not (work / "made").exists()


def test_an_agent_that_is_idle_may_stay_open_and_its_model_is_told(work: Path) -> None:
    with serving(*FIRST, says("I see.")) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Change it.")
        assert undo().exit_code == 0
        assert (work / "app.py").read_text() == "print('old')\n"
        agent.ask("What now?", "m2")
        told = [said.text for said in agent.asked.said if said.role == "user"]
        assert any("has undone what you changed" in text for text in told), told


def test_a_turn_in_progress_is_not_undone_behind_the_agents_back(work: Path) -> None:
    replies = (*FIRST[2:], calls(("Bash", {"command": "echo 1 > started; sleep 300"})))
    with serving(*replies) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Change it.")
        agent.message("Wait.", "m2")
        agent.approve(agent.request())
        eventually((work / "started").exists, "the command has started")
        done = undo()
        assert done.exit_code == 1
        assert "A turn is in progress" in done.stderr
        assert (work / "made/by/write.txt").exists()
        agent.stop()
        assert undo().exit_code == 0
        assert not (work / "started").exists()
        assert (work / "made/by/write.txt").exists()


def test_an_agent_that_is_killed_in_a_turn_leaves_what_it_had_recorded(work: Path) -> None:
    replies = (*FIRST[2:3], calls(("Bash", {"command": "echo 1 > started; sleep 300"})))
    with serving(*replies) as stub, Coder(stub, work, "--session-id", SESSION, "--auto-approve") as agent:
        agent.message("Change it.", "m1")
        eventually((work / "started").exists, "the command has started")
        agent.kill(signal.SIGKILL)
    done = undo()
    assert done.exit_code == 0, done.stderr
    assert not (work / "made").exists()


CLOBBER = calls(("Bash", {"command": "echo 1 > app.py; rm secret.env; echo 1 > started; sleep 300"}))


@pytest.mark.parametrize("turns", [1, 2])
def test_an_agent_that_is_killed_in_a_command_has_kept_what_was_there_before_it(work: Path, turns: int) -> None:
    before = seen(work)
    replies = (*FIRST[2:], CLOBBER) if turns == 2 else (CLOBBER,)
    with serving(*replies) as stub, Coder(stub, work, "--session-id", SESSION, "--auto-approve") as agent:
        if turns == 2:
            agent.ask("Change it.", "m0")
        agent.message("Change it.", "m1")
        eventually((work / "started").exists, "the command has started")
        agent.kill(signal.SIGKILL)
    shown = invoke(command, "diff", SESSION).stdout
    assert "-print('old')\n+1\n" in shown
    done = undo("--json", "--turns", str(turns))
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["turns"], told["left"]) == (turns, [])
    assert {"app.py", "secret.env", "started"} <= set(told["restored"])
    assert seen(work) == before
    assert "nothing to undo" in undo().stdout


def test_the_process_that_goes_on_after_a_kill_shows_and_undoes_it(work: Path) -> None:
    before = seen(work)
    with serving(CLOBBER, *FIRST[2:]) as stub:
        with Coder(stub, work, "--session-id", SESSION, "--auto-approve") as agent:
            agent.message("Change it.", "m1")
            eventually((work / "started").exists, "the command has started")
            agent.kill(signal.SIGKILL)
        with Coder(stub, work, "--resume", SESSION, "--auto-approve") as agent:
            assert "-print('old')\n+1\n" in notices(agent.ask("/diff", "m2"))
            agent.ask("Write it.", "m3")
            assert "1 turn" not in notices(agent.ask("/undo", "m4"))
            assert (work / "app.py").read_text() == "1\n"
            assert not (work / "made").exists()
            assert "3 paths are as before" in notices(agent.ask("/undo", "m5"))
    assert seen(work) == before


def test_it_is_undone_while_the_process_that_resumed_the_session_is_idle(work: Path) -> None:
    before = seen(work)
    with serving(CLOBBER) as stub:
        with Coder(stub, work, "--session-id", SESSION, "--auto-approve") as agent:
            agent.message("Change it.", "m1")
            eventually((work / "started").exists, "the command has started")
            agent.kill(signal.SIGKILL)
        with Coder(stub, work, "--resume", SESSION):
            done = undo()
            assert done.exit_code == 0, done.stderr
    assert seen(work) == before


def test_a_message_after_a_stop_is_answered_while_what_was_stopped_is_still_recorded(work: Path) -> None:
    with (
        serving(CLOBBER, says("Next.")) as stub,
        Coder(stub, work, "--session-id", SESSION, "--auto-approve") as agent,
    ):
        agent.message("Change it.", "m1")
        eventually((work / "started").exists, "the command has started")
        # Another session is at it: what was changed can only be recorded when that is done.
        with Checkpoints(str(work)).store.locked(5.0):
            agent.stop()
            assert text_of(agent.ask("And now?", "m2")) == "Next."
        notices(agent.ask("/undo 2", "m3"))
        assert (work / "app.py").read_text() == "print('old')\n"


def notices(lines: list[dict[str, Any]]) -> str:
    return "\n".join(line["message"] for line in of(lines, "info"))


def test_the_commands_undo_rewind_and_show_what_was_changed(work: Path) -> None:
    replies = (*FIRST, *SECOND, says("A new beginning."))
    with serving(*replies) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Change it.")
        agent.ask("Change more.", "m2")
        diff = notices(agent.ask("/diff", "m3"))
        assert "deleted file mode 100644\n--- a/app.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-print('old')\n" in diff
        assert "old mode 100640\nnew mode 100755\n" in diff
        assert "+++ b/made/by/write.txt" in diff
        assert "write.txt" not in notices(agent.ask("/diff 1", "m4"))
        told = notices(agent.ask("/undo", "m5"))
        assert "Undid the last turn: 5 paths are as before." in told
        assert "outside of the workspace is not undone" in told
        assert (work / "app.py").read_text() == "print('new')\n"
        told = notices(agent.ask("/rewind 2", "m6"))
        assert "The conversation went back by 2 turns." in told
        assert (work / "app.py").read_text() == "print('old')\n"
        agent.ask("Once more.", "m7")
        assert [said.text for said in agent.asked.said] == ["Once more."]
        assert "nothing to undo" not in notices(agent.ask("/undo", "m8"))
        assert "nothing to undo" in notices(agent.ask("/undo", "m9"))
        assert "takes a number of turns" in str(agent.ask("/undo everything", "m10"))


def test_rewinding_survives_the_process_and_keeps_what_was_said_before(work: Path) -> None:
    with serving(says("Hello."), *FIRST, says("And now?")) as stub:
        with Coder(stub, work, "--session-id", SESSION) as agent:
            agent.ask("Hi.")
            agent.ask("Change it.", "m2")
            agent.end()
        with Coder(stub, work, "--resume", SESSION) as agent:
            agent.ask("/rewind", "m3")
            assert (work / "app.py").read_text() == "print('old')\n"
            agent.end()
        with Coder(stub, work, "--resume", SESSION) as agent:
            agent.ask("Go on.", "m4")
            assert [said.text for said in agent.asked.said] == ["Hi.", "Hello.", "Go on."]


def test_what_sub_agents_change_belongs_to_the_turn(work: Path) -> None:
    replies = (
        calls(("Spawn", {"tasks": [{"name": "one", "prompt": "Write it."}]})),
        calls(("Write", {"file_path": "by_sub.txt", "content": "x"})),
        says("Written."),
        says("All done."),
    )
    with serving(*replies) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Delegate it.")
        assert (work / "by_sub.txt").exists()
        agent.end()
    assert undo().exit_code == 0
    assert not (work / "by_sub.txt").exists()


def test_a_session_that_is_removed_takes_its_checkpoints_along(work: Path) -> None:
    with serving(*FIRST[2:]) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Change it.")
        agent.end()
    records = Path(os.environ["TRUNKLINE_HOME"]) / "checkpoints"
    assert list(records.glob("*/sessions/*"))
    assert invoke(command, "rm", SESSION).exit_code == 0
    assert not list(records.glob("*/sessions/*"))


def test_a_diff_can_be_printed_when_the_agent_is_gone(work: Path) -> None:
    with serving(*FIRST) as stub, Coder(stub, work, "--session-id", SESSION) as agent:
        agent.ask("Change it.")
        agent.end()
    done = invoke(command, "diff", SESSION)
    assert (done.exit_code, "-print('old')\n+print('new')\n" in done.stdout) == (0, True)
    assert invoke(command, "diff", SESSION, "--turns", "1").stdout == done.stdout


def test_a_session_that_has_moved_is_undone_where_it_worked_last(work: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with serving(*FIRST[2:], *FIRST[2:]) as stub:
        with Coder(stub, work, "--session-id", SESSION) as agent:
            agent.ask("Change it.")
            agent.end()
        with Coder(stub, other, "--resume", SESSION, "--anyway") as agent:
            agent.ask("Change it here.", "m2")
            agent.end()
    assert undo().exit_code == 0
    assert (list(other.iterdir()), (work / "made").exists()) == ([], True)
