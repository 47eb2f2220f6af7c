"""What the documentation says in its own words, where the code could have changed since."""

from __future__ import annotations

import inspect
import re
import shlex
import tomllib
from typing import Any

import click
import pytest
from bench import _coder_furnished as coder_furnished
from bench import coder as coder_bench

from tests.docs.examples import ROOT
from tests.docs.generated import tools
from trunkline.agents import player, registry
from trunkline.agents.coder import compaction, conversation_hooks, files, guards, instructions, settings_hooks, words
from trunkline.agents.coder import hooks as coder_hooks
from trunkline.agents.graph import agent as graph_agent
from trunkline.agents.graph import (
    agent_engine,
    agent_models,
    embedded,
    loop_budget,
    mustache,
    plan,
    vectors,
    yaml_graph,
)
from trunkline.agents.graph import turn as graph_turn
from trunkline.base import http, jsontext, patterns, stdio, vocabulary
from trunkline.base.config_schema import ANY, Schema
from trunkline.base.config_services import SECTIONS
from trunkline.cli import chat, chat_once
from trunkline.cli.app import app
from trunkline.core import approvals, command_files, performer, recorder, turns
from trunkline.exchange import config_schema
from trunkline.models import (
    abilities,
    anthropic,
    backoff,
    catalog,
    catalog_entry,
    discover,
    discover_servers,
    limits,
    llama_language,
    llama_server,
    local,
    openai,
    sampling,
    tool_calls,
    vertex,
)
from trunkline.models.providers import PROVIDERS
from trunkline.tools import bash, bash_background, bash_live, bash_output, glob, grep, pdf, pictures, spawn
from trunkline.tools import files as tool_files
from trunkline.tools.mcp import server as mcp_server
from trunkline.tools.mcp import servers as mcp_servers
from trunkline.wires import ledger, stdio_host
from trunkline.wires.jsonstream import codec, drive
from trunkline.wires.tryll import drive as tryll_drive
from trunkline.wires.tryll import serve as tryll_serve
from trunkline.wires.tryll.codec import reader as tryll_reader
from trunkline.wires.tryll.drive import voice as tryll_drive_voice
from trunkline.wires.tryll.messages import CreateVoiceInputRequest
from trunkline.wires.tryll.serve import quota as tryll_quota
from trunkline.wires.tryll.serve import scheduler as tryll_queue
from trunkline.wires.tryll.serve import session as tryll_session

pytestmark = pytest.mark.docs

KIB, MIB = 1024, 1024 * 1024

#: Document, words, and the fact in the code that they repeat.


def _small_model() -> Any:
    return catalog.find("smollm2-135m").sampling


