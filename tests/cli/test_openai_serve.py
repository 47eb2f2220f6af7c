"""`trunkline openai serve`, as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.openai_process import STOP_SECONDS, openai_process
from tests.support.patience import PATIENCE_SECONDS
from trunkline.cli.openai_serve import TOKEN_VARIABLE

HELLO = {"messages": [{"role": "user", "content": "Hello there"}]}


def post(url: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    return httpx.post(url, json=body, headers=headers, timeout=PATIENCE_SECONDS)


def failing(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trunkline", "openai", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


@pytest.mark.process
def test_agents_answer_in_both_formats_sessions_go_on_and_the_signal_ends_it_in_time() -> None:
    with openai_process("--agent", "echo", "--agent", "scripted:tour") as server:
        listed = httpx.get(f"{server.url}/models", timeout=PATIENCE_SECONDS).json()["data"]
        assert [each["id"] for each in listed][:2] == ["echo", "scripted:tour"]
        assert "model:mock" in [each["id"] for each in listed]
        chat = post(f"{server.url}/chat/completions", {"model": "echo", **HELLO})
        assert chat.json()["choices"][0]["message"]["content"] == "Hello there"
        one = post(f"{server.url}/responses", {"model": "echo", "input": "One", "conversation": "mine"})
        assert one.json()["id"] == "resp_1_mine"
        two = post(f"{server.url}/responses", {"model": "echo", "input": "Two", "previous_response_id": "resp_1_mine"})
        assert two.headers["x-trunkline-session"] == "mine"
        fork = post(f"{server.url}/responses", {"model": "echo", "input": "Two", "previous_response_id": "resp_1_mine"})
        assert fork.json()["id"].startswith("resp_2_")
        assert fork.headers["x-trunkline-session"] != "mine"
        again = httpx.get(f"{server.url}/responses/resp_1_mine", timeout=PATIENCE_SECONDS).json()
        assert again["output"][0]["content"][0]["text"] == "One"
        model = post(f"{server.url}/chat/completions", {"model": "model:mock", **HELLO})
        assert model.status_code == 200
        assert post(f"{server.url}/chat/completions", {"model": "coder", **HELLO}).status_code == 404
        code, taken = server.stop()
        assert (code, server.said) == (143, [])
        assert taken < STOP_SECONDS


@pytest.mark.process
def test_a_stream_in_progress_does_not_keep_the_process_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    script = tmp_path / "slow.yaml"
    script.write_text("turns:\n  - steps:\n      - text: begun\n      - wait: 600\n")
    with openai_process("--agent", "scripted", "--script", str(script)) as server:
        body = {"model": "scripted", "stream": True, **HELLO}
        url = f"{server.url}/chat/completions"
        with httpx.stream("POST", url, json=body, timeout=PATIENCE_SECONDS) as response:
            lines = response.iter_lines()
            assert any("begun" in line for line in lines)
            code, taken = server.stop()
            assert code == 143
            assert taken < STOP_SECONDS
            assert any("The server is stopping" in line for line in lines)


@pytest.mark.process
def test_a_tool_that_would_have_to_be_asked_about_is_denied_unless_the_mode_allows_it(tmp_path: Path) -> None:
    ask = {"messages": [{"role": "user", "content": 'tool: Write {"file_path": "a.txt", "content": "x"}'}]}
    options = ("--agent", "coder", "--provider", "mock", "--workspace", str(tmp_path))
    with openai_process(*options) as server:
        answer = post(f"{server.url}/chat/completions", {"model": "coder", **ask}).json()
        assert "with `--allow` or `--mode`" in answer["choices"][0]["message"]["reasoning_content"]
        assert not (tmp_path / "a.txt").exists()
    with openai_process(*options, environ={"TRUNKLINE_MODE": "yolo"}) as server:
        answer = post(f"{server.url}/chat/completions", {"model": "coder", **ask}).json()
        assert (tmp_path / "a.txt").read_text() == "x"


@pytest.mark.process
def test_with_a_token_nobody_is_let_in_without_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2hunter2\n")
    for options, environ in (
        (("--token-file", str(tmp_path / "token")), {}),
        ((), {TOKEN_VARIABLE: "hunter2hunter2"}),
    ):
        with openai_process("--agent", "echo", *options, environ=environ) as server:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic hunter2hunter2"}):
                refused = httpx.get(f"{server.url}/models", headers=headers, timeout=PATIENCE_SECONDS)
                assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
            let_in = {"authorization": "Bearer hunter2hunter2"}
            assert httpx.get(f"{server.url}/models", headers=let_in, timeout=PATIENCE_SECONDS).status_code == 200


@pytest.mark.process
def test_web_pages_and_foreign_names_are_refused_in_openais_form() -> None:
    with openai_process("--agent", "echo") as server:
        for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            refused = httpx.get(f"{server.url}/models", headers=headers, timeout=PATIENCE_SECONDS)
            assert (refused.status_code, refused.json()["error"]["type"]) == (403, "invalid_request_error")


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--agent", "nobody"], 1, "nobody"),
        (["--agent", "echo", "--listen", "nonsense"], 1, "HOST:PORT"),
        (["--agent", "echo", "--listen", "0.0.0.0:0"], 1, TOKEN_VARIABLE),
        (["--agent", "echo", "--token-file", "/nowhere"], 1, "/nowhere"),
        (["--agent", "coder", "--provider", "mock", "--allow", "Reed"], 1, "--allow"),
        (["--agent", "echo", "--mode", "wild"], 2, "--mode"),
        (["--nonsense"], 2, "--help"),
        (["echo"], 2, "named with `--agent`"),
    ],
)
def test_what_cannot_work_is_told_at_the_start(arguments: list[str], code: int, said: str) -> None:
    result = failing(*arguments)
    assert result.returncode == code
    assert said in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stdout == ""


@pytest.mark.process
def test_an_address_that_is_taken_is_told() -> None:
    with openai_process("--agent", "echo") as server:
        address = server.url.removeprefix("http://").removesuffix("/v1")
        result = failing("--agent", "echo", "--listen", address)
        assert (result.returncode, "Cannot listen" in result.stderr) == (1, True)


@pytest.mark.process
def test_bad_requests_before_the_application_have_the_same_form() -> None:
    import socket

    with openai_process("--agent", "echo") as server:
        port = int(server.url.removesuffix("/v1").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as client:
            client.sendall(b"nonsense\r\n\r\n")
            answer = b""
            while data := client.recv(4096):
                answer += data
        assert answer.startswith(b"HTTP/1.1 400")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"
