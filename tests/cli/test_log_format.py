"""`TRUNKLINE_LOG_FORMAT` and `--log-format`: all that a command says on standard error, as JSON lines."""

from __future__ import annotations

import json
import logging
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.unmeasured import unmeasured
from trunkline.base import log_context, trace_context
from trunkline.base.redact import Redactor
from trunkline.base.trace_context import TraceContext
from trunkline.cli import agent_options, log_format

SECRET = "a-secret-of-ours"
OURS = logging.getLogger("trunkline.wires.acp.test")


@pytest.fixture
def lines(capfd: pytest.CaptureFixture[str]) -> Callable[[], list[Any]]:
    """What was logged since it was last asked for."""
    log_format.choose("json")
    agent_options.log_to_stderr(Redactor([SECRET]))
    return lambda: [json.loads(line) for line in capfd.readouterr().err.splitlines()]


def test_a_line_is_an_object_with_its_time_its_level_its_logger_and_its_words(lines: Callable[[], list[Any]]) -> None:
    OURS.warning("it is %s\nand %s", "late", 3)
    (line,) = lines()
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("ts"))
    assert line == {
        "level": "warning",
        "logger": "trunkline.wires.acp.test",
        "message": "it is late\nand 3",
        "wire": "acp",
    }


def test_a_line_says_which_session_turn_node_and_trace_it_is_about_where_that_is_known(
    lines: Callable[[], list[Any]],
) -> None:
    log_context.of_process["node"] = "a"
    with (
        log_context.about(session="s1", turn=2, wire="http"),
        trace_context.within(TraceContext("0a" * 16, "0b" * 8)),
    ):
        OURS.warning("one")
        OURS.warning("two", extra={"session": 7})
    one, two = lines()
    known = ["session", "turn", "node", "wire", "trace_id", "span_id"]
    assert [one[key] for key in known] == ["s1", 2, "a", "http", "0a" * 16, "0b" * 8]
    assert list(one) == ["ts", "level", "logger", "message", *known]
    assert two["session"] == 7


def test_secrets_are_taken_out_of_every_member(lines: Callable[[], list[Any]]) -> None:
    try:
        raise ValueError(f"about {SECRET}")
    except ValueError:
        with log_context.about(session=f"s-{SECRET}"):
            OURS.exception("it failed with %s", SECRET)
    (line,) = lines()
    assert line["message"] == "it failed with [redacted]"
    assert line["session"] == "s-[redacted]"
    assert line["error"].endswith("ValueError: about [redacted]")
    assert SECRET not in json.dumps(line)


def test_a_traceback_is_in_the_line_of_what_failed(lines: Callable[[], list[Any]]) -> None:
    try:
        raise KeyError("x")
    except KeyError:
        OURS.exception("it failed", stack_info=True)
    (line,) = lines()
    assert line["error"].startswith("Traceback")
    assert line["stack"].startswith("Stack")


def test_what_is_told_beside_the_log_is_a_line_of_it(lines: Callable[[], list[Any]]) -> None:
    log_format.tell("It is ready.")
    log_format.tell("warning: it is late")
    log_format.complain("It is over.", "Try `--help`.")
    found = [(line["level"], line["logger"], line["message"]) for line in lines()]
    assert found == [
        ("info", "trunkline.cli", "It is ready."),
        ("warning", "trunkline.cli", "it is late"),
        ("error", "trunkline.cli", "It is over.\nTry `--help`."),
    ]


def test_a_lone_surrogate_does_not_break_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(log_format.VARIABLE, "json")
    record = logging.LogRecord("trunkline.x", logging.WARNING, "", 0, "a name: %s", ("\udcff",), None)
    line = log_format.LogFormatter(logging.Formatter()).format(record)
    assert line.isascii()
    assert json.loads(line)["message"] == "a name: \udcff"