QUOTED: list[tuple[str, str, Any, Any]] = [
    ("reference/jsonstream.md", "an agent reads is 16 MiB", codec.MAX_LINE, 16 * MIB),
    ("reference/jsonstream.md", "JSON may be nested 200 deep", jsontext.MAX_DEPTH, 200),
    ("reference/jsonstream.md", "makes the agent wait, from 1 MiB on", stdio.HIGH_WATER, MIB),
    ("reference/jsonstream.md", "beyond 4 MiB the agent reads no more", stdio_host.FLOODED_BYTES, 4 * MIB),
    ("reference/jsonstream.md", "may hold 100,000 members and items", codec.MAX_VALUES, 100_000),
    ("reference/jsonstream.md", "at most 1,024 characters", codec.MAX_MSG_ID, 1024),
    ("reference/jsonstream.md", "beyond 10,000, at once", turns.MAX_WAITING, 10_000),
    ("reference/jsonstream.md", "Beyond 1,000 waiting ones", turns.MAX_QUEUED, 1000),
    ("reference/jsonstream.md", "reason `Stopped by user`", turns.STOPPED, "Stopped by user"),
    ("reference/jsonstream.md", "`User denied`", turns.DENIED, "User denied"),
    ("reference/jsonstream.md", "get half a second to end", stdio_host.LAST_ANSWER_SECONDS, 0.5),
    ("reference/jsonstream.md", "`Read`, `Grep` and `Glob`", vocabulary.DEFAULT_ALLOW, ("Read", "Grep", "Glob")),
    ("reference/jsonstream.md", "at least every 10 s", player.PROGRESS_SECONDS, 10.0),
    ("how-to/write-an-agent.md", "after 0.7 s its task is cancelled", performer.CANCEL_SECONDS, 0.7),
    ("how-to/drive-an-agent.md", "after 30 s (`ready_seconds`)", drive.READY_SECONDS, 30.0),
    ("how-to/drive-an-agent.md", "killed after 0.6 s", drive.STOP_SECONDS, 0.6),
    ("how-to/drive-an-agent.md", "after 5 s of silence", drive.ERROR_QUIET_SECONDS, 5.0),
    ("how-to/drive-an-agent.md", "`AgentFailed` after 30 s", drive.SEND_SECONDS, 30.0),
    ("explanation/sessions-and-log.md", "an agent gets 0.7 s", performer.CANCEL_SECONDS, 0.7),
    ("explanation/sessions-and-log.md", "(256 KiB, and four times", recorder.CHECKPOINT_BYTES, 256 * 1024),
    ("explanation/sessions-and-log.md", "(256 KiB, and four times", recorder.CHECKPOINT_RATIO, 4),
    ("../README.md", "has 98 MB", round(catalog.find("smollm2-135m").size / 1e6), 98),
    ("how-to/use-a-local-model.md", "up to 8,192 tokens", catalog_entry.USUAL_WINDOW, 8192),
    ("how-to/use-a-local-model.md", "an answer has at most 1,024", local.DEFAULT_MAX_TOKENS, 1024),
    ("how-to/use-a-local-model.md", "default: all but one core, at most 8", llama_server.MAX_THREADS, 8),
    ("how-to/use-a-local-model.md", "temperature = 0.2", local.TEMPERATURE, 0.2),
    ("how-to/use-a-local-model.md", "at `127.0.0.1:11434`", discover_servers.OLLAMA_PORT, 11434),
    ("how-to/use-a-local-model.md", "at `127.0.0.1:8080`", discover_servers.LLAMA_SERVER_URL, "http://127.0.0.1:8080"),
    ("how-to/use-a-local-model.md", "(8,192 tokens by default)", limits.LOCAL_CONTEXT_WINDOW, 8192),
    (
        "how-to/serve-local-models-to-a-game.md",
        "`smollm2-135m`, 98 MB",
        round(catalog.find("smollm2-135m").size / 1e6),
        98,
    ),
    (
        "how-to/serve-local-models-to-a-game.md",
        "Two to four conversations",
        (llama_language.MIN_PLACES, llama_language.MAX_PLACES),
        (2, 4),
    ),
    (
        "how-to/serve-local-models-to-a-game.md",
        "complete within 60 s",
        tryll_serve.ServerSettings().frame_seconds,
        60.0,
    ),
    (
        "how-to/serve-local-models-to-a-game.md",
        "nothing for 5 minutes",
        tryll_serve.ServerSettings().stall_seconds,
        300.0,
    ),
    ("reference/tryll.md", "nothing for 5 minutes is cut off", tryll_serve.ServerSettings().stall_seconds, 300.0),
    ("reference/tryll.md", "frame and 64 KiB more; at most 4 MiB", tryll_reader.SHARED_TEXT, 64 * KIB),
    ("reference/tryll.md", "frame and 64 KiB more; at most 4 MiB", tryll_reader.MAX_TEXT, 4 * MIB),
    ("reference/tryll.md", "conversations | 64 MiB of all agents", tryll_quota.MAX_SAID_BYTES, 64 * MIB),
    ("reference/tryll.md", "tool call over 128 Ki characters", tool_calls.MAX_ARGUMENTS, 128 * KIB),
    ("reference/files.md", "; 8 GiB, of which", vectors.MAX_STORED_BYTES, 8 * 1024 * MIB),
    ("how-to/serve-local-models-to-a-game.md", "turns get 2 s to finish", tryll_serve.GRACE_SECONDS, 2.0),
    ("how-to/serve-local-models-to-a-game.md", "agents per session | 4,096", tryll_session.MAX_AGENTS, 4096),
    ("how-to/serve-local-models-to-a-game.md", "session | 64 MiB in total", tryll_quota.MAX_KEPT_BYTES, 64 * MIB),
    (
        "how-to/serve-local-models-to-a-game.md",
        "pending requests per session | 64, and 16 MiB",
        tryll_queue.MAX_REQUESTS,
        64,
    ),
    (
        "how-to/serve-local-models-to-a-game.md",
        "pending requests per session | 64, and 16 MiB",
        tryll_queue.MAX_REQUEST_BYTES,
        16 * MIB,
    ),
    ("how-to/serve-local-models-to-a-game.md", "nodes per graph | 256", plan.MAX_NODES, 256),
    ("how-to/serve-local-models-to-a-game.md", "a turn runs 64 unless", graph_agent.MAX_STEPS, 64),
    ("how-to/serve-local-models-to-a-game.md", "up to 10,000 |", graph_agent.MAX_MAX_STEPS, 10_000),
    ("how-to/hooks.md", "all its hooks together have at most 5 s", conversation_hooks.END_SECONDS, 5.0),
    ("how-to/hooks.md", "seconds, 30 unless given, at most 600", settings_hooks.DEFAULT_SECONDS, 30.0),
    ("how-to/hooks.md", "seconds, 30 unless given, at most 600", settings_hooks.MOST_SECONDS, 600.0),
    ("how-to/hooks.md", "at most 20,000 characters", coder_hooks.MOST_CONTEXT_CHARS, 20_000),
    ("how-to/use-mcp-servers.md", "a server has 30 s to start", mcp_servers.STARTUP_SECONDS, 30.0),
    ("how-to/use-mcp-servers.md", "reconnects after 0.5 s", mcp_server.FIRST_WAIT_SECONDS, 0.5),
    ("how-to/use-mcp-servers.md", "doubling the pause up to 30 s", mcp_server.LONGEST_WAIT_SECONDS, 30.0),
    ("how-to/use-mcp-servers.md", "failed 8 times in a row", mcp_server.MAX_FAILURES, 8),
    ("how-to/use-mcp-servers.md", "calls wait for up to 30 s", mcp_server.RETURN_SECONDS, 30.0),
    ("reference/cli.md", "| 3 | `chat`: it failed, and a tool", chat_once.EXIT_DENIED, 3),
    ("reference/configuration.md", "A file is read up to 64 KiB", instructions.MAX_FILE_BYTES, 64 * KIB),
    ("reference/configuration.md", "all of them together up to 80,000", instructions.MAX_CHARS, 80_000),
    ("reference/configuration.md", "up to five deep", instructions.MAX_DEPTH, 5),
    ("reference/configuration.md", "PDF up to 10 MiB and 100 pages", files.MAX_BYTES, 10 * MIB),
    ("reference/configuration.md", "PDF up to 10 MiB and 100 pages", files.MAX_PDF_PAGES, 100),
    ("reference/configuration.md", "its first 100,000 characters", files.MAX_TEXT_CHARS, 100_000),
    ("reference/configuration.md", "its first 200 entries", files.MAX_ENTRIES, 200),
    ("reference/configuration.md", "up to 3.75 MiB and 8,000 pixels", pictures.LARGEST_PICTURE, 3.75 * MIB),
    ("reference/models.md", "The region is `global`", vertex.DEFAULT_REGION, "global"),
    ("reference/models.md", "which get 1 s to answer", discover_servers.PROBE_SECONDS, 1.0),
    ("reference/models.md", "tried again after about 0.5 s", backoff.FIRST_SECONDS, 0.5),
    ("reference/models.md", "twice as long each time, up to 8 s", backoff.LONGEST_SECONDS, 8.0),
    ("reference/models.md", "After 30 s, or 8 tries", backoff.GIVE_UP_SECONDS, 30.0),
    ("reference/models.md", "After 30 s, or 8 tries", backoff.MAX_TRIES, 8),
    ("reference/models.md", "up to 300 s in all", backoff.MAX_ASKED_SECONDS, 300.0),
    ("reference/models.md", "A connection gets 10 s", http.CONNECT_SECONDS, 10.0),
    ("reference/models.md", "after 600 s of silence", http.READ_SECONDS, 600.0),
    ("reference/models.md", "Of others, 128,000 tokens", limits.DEFAULT_CONTEXT_WINDOW, 128_000),
    ("reference/models.md", "Claude from 4.7 on", abilities.is_adaptive("claude-opus-4-6"), False),
    ("reference/models.md", "Claude from 4.7 on", abilities.is_adaptive("claude-opus-4-7"), True),
    ("reference/tools.md", "Of a file over 10 MiB", tool_files.LARGEST_FILE, 10 * MIB),
    ("reference/tools.md", "up to 3.75 MiB and 8,000 pixels", pictures.LARGEST_PICTURE, 3.75 * MIB),
    ("reference/tools.md", "up to 3.75 MiB and 8,000 pixels", pictures.LONGEST_SIDE, 8000),
    ("reference/tools.md", "in a process that gets 30 s", pdf.PDF_SECONDS, 30.0),
    ("reference/tools.md", "120 s unless the call says otherwise", bash.DEFAULT_TIMEOUT_MS, 120_000),
    ("reference/tools.md", "600 s at most", bash.MAX_TIMEOUT_MS, 600_000),
    ("reference/tools.md", "a sign of life every 5 s", bash_live.SILENT_SECONDS, 5.0),
    ("reference/tools.md", "ten lines at a time at most", bash_live.LIVE_LINES, 10),
    ("reference/tools.md", "16 may run at once", bash_background.MAX_RUNNING, 16),
    ("reference/tools.md", "the last 128 KiB", bash_background.UNREAD_BYTES, 128 << 10),
    ("reference/tools.md", "the first and the last 256 KiB", bash_output.HEAD_BYTES, 256 * KIB),
    ("reference/tools.md", "the first and the last 256 KiB", bash_output.TAIL_BYTES, 256 * KIB),
    ("reference/tools.md", "up to 16 such commands at once", bash.MAX_BACKGROUND, 16),
    ("reference/permissions.md", "more than 2,000 files", command_files.MOST_FILES, 2_000),
    ("reference/permissions.md", "more than 32 directories", command_files.MOST_DIRECTORIES, 32),
    ("reference/permissions.md", "more than 10,000 names", command_files.MOST_ENTRIES, 10_000),
    ("reference/permissions.md", "longer than 4,096 characters", patterns.LONGEST_PATH, 4_096),
    ("reference/tools.md", "the newest first, 100 at most", glob.MOST_FILES, 100),
    ("reference/tools.md", "looks for 10 s at most", glob.GLOB_SECONDS, 10.0),
    ("reference/tools.md", "Grep gives 250 lines at most", grep.MOST_LINES, 250),
    ("reference/tools.md", "cut at 500 characters", grep.LONGEST_LINE, 500),
    ("reference/tools.md", "searches for 30 s at most", grep.GREP_SECONDS, 30.0),
    ("reference/tools.md", "Up to 5 sub-agents at once", spawn.MAX_TASKS, 5),
    ("reference/graph-nodes.md", "at most 1,048,576 characters", agent_engine.MAX_ANSWER, MIB),
    ("reference/graph-nodes.md", "may have 10000 tags", mustache.MAX_TAGS, 10_000),
    ("reference/graph-nodes.md", "names of 1024 characters", mustache.MAX_NAME, 1024),
    ("reference/graph-nodes.md", "or 16 names", mustache.MAX_DOTTED, 16),
    ("reference/graph-nodes.md", "take 100000 steps", mustache.MAX_STEPS, 100_000),
    ("reference/graph-nodes.md", "more than 20000 records", graph_turn.MAX_CHUNKS, 20_000),
    ("reference/graph-nodes.md", "more than 1000000 steps", graph_turn.MAX_STEPS, 1_000_000),
    ("reference/tryll.md", "5 ms of each round", loop_budget.SHARE_SECONDS, 0.005),
    ("how-to/write-a-graph.md", "up to a hundred problems", yaml_graph.MAX_COMPLAINTS, 100),
    ("reference/graph-nodes.md", "| `max_tokens` | 2048 |", sampling.DEFAULT_SAMPLING.max_tokens, 2048),
    ("reference/graph-nodes.md", "| `temperature` | 0.7 |", sampling.DEFAULT_SAMPLING.temperature, 0.7),
    ("reference/graph-nodes.md", "| `min_p` | 0.05 |", sampling.DEFAULT_SAMPLING.min_p, 0.05),
    ("reference/graph-nodes.md", "the catalog says 256", _small_model().max_tokens, 256),
    ("reference/graph-nodes.md", "10000 of them, with 200000 values", embedded.MAX_INLINE_RECORDS, 10_000),
    ("reference/tryll.md", "10,000 records, and 200,000 values", embedded.MAX_INLINE_VALUES, 200_000),
    ("reference/tryll-client.md", "| a turn | 120 |", tryll_drive.TURN_SECONDS, 120),
    ("reference/tryll-client.md", "| models and embedded storages | 300 |", tryll_drive.MODEL_SECONDS, 300),
    ("reference/tryll-client.md", "| requests | 30 |", tryll_drive.REQUEST_SECONDS, 30),
    ("reference/tryll-client.md", "| to connect | 30 |", tryll_drive.CONNECT_SECONDS, 30),
    ("reference/tryll-client.md", "six attempts in about three seconds", sum(tryll_drive.Reconnect().pauses()) // 1, 3),
    ("reference/tryll-client.md", "last words of an utterance | 60 |", tryll_drive_voice.TRANSCRIPT_SECONDS, 60),
    ("reference/graph-nodes.md", "in up to 256 conversations", agent_models.MAX_CONVERSATIONS, 256),
    ("reference/graph-nodes.md", "up to 32 conversations", agent_models.MAX_SESSION_CONVERSATIONS, 32),
    ("explanation/figures.md", "an empty home | `python -c pass` | at most 6x", coder_bench.READY_GOAL.limit, 6),
    (
        "explanation/figures.md",
        "its model on loopback | `python -c pass` | at most 12x",
        coder_bench.FIRST_WORD_GOAL.limit,
        12,
    ),
    ("explanation/figures.md", "cost of turn 5 | at most 1.1x", coder_bench.FLAT_GOAL.limit, 1.1),
    ("explanation/figures.md", "cost of turn 5 |", coder_bench.EARLY, 5),
    ("explanation/figures.md", "the same with 20 skills", coder_furnished.SKILLS, 20),
    ("explanation/figures.md", "20 skills and 3 hooks", coder_furnished.HOOKS, 3),
    ("explanation/figures.md", "log of 300 short turns | 250 KiB", coder_bench.LOG_KIB, 250),
    ("explanation/figures.md", "log of 300 short turns |", coder_bench.SIZES["normal"].short_turns, 300),
    ("explanation/coding-agent.md", "up to 5 tasks", spawn.MAX_TASKS, 5),
    ("explanation/coding-agent.md", "60 %", round(compaction.CLEAR_SHARE * compaction.SUMMARISE_AT, 9), 0.6),
    ("explanation/coding-agent.md", "80 %", compaction.SUMMARISE_AT, 0.8),
    ("explanation/coding-agent.md", "95 %", compaction.DROP_AT, 0.95),
    ("explanation/coding-agent.md", "the newest 5 stay", compaction.KEPT_RESULTS, 5),
    ("explanation/coding-agent.md", "After 3 summaries in a row", compaction.MAX_FAILURES, 3),
    ("explanation/coding-agent.md", "grown by another 5 %", compaction.ASK_AGAIN_SHARE, 0.05),
    ("how-to/hooks.md", "grown by 5 %", compaction.ASK_AGAIN_SHARE, 0.05),
    ("explanation/coding-agent.md", "in the same way 3 times", guards.SAME_FAILURES, 3),
    ("explanation/coding-agent.md", "no call of 3 rounds", guards.MALFORMED_ROUNDS, 3),
    ("explanation/coding-agent.md", "every call of 8 rounds", guards.FAILED_ROUNDS, 8),
    ("explanation/coding-agent.md", "the same results 10 times", guards.SAME_ROUNDS, 10),
    ("explanation/coding-agent.md", f"`{words.UNSEEN}`", True, True),
    ("explanation/coding-agent.md", f"`{words.NOT_RUN}`", True, True),
    ("explanation/coding-agent.md", f"`{turns.STOPPED}` for the rest", True, True),
]


def document(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "words", "fact", "told"), QUOTED, ids=[f"{name}: {words}" for name, words, _, _ in QUOTED]
)
def test_a_limit_that_is_quoted_is_the_one_in_the_code(name: str, words: str, fact: Any, told: Any) -> None:
    assert words in " ".join(document(name).split())
    assert fact == told


