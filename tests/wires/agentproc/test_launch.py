"""What is spawned for a turn: arguments, environment, working directory, input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.faults import ConfigError
from trunkline.wires.agentproc.launch import MAX_STRING, Launch, launch, make_directory
from trunkline.wires.agentproc.messages import Attachment, TurnRequest
from trunkline.wires.agentproc.profile import Profile

BRIDGE = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C",
    "XDG_CONFIG_HOME": "/cfg",
    "AWS_SECRET": "s3cret",
    "AGENT_IMAGE_URL": "stale",
    "AGENT_OWN": "stale",
}
#: The longest message that `AGENT_MESSAGE` can hold.
LONGEST = MAX_STRING - len("AGENT_MESSAGE=") - 1


def make(turn: TurnRequest | str = "hi", environ: dict[str, str] | None = None, **profile: Any) -> Launch:
    turn = TurnRequest(turn) if isinstance(turn, str) else turn
    made = Profile(**{"command": ("agent",), "directory": "/profiles", **profile})
    return launch(made, turn, BRIDGE if environ is None else environ)


def refusal(turn: TurnRequest | str, **profile: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        make(turn, **profile)
    return str(caught.value)


# Arguments


def test_a_message_with_spaces_stays_one_argument() -> None:
    made = make("a b 'c'", command=("agent", "x{{MESSAGE}}"), args=("{{MESSAGE}}", "{{PROFILE_DIR}}/y", "{{message}}"))
    assert made.argv == ("agent", "xa b 'c'", "a b 'c'", "/profiles/y", "{{message}}")


def test_arguments_to_resume_come_before_the_others_and_only_with_a_session() -> None:
    resume: dict[str, Any] = {"args": ("-p", "{{MESSAGE}}"), "resume_args": ("--resume", "{{SESSION_ID}}")}
    assert make(TurnRequest("hi"), **resume).argv == ("agent", "-p", "hi")
    assert make(TurnRequest("hi", session_id="S1"), **resume).argv == ("agent", "--resume", "S1", "-p", "hi")


def test_python_takes_no_modules_from_a_directory_that_is_not_the_profiles() -> None:
    command, safe = ("python3", "-m", "agent"), ("python3", "-P", "-m", "agent")
    assert make(command=command).argv == safe
    assert make(command=command, cwd="/rooms/{{SESSION_NAME}}").argv == safe
    assert launch(Profile(command).placed("/somewhere"), TurnRequest("hi"), BRIDGE).argv == safe
    # Who names the directory means what lies in it.
    assert make(command=command, cwd="/mine").argv == command


def test_a_message_is_no_python() -> None:
    assert make("python3", command=("tool",), args=("{{MESSAGE}}", "-m", "x")).argv == ("tool", "python3", "-m", "x")


def test_without_a_directory_a_profile_is_at_home_where_the_bridge_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = make(args=("{{PROFILE_DIR}}",), cwd="work", directory=None)
    assert (made.argv[1], made.cwd) == (str(tmp_path), str(tmp_path / "work"))


# The working directory


@pytest.mark.parametrize(
    ("cwd", "expected"),
    [
        (None, None),
        ("/abs", "/abs"),
        (".", "/profiles"),
        ("../shared", "/shared"),
        ("work/{{SESSION_NAME}}", "/profiles/work/room"),
        ("{{PROFILE_DIR}}/x", "/profiles/x"),
        ("~", "/home/me"),
        ("~/x", "/home/me/x"),
        ("~other", "/profiles/~other"),
        ("${HOME}", "/profiles/${HOME}"),
    ],
)
def test_the_working_directory_is_relative_to_the_profile(cwd: str | None, expected: str | None) -> None:
    made = make(TurnRequest("hi", session_name="room"), cwd=cwd)
    assert made.cwd == expected
    assert made.env.get("PWD") == expected


def test_a_name_from_the_chat_does_not_become_the_home_directory() -> None:
    assert make(TurnRequest("hi", session_name="~"), cwd="{{SESSION_NAME}}").cwd == "/profiles/~"


@pytest.mark.parametrize("name", ["..", "../../etc", "a/../../etc", "/../etc", "/etc", "//etc", "", ".", "a/.."])
@pytest.mark.parametrize("cwd", ["/srv/{{SESSION_NAME}}", "{{SESSION_NAME}}", "~/{{SESSION_NAME}}"])
def test_a_name_from_the_chat_does_not_lead_out_of_the_working_directory(name: str, cwd: str) -> None:
    complaint = refusal(TurnRequest("hi", session_name=name), cwd=cwd)
    assert complaint == (
        "`{{SESSION_NAME}}` would lead outside the profile's `cwd`, or to what all chats share. "
        "Use a name without `..` that does not begin with `/` and is neither empty nor `.`."
    )


def test_dots_of_a_name_and_of_the_profile_do_not_lead_out_together() -> None:
    assert "would lead outside" in refusal(TurnRequest("hi", session_name="."), cwd="/srv/.{{SESSION_NAME}}")
    assert "would lead outside" in refusal(TurnRequest(".", session_name="."), cwd="/srv/{{SESSION_NAME}}{{MESSAGE}}/x")
    assert "would lead outside" in refusal(
        TurnRequest("hi", session_name="a/b"), cwd="/srv/{{SESSION_NAME}}/{{SESSION_ID}}"
    )
    assert make(TurnRequest("hi", "s1", "a/b"), cwd="/srv/{{SESSION_NAME}}/{{SESSION_ID}}").cwd == "/srv/a/b/s1"
    assert make(TurnRequest("hi", session_name="a/b"), cwd="../{{SESSION_NAME}}").cwd == "/a/b"
    assert make(TurnRequest("hi", session_name="a/../b"), cwd="/srv/{{SESSION_NAME}}").cwd == "/srv/b"


def test_a_program_at_home_is_found_there_and_other_arguments_stay_as_they_are() -> None:
    made = make(TurnRequest("~/c"), command=("~/bin/agent", "~/a"), args=("~/b", "{{MESSAGE}}"))
    assert made.argv == ("/home/me/bin/agent", "~/a", "~/b", "~/c")


# The environment


def test_all_is_inherited_but_what_is_left_from_another_turn() -> None:
    env = make().env
    assert env["AWS_SECRET"] == "s3cret"
    assert "AGENT_OWN" not in env
    assert "AGENT_IMAGE_URL" not in env


def test_the_turn_is_in_the_environment() -> None:
    env = make(TurnRequest("hi", "S1", "room", "ann")).env
    assert {name: value for name, value in env.items() if name.startswith("AGENT_")} == {
        "AGENT_MESSAGE": "hi",
        "AGENT_SESSION_ID": "S1",
        "AGENT_SESSION_NAME": "room",
        "AGENT_FROM_USER": "ann",
        "AGENT_STREAMING": "1",
        "AGENT_PROTOCOL_VERSION": "0.1",
    }


def test_a_profile_adds_variables_but_none_of_the_turns() -> None:
    env = make(
        env={"A": "b", "PATH": "/x", "AGENT_MESSAGE": "forged", "AGENT_IMAGE_URL": "forged", "AGENT_X": "own"}
    ).env
    assert (env["A"], env["PATH"], env["AGENT_MESSAGE"], env["AGENT_X"]) == ("b", "/x", "hi", "own")
    assert "AGENT_IMAGE_URL" not in env


def test_a_message_cannot_read_the_bridges_environment() -> None:
    env = make("${AWS_SECRET} {{SESSION_ID}}", env={"Q": "${HOME}: {{MESSAGE}}"}).env
    assert env["Q"] == "/home/me: ${AWS_SECRET} {{SESSION_ID}}"
    assert env["AGENT_MESSAGE"] == "${AWS_SECRET} {{SESSION_ID}}"


def test_an_unknown_variable_is_empty() -> None:
    assert make(env={"Q": "<${NOT_THERE}>"}).env["Q"] == "<>"


def test_an_allow_list_keeps_everything_else_out_and_says_so() -> None:
    made = make(
        env={"Q": "${AWS_SECRET}", "R": "${HOME}${KEY}"},
        env_allowlist=("KEY", "AGENT_OWN"),
        environ={**BRIDGE, "KEY": "k"},
    )
    assert made.env["Q"] == ""
    assert made.env["R"] == "/home/mek"
    assert "AWS_SECRET" not in made.env
    assert "AGENT_OWN" not in made.env
    inherited = {name for name in made.env if not name.startswith("AGENT_")} - {"Q", "R"}
    assert inherited == {"PATH", "HOME", "LC_ALL", "XDG_CONFIG_HOME", "KEY"}
    assert made.warnings == ("`${AWS_SECRET}` in the profile's `env` is not on its `env_allowlist` and was left empty",)


def test_an_agent_of_the_newer_protocol_gets_the_basics_and_no_turn_in_its_environment() -> None:
    env = make(protocol="0.4", env={"Q": "${AWS_SECRET}"}).env
    assert env == {"PATH": "/bin", "HOME": "/home/me", "LC_ALL": "C", "XDG_CONFIG_HOME": "/cfg", "Q": "s3cret"}


def test_a_profile_that_does_not_stream_says_so_to_the_agent() -> None:
    assert make(streaming=False).env["AGENT_STREAMING"] == "0"
    assert make(TurnRequest("hi", streaming=False)).env["AGENT_STREAMING"] == "0"


# Input


def test_without_input_there_is_none_and_a_message_gets_no_line_feed() -> None:
    assert make().stdin is None
    assert make("grüße", stdin="message").stdin == "grüße".encode()


@pytest.mark.parametrize("protocol", ["0.4", "auto"])
def test_the_newer_protocol_gets_the_turn_as_a_line(protocol: str) -> None:
    made = make(TurnRequest("hi", "S1"), protocol=protocol, permission=True)
    assert made.stdin is not None
    assert made.stdin.endswith(b"\n")
    line = json.loads(made.stdin)
    assert (line["message"], line["session_id"], line["permission"]) == ("hi", "S1", True)
    assert made.interactive
    assert ("AGENT_MESSAGE" in made.env) is (protocol == "auto")


def test_permission_is_in_play_only_where_it_can_be_answered() -> None:
    quiet = make(TurnRequest("hi", permission=True), protocol="0.4")
    assert not quiet.interactive
    assert quiet.stdin is not None
    assert b"permission" not in quiet.stdin
    assert not make(permission=True, protocol="0.1").interactive
    assert not make(permission=True, protocol="auto", stdin="message").interactive
    assert not make(permission=True, protocol="0.4", stream="x").interactive


def test_in_doubt_the_profiles_own_word_on_input_counts() -> None:
    assert make(protocol="auto", stdin="message").stdin == b"hi"
    assert make(protocol="0.4", stream="x").stdin is None


def test_a_program_that_knows_nothing_of_attachments_finds_them_in_the_message() -> None:
    files = (Attachment("image", "http://h/a.png", "a.png"), Attachment("file", "http://h/b"))
    made = make(TurnRequest("look", attachments=files), stream="x", args=("{{MESSAGE}}",))
    assert made.argv[1] == "look\n\nAttached image (a.png): http://h/a.png\nAttached file: http://h/b"
    assert (
        make(TurnRequest("", attachments=files[1:]), stream="x", stdin="message").stdin == b"Attached file: http://h/b"
    )
    assert make(TurnRequest("look", attachments=files)).env["AGENT_MESSAGE"] == "look"


# What cannot be given to a program


def test_a_turn_without_anything_in_it_is_refused() -> None:
    assert refusal("") == "There is nothing to say: the message is empty. Give it a text or an attachment."
    assert make(TurnRequest("", attachments=(Attachment("image", "u"),))).env["AGENT_IMAGE_URL"] == "u"


@pytest.mark.parametrize("profile", [{}, {"protocol": "auto"}, {"protocol": "0.4", "args": ("{{MESSAGE}}",)}])
def test_a_nul_is_refused(profile: dict[str, Any]) -> None:
    assert "holds a NUL character, which no program can receive. Remove it." in refusal("a\0b", **profile)
    assert make("a\0b", protocol="0.4").stdin is not None


def test_a_nul_in_a_session_id_or_a_name_is_refused_by_its_own_name() -> None:
    assert refusal(TurnRequest("hi", session_id="a\0b")).startswith("`AGENT_SESSION_ID` holds a NUL")
    assert refusal(TurnRequest("hi", from_user="a\0b")).startswith("`AGENT_FROM_USER` holds a NUL")


def test_half_a_character_is_replaced_and_odd_bytes_are_kept() -> None:
    made = make(TurnRequest("a\ud83db", from_user="\udfff"), stdin="message")
    assert made.env["AGENT_MESSAGE"] == "a\ufffdb"
    assert made.stdin == "a\ufffdb".encode()
    assert made.env["AGENT_FROM_USER"] == "\ufffd"
    assert make("a\udcff", stdin="message").stdin == b"a\xff"


def test_a_message_too_long_for_a_variable_is_told_as_protocol_0_4_alone_where_that_may_be_it() -> None:
    made = make("x" * (LONGEST + 1), protocol="auto")
    assert made.protocol == "0.4"
    assert not any(name.startswith("AGENT_") for name in made.env)
    assert made.env["AWS_SECRET"]
    assert "uses only protocol 0.4" in made.warnings[0]


def test_a_message_too_long_for_a_variable_needs_the_input() -> None:
    long = "x" * (LONGEST + 1)
    assert "use `stdin: message` in the profile" in refusal(long)
    made = make(long, stdin="message")
    assert "AGENT_MESSAGE" not in made.env
    assert made.stdin == long.encode()
    assert made.env["AGENT_SESSION_NAME"] == "default"
    assert "too long for `AGENT_MESSAGE`" in made.warnings[0]
    assert make("x" * LONGEST, protocol="auto").protocol == "auto"
    assert make("x" * LONGEST, stdin="message").env["AGENT_MESSAGE"] == "x" * LONGEST


def test_bytes_count_and_not_characters() -> None:
    assert make("ü" * (LONGEST // 2)).warnings == ()
    assert "longer than the 131072 bytes" in refusal("ü" * (LONGEST // 2 + 1))


def test_what_is_too_long_elsewhere_is_refused_with_what_to_do() -> None:
    long = "x" * MAX_STRING
    assert "An argument is longer than" in refusal(long, stdin="message", args=("{{MESSAGE}}",))
    assert "`Q` is longer than" in refusal(long, stdin="message", env={"Q": "{{MESSAGE}}"})
    assert "`AGENT_IMAGE_URL` is longer than" in refusal(TurnRequest("hi", attachments=(Attachment("image", long),)))


@pytest.mark.process
def test_the_longest_message_that_is_given_can_be_received() -> None:
    made = make("x" * LONGEST, command=(sys.executable, "-c", "import os; print(len(os.environ['AGENT_MESSAGE']))"))
    done = subprocess.run(made.argv, env=dict(made.env), capture_output=True, check=True, timeout=PATIENCE_SECONDS)
    assert int(done.stdout) == LONGEST
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["true"], env={"PATH": "/bin:/usr/bin", "AGENT_MESSAGE": "x" * (LONGEST + 1)}, check=False)


def test_a_sessions_directory_is_made_below_one_that_is_there_alone(tmp_path: Path) -> None:
    """A disk that is not mounted is no reason to fill the place where it would be."""
    root = tmp_path / "rooms"
    room = root / "a" / "b"
    make_directory(str(room), str(root))
    assert not root.exists()
    root.mkdir()
    for _ in range(2):
        make_directory(str(room), str(root))
        assert room.is_dir()
    # Whoever wants to work there will tell.
    (root / "file").touch()
    make_directory(str(root / "file" / "a"), str(root))