@pytest.mark.parametrize(
    ("said", "variable", "is_json"),
    [("json", "", True), (None, "json", True), ("text", "json", False), (None, "", False), (None, "other", False)],
)
def test_a_flag_counts_more_than_the_variable(
    said: str | None, variable: str, is_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(log_format.VARIABLE, variable)
    log_format.choose(said)
    assert log_format.is_json() is is_json


EXCHANGE = """
[exchange]
listen = "127.0.0.1:0"
home = "home"
[agents.e]
agent = "echo"
[wires.tryll]
listen = "127.0.0.1:0"
"""

#: Commands that run until they are stopped, each with what it says when it can be used.
SERVERS = {
    "up": (["up", "--config", "trunkline.toml"], "exchange: reachable"),
    "network": (["network", "serve", "--listen", "127.0.0.1:0"], "The network is ready"),
    "runner": (["runner", "serve", "--listen", "127.0.0.1:0", "--secret", SECRET], "The launcher is ready"),
    "tryll": (["tryll", "serve", "--listen", "127.0.0.1:0"], "The Tryll server is ready"),
    "openai": (["openai", "serve", "--listen", "127.0.0.1:0", "--agent", "echo"], "The OpenAI server is ready"),
    "bridge": (["bridge", "run", "terminal", "--agent", "echo"], "Serving terminal"),
}


def begun(folder: Path, arguments: list[str], **environ: str) -> subprocess.Popen[str]:
    (folder / "trunkline.toml").write_text(EXCHANGE)
    return subprocess.Popen(
        [sys.executable, "-m", "trunkline", *arguments],
        cwd=folder,
        env=unmeasured() | {"TRUNKLINE_HOME": str(folder / "state"), **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.process
@pytest.mark.parametrize("by", ["flag", "variable"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_says_nothing_but_json_from_its_first_word_to_its_last(name: str, by: str, tmp_path: Path) -> None:
    arguments, ready = SERVERS[name]
    flags = ["--log-format", "json"] if by == "flag" else []
    environ = {log_format.VARIABLE: "json"} if by == "variable" else {}
    with begun(tmp_path, [*arguments, *flags], **environ) as child:
        assert child.stderr is not None
        said = []
        for line in child.stderr:
            said.append(json.loads(line))
            if said[-1]["message"].startswith(ready):
                break
        child.send_signal(signal.SIGTERM)
        out, rest = child.communicate(timeout=PATIENCE_SECONDS)
    said += [json.loads(line) for line in rest.splitlines()]
    assert any(line["message"].startswith(ready) for line in said), said
    assert {"ts", "level", "logger", "message"} <= set.intersection(*map(set, said))
    assert out == ""


@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        ["network", "serve", "--listen", "nowhere"],
        ["up", "--config", "nothing.toml"],
        ["openai", "serve", "--agent", "nobody"],
        ["bridge", "run", "telegram"],
        ["agent", "--json-stream", "--agent", "nobody"],
        ["agentproc", "serve", "nobody"],
        ["acp", "nobody"],
        ["mcp", "serve", "--agent", "nobody"],
        ["runner", "serve"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_why_a_command_does_not_begin_is_a_line_of_the_log(arguments: list[str], tmp_path: Path) -> None:
    with begun(tmp_path, [*arguments, "--log-format", "json"], AGENT_MESSAGE="hello") as child:
        _, said = child.communicate("", timeout=PATIENCE_SECONDS)
    assert child.returncode != 0
    *_, last = [json.loads(line) for line in said.splitlines()]
    assert last["level"] == "error"
    assert not last["message"].startswith("Error")


@pytest.mark.process
def test_what_nobody_caught_is_a_line_of_the_log_too(tmp_path: Path) -> None:
    program = (
        "from trunkline.base.redact import Redactor\n"
        "from trunkline.cli import agent_options\n"
        f"agent_options.log_to_stderr(Redactor(['{SECRET}']))\n"
        f"raise ValueError('{SECRET}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=unmeasured() | {log_format.VARIABLE: "json"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (done.returncode, line["level"]) == (1, "critical")
    assert line["error"].endswith("ValueError: [redacted]")


@pytest.mark.process
def test_a_word_that_is_no_format_is_refused(tmp_path: Path) -> None:
    for arguments in (["network", "serve"], ["agent", "--json-stream"]):
        with begun(tmp_path, arguments, TRUNKLINE_LOG_FORMAT="xml") as child:
            _, said = child.communicate("", timeout=PATIENCE_SECONDS)
        assert child.returncode == 2
        assert "xml" in said