def rows(text: str) -> list[list[str]]:
    """The rows of all tables of a document."""
    lines = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines]


def test_the_modes_are_told_as_they_are() -> None:
    told = {row[0].strip("`"): row[2:6] for row in rows(document("explanation/approvals.md")) if row[0].startswith("`")}
    assert told.keys() == approvals.MODES["yolo"]
    for category in approvals.MODES["yolo"]:
        cells = told[category]
        judged = [approvals.Policy(mode, allow=()).verdict("Tool", category) for mode in approvals.MODES]
        assert cells == [{"allow": "allows", "ask": "asks", "deny": "denies"}[verdict] for verdict in judged]


def test_the_readme_calls_a_wire_done_exactly_if_it_is_in_the_ledger() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    status = {row[0].strip("`"): row[-1] for row in rows(readme) if len(row) == 3 and row[0].startswith("`")}
    assert status.keys() >= {"jsonstream", "agentproc", "sns", "tryll", "mcp", "openai", "acp"}
    assert {wire for wire, words in status.items() if words.startswith("done")} == set(ledger.WIRES)
    unfinished = {words.partition(":")[0] for wire, words in status.items() if wire not in ledger.WIRES}
    assert unfinished <= {"planned", "begun"}


def test_the_readme_begins_with_who_it_is_for_and_a_command_that_each_can_try() -> None:
    first_screen, second = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[:2]
    assert second.startswith("The exchange")
    tries = [row[2].strip("`") for row in rows(first_screen) if row[2].startswith("`")]
    assert len(first_screen.splitlines()) <= 30
    assert len(tries) == 8
    for command in map(shlex.split, tries):
        assert command[0] == "trunkline"
        group: click.Command = app
        for word in command[1:]:
            found = group.get_command(click.Context(group), word) if isinstance(group, click.Group) else None
            if found is None:
                break
            group = found
        assert not isinstance(group, click.Group), command


