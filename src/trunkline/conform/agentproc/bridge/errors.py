"""Checks of failures: error lines, exit codes, and what the user is told."""

from __future__ import annotations

import signal

from trunkline.conform.agentproc.bridge.part import err, error, partial, said
from trunkline.conform.agentproc.bridge.seen import SeenTurn
from trunkline.conform.agentproc.bridge.stage import Stage
from trunkline.conform.agentproc.bridge.suite import SUITE
from trunkline.conform.expect import holds, lacks, same
from trunkline.conform.kit import Broken, NotExercised


def _failed(seen: SeenTurn) -> None:
    if seen.code == 0:
        raise Broken("the exit code is 0")


@SUITE.check("br.error.shown", "MUST", "Errors")
async def errors_are_shown(stage: Stage) -> None:
    """The text of an error line is shown to the user."""
    seen = await stage.play(said(error('limit "reached", ü')), ["exit", 1])
    holds("what was shown", seen.complaint, 'limit "reached", ü')


@SUITE.check("br.error.fails", "MUST", "Errors")
async def errors_are_failures(stage: Stage) -> None:
    """An error line makes the turn fail, even if the agent exits with 0."""
    _failed(await stage.play(said(error("rate limited")), ["exit", 0]))


@SUITE.check("br.error.body", "MUST", "Errors")
async def errors_discard_the_reply(stage: Stage) -> None:
    """With an error line the reply is discarded, both before and after it."""
    seen = await stage.play(said("body-before", error("rate limited"), "body-behind"))
    lacks("the reply", seen.reply, "body-before")
    lacks("the reply", seen.reply, "body-behind")


@SUITE.check("br.error.partials", "MUST", "Errors")
async def errors_end_the_stream(stage: Stage) -> None:
    """An error line ends the stream: partials before it are shown, partials after it are not."""
    seen = await stage.play(said(partial("piece-one"), error("rate limited"), partial("piece-two")))
    holds("what was shown", seen.shown, "piece-one")
    lacks("what was shown", seen.shown, "piece-two")


@SUITE.check("br.error.any-mode", "MUST", "Errors")
async def errors_need_no_streaming(stage: Stage) -> None:
    """An error line also counts with `streaming: false`."""
    seen = await stage.play(said(error("rate limited")), profile={"streaming": False})
    _failed(seen)
    holds("what was shown", seen.complaint, "rate limited")


@SUITE.check("br.error.empty", "SHOULD", "Errors")
async def empty_errors_are_failures(stage: Stage) -> None:
    """An error line without text is still a failure."""
    _failed(await stage.play(said("body", "AGENT_ERROR:")))


@SUITE.check("br.error.lenient", "SHOULD", "Errors")
async def careless_errors_are_shown(stage: Stage) -> None:
    """Text after the prefix that is not a JSON string is shown as it is."""
    seen = await stage.play(said("AGENT_ERROR:plain words"))
    _failed(seen)
    holds("what was shown", seen.complaint, "plain words")


@SUITE.check("br.error.generic", "MUST", "Exit codes")
async def failures_are_told(stage: Stage) -> None:
    """If an agent fails without an error line, the user still gets a message."""
    seen = await stage.play(["exit", 1])
    _failed(seen)
    if not seen.complaint:
        raise Broken("nothing was said")


@SUITE.check("br.error.no-body", "SHOULD", "Exit codes")
async def failures_have_no_reply(stage: Stage) -> None:
    """Output printed before a failure is not sent as the reply."""
    seen = await stage.play(said("half an answer"), ["exit", 1])
    lacks("the reply", seen.reply, "half an answer")


@SUITE.check("br.error.stderr", "MUST", "Profile")
async def diagnostics_can_be_shown(stage: Stage) -> None:
    """With `include_stderr_in_reply: true` the user sees the end of the standard error of a failed turn."""
    seen = await stage.play(err("conform-diagnostics\n"), ["exit", 1], profile={"include_stderr_in_reply": True})
    holds("what was shown", seen.complaint, "conform-diagnostics")


@SUITE.check("br.error.no-stderr", "MUST", "Profile")
async def diagnostics_are_kept_back(stage: Stage) -> None:
    """Without `include_stderr_in_reply` the user does not see standard error."""
    seen = await stage.play(err("conform-diagnostics\n"), ["exit", 1])
    lacks("what was shown", seen.reply if seen.data is None else seen.shown, "conform-diagnostics")


@SUITE.check("br.exit.failed", "MUST", "Exit codes")
async def exit_codes_are_failures(stage: Stage) -> None:
    """A nonzero exit code is a failure."""
    _failed(await stage.play(said("text"), ["exit", 1]))


@SUITE.check("br.exit.same", "SHOULD", "Exit codes")
async def exit_codes_are_passed_on(stage: Stage) -> None:
    """The agent's exit code is also the turn's."""
    same("the exit code", (await stage.play(["exit", 3])).code, 3)


@SUITE.check("br.exit.signal", "SHOULD", "Exit codes")
async def signals_are_told(stage: Stage) -> None:
    """An agent ended by signal N has the exit code 128 + N."""
    same("the exit code", (await stage.play(["die", "SIGTERM"])).code, 128 + signal.SIGTERM)
    same("the exit code", (await stage.play(["die", "SIGKILL"])).code, 128 + signal.SIGKILL)


async def _stopped(stage: Stage, number: signal.Signals) -> None:
    """The bridge itself is told to end while the agent runs, with a child of its own."""
    running = await stage.begin(["child", 20], ["mark", "ready"], ["wait", 20], profile={"kill_grace_secs": 1})
    if not await stage.comes("ready", stage.target.timeout):
        raise NotExercised("the agent was not started")
    running.signal(number)
    if await running.ended(1 + stage.target.patience) is None:
        raise Broken(f"still running {1 + stage.target.patience:g} s after {number.name}")
    if await stage.agent_lives():
        raise Broken("the agent is still running")
    if await stage.child_lives():
        raise Broken("a process that the agent started is still running")
    same("the exit status", running.record.exit_code, 128 + number)


@SUITE.check("br.exit.terminated", "SHOULD", "Exit codes")
async def sigterm_is_passed_on(stage: Stage) -> None:
    """On SIGTERM the bridge ends the agent and everything it started, and exits with 143."""
    await _stopped(stage, signal.SIGTERM)


@SUITE.check("br.exit.interrupted", "SHOULD", "Exit codes")
async def sigint_is_passed_on(stage: Stage) -> None:
    """On SIGINT the bridge ends the agent and everything it started, and exits with 130."""
    await _stopped(stage, signal.SIGINT)
