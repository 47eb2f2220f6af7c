"""Claude Code and Codex as they are talked to: what was recorded from the real ones, line by line, without a process.

In `recorded/` are whole turns of Claude Code 2.1.197 and codex-cli 0.166.0, whose model was played: what the program
said, and what the bridge said. Lines that mean nothing here, and long lists, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.fake_dialogue import claude_request, codex_command
from trunkline.wires.agentproc import streams
from trunkline.wires.agentproc.codec import MAX_LINE, Dialogue
from trunkline.wires.agentproc.messages import (
    UNANSWERABLE,
    Error,
    Ignored,
    Partial,
    PermissionRequest,
    PermissionResponse,
    Result,
    Said,
    SessionId,
    TurnRequest,
    Used,
    Withdrawn,
)
from trunkline.wires.agentproc.streams import codex_app_server
from trunkline.wires.agentproc.streams import dialogue as base

RECORDED = Path(__file__).parent / "recorded"
NAMES = sorted(path.stem for path in RECORDED.glob("*.jsonl"))

Line = dict[str, Any]


def stream_of(name: str) -> str:
    return "claude-control" if name.startswith("claude") else "codex-app-server"


def data(*lines: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


class Replay:
    """One recorded turn, played to our side of it. Each request gets the answer that it got then."""

    def __init__(self, name: str) -> None:
        rows = [json.loads(row) for row in (RECORDED / f"{name}.jsonl").read_text().splitlines()]
        self.expected = [row["line"] for row in rows if row["from"] == "bridge"]
        self.said: list[Said] = []
        self.asked: list[PermissionRequest] = []
        talk = streams.converse(stream_of(name))
        told = talk.begin(TurnRequest("please do it", permission=True))
        answers = iter(line for line in self.expected if is_answer(line))
        for row in rows:
            if row["from"] == "bridge":
                continue
            said = talk.feed(data(row["line"]))
            told += talk.outgoing()
            self.said += said
            for request in said:
                if isinstance(request, PermissionRequest):
                    self.asked.append(request)
                    told += talk.respond(recorded_answer(request, next(answers)))
        self.said += talk.finish()
        self.told = [json.loads(line) for line in told.splitlines()]


def is_answer(line: Line) -> bool:
    """Whether a line of the bridge answers a request that a person decided."""
    if "Nobody sees this question" in str(line):
        return False
    return line.get("type") == "control_response" or ("result" in line and "method" not in line)


def recorded_answer(request: PermissionRequest, line: Line) -> PermissionResponse:
    yes = '"allow"' in json.dumps(line) or '"accept"' in json.dumps(line)
    behavior: Literal["allow", "deny"] = "allow" if yes else "deny"
    return PermissionResponse(request.request_id, behavior, "" if yes else "not now")


@pytest.mark.parametrize("name", NAMES)
def test_the_bridge_says_what_it_said_to_the_real_program(name: str) -> None:
    replay = Replay(name)
    for line in (*replay.told, *replay.expected):
        if line.get("method") == "initialize":
            line["params"]["clientInfo"].pop("version")
    assert replay.told == replay.expected


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_turn_is_answered_whole_and_once(name: str) -> None:
    said = Replay(name).said
    shown = "".join(each.text for each in said if isinstance(each, Partial))
    assert shown.endswith("All done now.")
    results = [each for each in said if isinstance(each, Result)]
    assert [result.text for result in results] == [shown]
    assert results[0].usage
    assert results[0].usage["input_tokens"] % 10 == 0
    assert results[0].usage["output_tokens"] % 5 == 0
    assert len([each for each in said if isinstance(each, SessionId)]) == 1
    assert not [each for each in said if isinstance(each, Error | Ignored | Withdrawn)]


def asked(name: str) -> list[tuple[str, Mapping[str, Any], str, tuple[str, ...] | None]]:
    return [(each.tool_name, each.input, each.description, each.paths) for each in Replay(name).asked]


def test_what_a_person_is_asked_is_the_whole_of_what_will_be_done() -> None:
    made = {"command": "touch made.txt", "description": "Make a file"}
    project = "/home/u/project"
    assert asked("claude-allow") == [("Bash", made, "Make a file", (*made.values(), f"{project}/made.txt"))]
    write, edit = asked("claude-edit")
    assert write[:2] == ("Write", {"file_path": f"{project}/a.txt", "content": "one\ntwo\n"})
    assert edit[1] == {
        "file_path": f"{project}/a.txt", "old_string": "two", "new_string": "three", "replace_all": False
    }  # fmt: skip
    assert edit[3] == (f"{project}/a.txt",)
    command = {"command": "touch made.txt", "shell": "/bin/bash -lc", "cwd": project}
    assert asked("codex-allow") == [("Bash", command, "Need to make the file.", ("touch made.txt", project))]
    add, update = asked("codex-patch")
    assert add[:2] == ("apply_patch", {f"add {project}/new.txt": "hello\nthere\n"})
    assert update[1] == {f"update {project}/new.txt": "@@ -1,2 +1,2 @@\n-hello\n+bye\n there\n"}
    assert update[3] == (f"{project}/new.txt",)
    message = 'Allow the notes MCP server to run tool "write_note"?'
    assert asked("codex-mcp") == [("mcp__notes__write_note", {"text": "hello"}, message, None)]
    assert asked("claude-question") == []


def test_what_came_of_a_request_is_told_where_it_was_allowed() -> None:
    def used(name: str) -> list[tuple[bool, str]]:
        replay = Replay(name)
        told = [each for each in replay.said if isinstance(each, Used)]
        assert [each.request_id for each in told] == [each.request_id for each in replay.asked[: len(told)]]
        return [(each.worked, each.output) for each in told]

    assert used("claude-allow") == [(True, "(Bash completed with no output)")]
    assert used("claude-deny") == used("codex-deny") == []
    assert [worked for worked, _ in used("claude-edit")] == [True, True]
    assert used("codex-allow") == used("codex-patch") == [(True, "")]
    assert used("codex-mcp") == [(True, "written")]


def codex(*lines: Mapping[str, Any]) -> tuple[Dialogue, list[Said]]:
    """A Codex that has begun its turn, and what the lines after that say."""
    talk = streams.converse("codex-app-server")
    talk.begin(TurnRequest("hi"))
    opened = ({"id": 1, "result": {}}, {"id": 3, "result": {"thread": {"id": "t"}}}, {"id": 4, "result": {}})
    talk.feed(data(*opened))
    talk.outgoing()
    return talk, talk.feed(data(*lines))


def claude(*lines: Mapping[str, Any]) -> tuple[Dialogue, list[Said]]:
    talk = streams.converse("claude-control")
    talk.begin(TurnRequest("hi"))
    return talk, talk.feed(data(*lines))


def answered(talk: Dialogue, request: Said, **changes: Any) -> Line:
    assert isinstance(request, PermissionRequest)
    answer: Line = json.loads(talk.respond(PermissionResponse(request.request_id, "allow").replace(**changes)))
    return answer


def test_codex_is_given_no_other_input_than_it_asked_about() -> None:
    talk, (request,) = codex(codex_command(0, "t", "ls"))
    assert answered(talk, request, updated_input={"command": "rm -r ."})["result"] == {"decision": "decline"}


def test_claude_takes_a_changed_input() -> None:
    talk, (request,) = claude(claude_request(1, "Bash", {"command": "ls"}))
    decision = answered(talk, request, updated_input={"command": "ls -l"})["response"]["response"]
    assert decision == {"behavior": "allow", "updatedInput": {"command": "ls -l"}}


@pytest.mark.parametrize(
    ("command", "words", "shell"),
    [
        ("/bin/bash -lc 'git status'", "git status", "/bin/bash -lc"),
        # What is not one command in one shell is shown as it is.
        ("/bin/bash -lc 'git status'; rm x", "/bin/bash -lc 'git status'; rm x", None),
        ("/bin/bash -c 'a' 'b'", "/bin/bash -c 'a' 'b'", None),
        ('/bin/bash -lc "git status"', '/bin/bash -lc "git status"', None),
        ("/bin/bash -lc git\n", "/bin/bash -lc git\n", None),
        ("git 'status", "git 'status", None),
    ],
)
def test_a_command_is_shown_with_the_shell_that_it_is_for(command: str, words: str, shell: str | None) -> None:
    line = codex_command(0, "t", "x")
    line["params"]["command"] = command
    _, (request,) = codex(line)
    assert isinstance(request, PermissionRequest)
    assert (request.input["command"], request.input.get("shell")) == (words, shell)


def test_what_else_codex_says_of_a_command_is_shown_too() -> None:
    host = {"host": "example.com", "protocol": "https"}
    _, (request,) = codex(codex_command(0, "t", "ls", kind="writeStdin", networkApprovalContext=host))
    assert isinstance(request, PermissionRequest)
    assert request.input["networkApprovalContext"] == host
    assert request.input["kind"] == "writeStdin"


def test_no_change_of_a_patch_hides_another() -> None:
    move = {"type": "update", "move_path": "/etc/b"}
    changes = [
        {"path": "a", "kind": {"type": "add"}, "diff": "1"},
        {"path": "a (2)", "kind": {"type": "add"}, "diff": "2"},
        {"path": "a", "kind": {"type": "add"}, "diff": "2 as well"},
        {"path": "b", "kind": move, "diff": "3"},
        {"path": "c"},
    ]
    item = {"type": "fileChange", "id": "i", "changes": changes}
    params = {"threadId": "t", "itemId": "i", "grantRoot": "/r"}
    began = {"method": "item/started", "params": {"threadId": "t", "item": item}}
    _, (request,) = codex(began, {"method": "item/fileChange/requestApproval", "id": 0, "params": params})
    assert isinstance(request, PermissionRequest)
    assert request.input == {
        "add a": "1", "add a (2)": "2", "add a (3)": "2 as well", "update b, move to /etc/b": "3",
        "change c": {"path": "c"}, "grantRoot": "/r",
    }  # fmt: skip
    assert request.paths == ("a", "a (2)", "a", "b", "c", "/etc/b", "/r")


def test_a_change_that_nobody_has_seen_is_malformed() -> None:
    params = {"threadId": "t", "itemId": "never begun"}
    _, (request,) = codex({"method": "item/fileChange/requestApproval", "id": 0, "params": params})
    assert isinstance(request, PermissionRequest)
    assert request.tool_name == ""


@pytest.mark.parametrize(
    ("tool", "given", "paths"),
    [
        ("Write", {"file_path": "in.txt", "content": "/etc/x"}, ("in.txt",)),
        ("Write", {"file_path": "in.txt", "path": "/etc/x"}, None),
        ("Write", {"file_path": 5, "content": "x"}, None),
        ("NotebookEdit", {"notebook_path": "in.ipynb", "file_path": "/etc/x"}, None),
        ("Read", {"file_path": "in.txt", "offset": 3}, ("in.txt",)),
    ],
)
def test_only_a_tool_that_is_given_what_it_knows_names_one_file(
    tool: str, given: Line, paths: tuple[str, ...] | None
) -> None:
    _, (request,) = claude(claude_request(1, tool, given))
    assert isinstance(request, PermissionRequest)
    assert request.paths == paths


@pytest.mark.parametrize(
    "changes",
    [
        [{"path": 5, "kind": {"type": "add"}, "diff": "1"}],
        [{"path": "a", "diff": "1"}, "/etc/x"],
        [{"path": "a", "kind": {"type": "update", "move_path": ["/etc/x"]}, "diff": "1"}],
        [{"kind": {"type": "add"}, "diff": "1"}],
    ],
)
def test_a_change_of_which_nobody_can_tell_where_it_goes_is_malformed(changes: list[Any]) -> None:
    item = {"type": "fileChange", "id": "i", "changes": changes}
    _, (request,) = codex(
        {"method": "item/started", "params": {"threadId": "t", "item": item}},
        {"method": "item/fileChange/requestApproval", "id": 0, "params": {"threadId": "t", "itemId": "i"}},
    )
    assert isinstance(request, PermissionRequest)
    assert request.tool_name == ""


@pytest.mark.parametrize("root", [5, ["/etc"], {"path": "/etc"}])
def test_a_change_that_wants_a_root_of_which_nobody_can_tell_where_it_is_is_malformed(root: Any) -> None:
    item = {"type": "fileChange", "id": "i", "changes": [{"path": "a", "diff": "1"}]}
    params = {"threadId": "t", "itemId": "i", "grantRoot": root}
    _, (request,) = codex(
        {"method": "item/started", "params": {"threadId": "t", "item": item}},
        {"method": "item/fileChange/requestApproval", "id": 0, "params": params},
    )
    assert isinstance(request, PermissionRequest)
    assert request.tool_name == ""


@pytest.mark.parametrize("more", [{"cwd": 5}, {"command": ["rm", "x"]}])
def test_a_command_of_which_nobody_can_tell_where_it_runs_is_malformed(more: Line) -> None:
    line = codex_command(0, "t", "ls")
    line["params"] |= more
    _, (request,) = codex(line)
    assert isinstance(request, PermissionRequest)
    assert request.tool_name == ""


def test_permissions_are_granted_as_they_were_asked_for_and_for_the_turn() -> None:
    wanted = {"network": {"enabled": True}, "fileSystem": None}
    line = {"method": "item/permissions/requestApproval", "id": "x y",
            "params": {"itemId": "i", "cwd": "/p", "reason": "why", "permissions": wanted}}  # fmt: skip
    talk, (request,) = codex(line)
    assert isinstance(request, PermissionRequest)
    assert (request.tool_name, request.input["permissions"]) == ("request_permissions", wanted)
    granted = {"permissions": {"network": {"enabled": True}}, "scope": "turn"}
    assert answered(talk, request) == {"id": "x y", "result": granted}
    talk, (request,) = codex(line)
    assert answered(talk, request, behavior="deny")["result"] == {"permissions": {}, "scope": "turn"}


@pytest.mark.parametrize(
    "line",
    [
        {"method": "item/tool/requestUserInput", "id": 7, "params": {"questions": []}},
        {"method": "some/new/thing", "id": 7, "params": None},
        {"method": "mcpServer/elicitation/request", "id": 7, "params": {"mode": "form", "message": "Your name?"}},
    ],
)
def test_what_codex_asks_that_no_yes_answers_is_refused_at_once(line: Line) -> None:
    talk, said = codex(line)
    assert [type(each) for each in said] == [Ignored]
    answer = json.loads(talk.outgoing())
    assert answer["id"] == 7
    assert answer.get("result", {}).get("action") == "decline" or answer["error"]["code"] == -32601


@pytest.mark.parametrize("number", [None, True, 1.5, "x" * 1000, [1], {}])
def test_what_codex_asks_under_no_usable_id_is_refused_at_once(number: Any) -> None:
    line = codex_command(0, "t", "ls")
    talk, said = codex({**line, "id": number})
    assert [type(each) for each in said] == [Ignored]
    assert json.loads(talk.outgoing()) == {"id": number, "result": {"decision": "decline"}}


@pytest.mark.parametrize("id", [7, True, "a b", "x" * 1000, ""])
def test_what_claude_asks_under_no_usable_id_is_refused_at_once(id: Any) -> None:
    talk, said = claude({**claude_request(1, "Bash", {"command": "ls"}), "request_id": id})
    assert [type(each) for each in said] == [Ignored]
    answer = json.loads(talk.outgoing())["response"]
    assert (answer["request_id"], answer["response"]["behavior"]) == (id, "deny")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("claude-control", b'{"type":"control_request","request_id":"r","request":'),
        ("codex-app-server", b'{"method":"item/commandExecution/requestApproval","id":0,"params":'),
        ("codex-app-server", b'{"id":0,"method":"item/fileChange/requestApproval","params":'),
    ],
)
def test_a_request_that_cannot_be_read_is_one_that_nobody_can_answer(name: str, line: bytes) -> None:
    deep = line + b'{"a":' * 5000 + b"1" + b"}" * 5001
    long = line + b'"' + b"x" * MAX_LINE + b'"}'
    for unreadable in (deep, long):
        assert UNANSWERABLE in streams.converse(name).feed(unreadable + b"\n")
    assert UNANSWERABLE not in streams.converse(name).feed(b'{"method":"item/completed","params":' + deep + b"\n")
    assert UNANSWERABLE not in streams.converse(name).feed(b"{ type: 'control_request' }\n")


def test_requests_whose_ids_look_alike_are_told_apart() -> None:
    ids = ("a-b", "a b", "5", 5)
    talk, said = codex(*[{**codex_command(0, "t", f"ls {id}"), "id": id} for id in ids])
    assert len({each.request_id for each in said if isinstance(each, PermissionRequest)}) == len(ids)
    for id, request in zip(ids, said, strict=True):
        assert answered(talk, request)["id"] == id


def test_two_requests_at_once_under_one_id_are_both_denied() -> None:
    talk, said = codex(codex_command(0, "t", "ls"), codex_command(0, "t", "rm x"))
    assert [type(each) for each in said] == [PermissionRequest, Withdrawn, Ignored]
    answers = [json.loads(line) for line in talk.outgoing().splitlines()]
    assert answers == [{"id": 0, "result": {"decision": "decline"}}] * 2
    assert isinstance(said[0], PermissionRequest)
    assert talk.respond(PermissionResponse(said[0].request_id, "allow")) == b""


@pytest.mark.parametrize("method", ["item/fileChange/patchUpdated", "item/started"])
def test_a_change_that_becomes_another_while_it_is_asked_about_is_asked_about_again(method: str) -> None:
    def changes(path: str) -> list[Line]:
        return [{"path": path, "kind": {"type": "add"}, "diff": "1"}]

    item = {"type": "fileChange", "id": "i", "changes": changes("a")}
    began = {"method": "item/started", "params": {"threadId": "t", "item": item}}
    other = {
        "threadId": "t",
        "itemId": "i",
        "changes": changes("/etc/x"),
        "item": {**item, "changes": changes("/etc/x")},
    }
    talk, said = codex(
        began,
        {"method": "item/fileChange/requestApproval", "id": 0, "params": {"threadId": "t", "itemId": "i"}},
        began,
        {"method": method, "params": other},
    )
    first, withdrawn, second = said
    assert isinstance(first, PermissionRequest)
    assert withdrawn == Withdrawn(first.request_id)
    assert isinstance(second, PermissionRequest)
    assert (second.input, second.paths) == ({"add /etc/x": "1"}, ("/etc/x",))
    assert second.request_id != first.request_id
    assert talk.respond(PermissionResponse(first.request_id, "allow")) == b""
    assert answered(talk, second) == {"id": 0, "result": {"decision": "accept"}}


def test_a_program_that_asks_for_the_impossible_without_end_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_REFUSALS", 3)
    talk, said = codex(*[{"method": "some/new/thing", "id": number} for number in range(10)])
    assert len(talk.outgoing().splitlines()) == 3
    assert len([each for each in said if isinstance(each, Error)]) == 1


def test_what_codex_refuses_is_the_error_of_the_turn() -> None:
    talk = streams.converse("codex-app-server")
    talk.begin(TurnRequest("hi", session_id="gone"))
    talk.feed(data({"id": 1, "result": {}}))
    resumed = json.loads(talk.outgoing().splitlines()[-1])
    assert resumed["params"] == {"threadId": "gone", "excludeTurns": True}
    message = "no rollout found for thread id gone"
    assert talk.feed(data({"id": 3, "error": {"code": -32600, "message": message}})) == [Error(message)]
    assert streams.is_dead_session(message)


def test_a_key_logs_codex_in_for_this_run_alone_and_is_no_argument() -> None:
    talk = streams.converse("codex-app-server")
    assert talk.arguments({}) == ()
    assert talk.arguments({"CODEX_API_KEY": "sk-own"}) == ("-c", 'cli_auth_credentials_store="ephemeral"')
    talk.begin(TurnRequest("hi"))
    talk.feed(data({"id": 1, "result": {}}))
    login = json.loads(talk.outgoing().splitlines()[-1])
    assert login == {"id": 2, "method": "account/login/start", "params": {"type": "apiKey", "apiKey": "sk-own"}}
    talk.feed(data({"id": 2, "result": {"type": "apiKey"}}))
    assert json.loads(talk.outgoing())["method"] == "thread/start"


def test_a_key_that_other_programs_use_too_logs_codex_in_only_where_nobody_is_logged_in(tmp_path: Path) -> None:
    talk = streams.converse("codex-app-server")
    environ = {"HOME": str(tmp_path), "OPENAI_API_KEY": "sk-common"}
    assert talk.arguments(environ) == ("-c", 'cli_auth_credentials_store="ephemeral"')
    talk.begin(TurnRequest("hi"))
    talk.feed(data({"id": 1, "result": {}}))
    assert json.loads(talk.outgoing().splitlines()[-1])["params"] == {"type": "apiKey", "apiKey": "sk-common"}

    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    assert talk.arguments(environ) == ()
    assert talk.arguments({**environ, "CODEX_API_KEY": "sk-own"})
    assert talk.arguments({**environ, "CODEX_HOME": str(tmp_path / "elsewhere")})


def test_codex_counts_what_a_resumed_thread_spends_in_this_turn_alone() -> None:
    def report(turn: str, total: int, last: int) -> Line:
        usage = {"total": {"totalTokens": total}, "last": {"totalTokens": last}}
        return {"method": "thread/tokenUsage/updated", "params": {"threadId": "t", "turnId": turn, "tokenUsage": usage}}

    talk = streams.converse("codex-app-server")
    talk.begin(TurnRequest("hi", session_id="t"))
    talk.feed(data({"id": 1, "result": {}}, {"id": 3, "result": {"thread": {"id": "t"}}}))
    # What was spent before comes again, as of the turn that spent it.
    talk.feed(data(report("before", 100, 30), {"id": 4, "result": {"turn": {"id": "now"}}}))
    talk.feed(data(report("now", 110, 10), report("now", 125, 15)))
    said = talk.feed(data({"method": "turn/completed", "params": {"threadId": "t", "turn": {"status": "completed"}}}))
    assert [each.usage for each in said if isinstance(each, Result)] == [{"total_tokens": 25}]


def test_codex_may_begin_any_number_of_items_and_the_last_of_them_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_app_server, "_MAX_ITEMS", 2)

    def begun(name: str) -> Line:
        item = {"type": "fileChange", "id": name, "changes": [{"path": name, "diff": "+"}]}
        return {"method": "item/started", "params": {"threadId": "t", "item": item}}

    def asked(name: str) -> Line:
        params = {"threadId": "t", "itemId": name}
        return {"method": "item/fileChange/requestApproval", "id": name, "params": params}

    _, said = codex(*map(begun, "abc"), *map(asked, "abc"))
    assert [each.tool_name for each in said if isinstance(each, PermissionRequest)] == [
        "", "apply_patch", "apply_patch"
    ]  # fmt: skip


def test_what_claude_code_says_behind_its_result_is_no_part_of_the_turn() -> None:
    talk, said = claude({"type": "result", "subtype": "success", "is_error": False, "result": "done"})
    assert said
    late = claude_request(9, "Bash", {"command": "ls"})
    assert (
        talk.feed(data(late, {"type": "control_request", "request_id": "r10", "request": {"subtype": "other"}})) == []
    )
    assert talk.outgoing() == b""


def test_an_interrupted_turn_is_an_error() -> None:
    turn = {"threadId": "t", "turn": {"status": "interrupted", "error": None}}
    _, said = codex({"method": "turn/completed", "params": turn})
    assert said == [Error("Codex ended the turn: interrupted.")]


@pytest.mark.parametrize("name", streams.DIALOGUES)
def test_hostile_output_neither_raises_nor_asks_anything(name: str) -> None:
    values: tuple[object, ...] = (None, 7, "x", [], {}, [None, 3], {"type": 5, "id": 9, "threadId": 1, "item": 3})
    keys = ("id", "params", "result", "error", "request", "request_id", "message", "session_id")
    methods = ("item/started", "item/completed", "turn/completed", "error", "thread/tokenUsage/updated",
               "serverRequest/resolved", "item/commandExecution/requestApproval", "item/fileChange/requestApproval",
               "item/permissions/requestApproval", "mcpServer/elicitation/request",
               "item/fileChange/patchUpdated")  # fmt: skip
    kinds = ("control_request", "control_cancel_request", "result", "user")
    for value in values:
        for method in methods:
            talk = streams.converse(name)
            talk.begin(TurnRequest("hi"))
            line = {**dict.fromkeys(keys, value), "method": method}
            said = talk.feed(data(line, {k: v for k, v in line.items() if k != "id"}, {**line, "id": 1}))
            assert all(not each.tool_name for each in said if isinstance(each, PermissionRequest))
        for kind in kinds:
            talk = streams.converse(name)
            said = talk.feed(data({**dict.fromkeys(keys, value), "type": kind})) + talk.finish()
            assert all(not each.tool_name for each in said if isinstance(each, PermissionRequest))