def test_every_agent_there_is_is_named_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in registry.names() if f"`{name}`" not in readme] == []


def test_every_providers_variable_is_in_the_reference() -> None:
    text = document("reference/environment.md")
    variables = [variable for provider in PROVIDERS.values() for variable in provider.variables.values()]
    assert len(variables) == 12
    assert [variable for variable in variables if f"`{variable}`" not in text] == []


def test_every_key_that_chat_looks_for_is_in_the_reference() -> None:
    text = document("reference/environment.md")
    variables = [*discover.KEYS, *discover.AWS_VARIABLES, *vertex.PROJECT_VARIABLES]
    assert [variable for variable in variables if f"`{variable}`" not in text] == []


def test_every_compat_key_is_explained() -> None:
    section = document("reference/models.md").partition("## Compat keys")[2].partition("\n## ")[0]
    told = {key for row in rows(section) for key in re.findall(r"`(\w+)`", row[0])}
    assert told == openai.COMPAT_KEYS | anthropic.COMPAT_KEYS | local.COMPAT_KEYS


def test_the_calls_of_the_tryll_client_are_written_as_they_are() -> None:
    text = re.sub(r"```.*?```", "", document("reference/tryll-client.md"), flags=re.DOTALL)
    places = (tryll_drive, tryll_drive.Tryll, tryll_drive.RemoteAgent, tryll_drive.RemoteVoice)
    seen = set()
    for name, written in re.findall(r"`(\w+)\(([^`)]*(?:\(\))?[^`)]*)\)`", text):
        called = next((getattr(place, name) for place in places if hasattr(place, name)), None)
        if called is None or "..." in written:
            continue
        known = {key: each for key, each in inspect.signature(called).parameters.items() if key != "self"}
        if known.pop("options", None):
            voice = CreateVoiceInputRequest.__defaults__.items()
            known |= {key: inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=each) for key, each in voice}
        told = inspect.signature(eval(f"lambda {written}: None", dict(vars(tryll_drive)))).parameters
        by_place = [key for key, each in told.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
        assert by_place == list(known)[: len(by_place)], name
        for key, each in told.items():
            assert known[key].kind is each.kind, (name, key)
            assert each.default in (each.empty, known[key].default), (name, key)
            seen.add((name, key))
    assert {("Tryll", "config"), ("create_agent", "max_steps"), ("voice_input", "channels")} <= seen


def test_every_tool_is_named_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (listed,) = (row[1] for row in rows(readme) if row[0] == "tools")
    assert [tool.name for tool in tools() if not re.search(rf"\b{tool.name}\b", listed)] == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += [name for extra in project["project"]["optional-dependencies"].values() for name in extra]
    names = {re.split(r"[^\w.-]", wish)[0] for wish in wanted} - {"trunkline"}
    taken = document("explanation/dependencies.md").partition("## Not taken")[0]
    assert [name for name in sorted(names) if f"`{name}`" not in taken] == []


def test_the_help_of_chat_names_every_form_of_an_agent() -> None:
    assert [form for form in registry.FORMS if form not in (chat.command.help or "")] == []


def test_every_place_that_is_written_to_is_in_the_list_of_files() -> None:
    written = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"(?:state|cache|config)_dir\([^()]*\), [\"']([\w.-]+)[\"']", path.read_text("utf-8"))
    }
    text = document("reference/files.md")
    assert len(written) > 8
    assert [name for name in sorted(written) if f"`{name}" not in text] == []


