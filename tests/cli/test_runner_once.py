"""`trunkline runner once` as a program: the last line, the exit code, signals, and nothing else on standard output."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tests.support.provider import HANG, StubProvider
from tests.support.provider_streams import openai_text
from tests.support.sns_stub import AGENT, SLUG, TOKEN, SnsStub
from trunkline.base.config import user_file

pytestmark = pytest.mark.process

#: The command by itself: what `trunkline runner once` runs.
PROGRAM = "from trunkline.cli.runner_once import command; command()"


@pytest.fixture
async def sns() -> AsyncIterator[SnsStub]:
    async with SnsStub() as network:
        yield network


async def start(
    *arguments: str, stdin: bytes = b"", cwd: Path | None = None, program: str = PROGRAM
) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=cwd,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    return process


async def ended(process: asyncio.subprocess.Process) -> tuple[int, dict[str, Any], str]:
    """The exit code, the one line of standard output, and standard error."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert process.stdout is not None
            assert process.stderr is not None
            out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
            code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    (line,) = out.decode().splitlines()
    assert "Traceback" not in err.decode()
    return code, json.loads(line), err.decode()


def config(sns: SnsStub, **more: Any) -> bytes:
    return json.dumps(
        {"snsBaseUrl": sns.url, "runnerToken": TOKEN, "agentId": AGENT, "timeoutSec": PATIENCE_SECONDS, **more}
    ).encode()


def own(sns: SnsStub, token: str) -> None:
    action = f'{{ action = "create_thread", communitySlug = "{SLUG}", title = "Hello", body = "A thread" }}'
    file = Path(user_file())
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f"""
        [runner.agents.ada]
        snsBaseUrl = "{sns.url}"
        runnerToken = {token}
        agentId = "{AGENT}"
        brain = {{ kind = "scripted", replies = [[{action}]] }}
        """
    )
    file.chmod(0o600)


async def test_the_configuration_may_hold_the_agent(sns: SnsStub, tmp_path: Path) -> None:
    own(sns, '{ env = "ADAS_TOKEN" }')
    code, line, err = await ended(await start("--agent", "ada", cwd=tmp_path))
    assert (code, "`ADAS_TOKEN` is not set" in line["error"]) == (1, True), err
    own(sns, f'"{TOKEN}"')
    code, line, err = await ended(await start("--agent", "ada", cwd=tmp_path))
    assert (code, line["error"], len(line["results"]), err) == (0, None, 1, "")
    code, line, _ = await ended(await start("--agent", "adaa", cwd=tmp_path))
    assert (code, "Did you mean `ada`?" in line["error"]) == (1, True)
    code, line, _ = await ended(await start("--agent", "ada", "--config", "-", cwd=tmp_path))
    assert (code, line["error"]) == (2, "Say `--config FILE` or `--agent NAME`.")


async def test_a_cycle_that_worked_ends_with_0_and_the_line(sns: SnsStub, tmp_path: Path) -> None:
    thread = sns.thread()
    action = {"action": "comment", "communitySlug": SLUG, "threadId": thread, "body": "A result"}
    file = tmp_path / "agent.json"
    file.write_bytes(config(sns, brain={"kind": "scripted", "replies": [[action, {"action": "dance"}]]}))
    code, line, _ = await ended(await start("--config", str(file)))
    assert (code, line["error"]) == (0, None)
    assert list(line) == ["actions", "results", "error"]
    assert [result["ok"] for result in line["results"]] == [True, False]
    assert line["actions"] == [action]


async def test_what_an_agents_module_prints_does_not_reach_standard_output(sns: SnsStub, tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text("print('noise')\nfrom trunkline.agents.echo import EchoAgent as Agent\n")
    brain = {"kind": "agent", "name": "chatty:Agent"}
    code, line, err = await ended(await start("--config", "-", stdin=config(sns, brain=brain), cwd=tmp_path))
    # It repeats the prompt, in which there is no action.
    assert code == 1
    assert "valid actions" in line["error"]
    assert "noise" in err


async def test_a_thread_that_does_not_end_does_not_keep_the_process(sns: SnsStub, tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(
        "import asyncio, threading\n"
        "from trunkline.agents.echo import EchoAgent\n"
        "class Agent(EchoAgent):\n"
        "    async def open(self, *given, **named):\n"
        "        asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)\n"
        "        return await super().open(*given, **named)\n"
    )
    impatient = "from trunkline.cli import runner_once; runner_once.CLOSE_SECONDS = 0.1; runner_once.command()"
    brain = {"kind": "agent", "name": "stuck:Agent"}
    code, line, _ = await ended(
        await start("--config", "-", stdin=config(sns, brain=brain), cwd=tmp_path, program=impatient)
    )
    assert (code, "valid actions" in line["error"]) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        ((), b""),
        (("--config", "/nowhere.json"), b""),
        (("--config", "-"), b"{not json"),
        (("--config", "-"), b"[]"),
        (("--config", "-"), b'{"runnerToken": "t", "agentId": "a", "brain": {"kind": "oracle"}, "snsBaseUrl": "x"}'),
    ],
)
async def test_whatever_is_wrong_the_last_line_says_so(arguments: tuple[str, ...], stdin: bytes) -> None:
    code, line, err = await ended(await start(*arguments, stdin=stdin))
    assert code != 0
    assert (line["actions"], line["results"]) == ([], [])
    assert line["error"]
    assert "Error: " in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_what_was_done_by_then(sns: SnsStub, number: signal.Signals) -> None:
    thread = sns.thread()
    actions = [{"action": "comment", "communitySlug": SLUG, "threadId": thread, "body": body} for body in ("1", "2")]
    sns.accident(f"POST /api/threads/{thread}/comments", HANG)
    process = await start("--config", "-", stdin=config(sns, brain={"kind": "scripted", "replies": [actions]}))
    # General data, context, nonce, comment.
    await sns.asked(4)
    process.send_signal(number)
    code, line, _ = await ended(process)
    assert code == 128 + number
    assert line["error"] == f"Interrupted by {number.name}"
    assert [(each["ok"], each.get("unknown", False)) for each in line["results"]] == [(False, True), (False, False)]

    # What was under way is not lost, and not sent again: the next cycle finds it.
    again = json.loads(config(sns, brain={"kind": "scripted", "replies": [actions[1]]}))
    code, line, _ = await ended(await start("--config", "-", stdin=json.dumps(again).encode()))
    assert code == 0
    assert [comment["body"] for comment in sns.comments] == ["1", "2"]


async def test_a_model_that_never_answers_ends_within_its_time(sns: SnsStub) -> None:
    async with StubProvider() as model:
        model.openai(openai_text("["), HANG, done=False)
        brain = {"kind": "openai", "baseUrl": f"{model.url}/v1", "model": "stub", "apiKey": "sk-of-the-model"}
        code, line, err = await ended(await start("--config", "-", stdin=config(sns, brain=brain, timeoutSec=1)))
    assert code == 1
    assert "within 1 s" in line["error"]
    assert "sk-of-the-model" not in json.dumps(line) + err


async def test_a_signal_before_anything_has_begun_also_gets_its_line() -> None:
    # As the program begins, before its imports.
    program = (
        "import sys, signal; sys.argv = ['trunkline', 'runner', 'once']; import trunkline.cli as cli;"
        "cli._serve_people = lambda: signal.raise_signal(signal.SIGTERM); cli.main()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    code, line, _ = await ended(process)
    assert (code, line) == (143, {"actions": [], "results": [], "error": "Interrupted by SIGTERM"})


@pytest.mark.parametrize(("mode", "is_told"), [(0o644, True), (0o600, False)])
async def test_a_file_with_secrets_that_others_can_read_is_told(
    sns: SnsStub, tmp_path: Path, mode: int, is_told: bool
) -> None:
    file = tmp_path / "agent.json"
    file.write_bytes(config(sns, brain={"kind": "scripted", "replies": ["[]"]}))
    file.chmod(mode)
    _, line, err = await ended(await start("--config", str(file)))
    assert line["error"]
    assert ("Others can read the secrets in" in err) == is_told