def test_the_readme_names_every_extra_that_is_for_users() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {name for row in rows(readme) if len(row) == 3 for name in re.findall(r"`([\w-]+)`", row[1])}
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert declared.keys() - {"all", "dev", "docs"} - named == set()


def test_the_page_of_the_exchanges_file_has_every_key_that_it_may_have() -> None:
    def keys(schema: Schema) -> set[str]:
        """Those that can be used, without the places of secrets, for which there is one rule."""
        secret = {key for key in schema if f"{key}_keyring" in schema}
        return {key for key in schema if key != ANY and key.removesuffix("_env").removesuffix("_keyring") not in secret}

    page = (ROOT / "docs/reference/exchange-file.md").read_text()
    written = set(re.findall(r"[a-z_][a-z0-9_]*", page))
    exchange, agents, people = (config_schema.OWN[name] for name in ("exchange", "agents", "people"))
    assert isinstance(exchange, dict)
    assert isinstance(agents, dict)
    assert isinstance(people, dict)
    agent, person = agents[ANY], people[ANY]
    # `api_key` is there to be refused.
    assert keys(exchange) | keys(agent) - {"api_key"} | keys(agent["budget"]) | keys(person) <= written
    assert {"webhook_env", "webhook_keyring", "token_env", "token_keyring"} <= written
    for name, wire in config_schema.WIRES.items():
        assert f"[wires.{name}]" in page
        # All of a service's keys, the page says: they are on another.
        elsewhere = set(SECTIONS["network"]) if name == "network" else set()
        assert keys(wire) - elsewhere <= written, name
