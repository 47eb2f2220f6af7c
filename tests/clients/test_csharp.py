"""The C# client: its whole API against a real server, and against servers that lie, leave or are late.

Its test program has the modes of the C++ client's and says the same, so that the tests of that client are tests of this
one, too: they are given another program.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.clients import test_cpp as shared
from tests.clients.csharp_build import CLIENT, compiled
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tryll_process import tryll_process

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def program(folder: Path, name: str) -> Path:
    """A program of the client's tests, as one file that can be run."""
    command = compiled(folder / f"{name}.exe", CLIENT / "Tests~" / f"{name}.cs")
    script = folder / name
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("csharp"), "Api")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("csharp"), "Vectors")


test_the_whole_api_works_against_a_real_server = shared.test_the_whole_api_works_against_a_real_server
test_a_managed_server_is_started_used_and_stopped = (
    shared.test_a_managed_server_is_started_used_and_stopped_again_and_again
)
test_a_program_that_is_no_server_is_told_at_once = shared.test_a_program_that_is_no_server_is_told_at_once
test_a_managed_server_ends_with_a_game_that_is_killed = shared.test_a_managed_server_ends_with_a_game_that_is_killed
test_a_lost_connection_is_tried_again = (
    shared.test_a_lost_connection_is_tried_again_and_the_game_makes_its_agents_anew
)
test_an_answer_comes_in_its_order = shared.test_an_answer_comes_with_sound_events_and_a_tool_call_in_their_order
test_models_are_fetched_with_progress_or_waited_for = shared.test_models_are_fetched_with_progress_or_waited_for
test_what_comes_too_late_is_destroyed_and_harms_nobody = shared.test_what_comes_too_late_is_destroyed_and_harms_nobody
test_a_server_that_is_faster_is_slowed_and_nothing_is_lost = (
    shared.test_a_server_that_sends_faster_than_a_game_reads_is_slowed_and_nothing_is_lost
)
test_a_connection_that_does_not_begin_says_why = shared.test_a_connection_that_does_not_begin_says_why
test_a_token_that_is_refused_is_told = shared.test_a_token_that_is_refused_is_told
test_a_server_that_is_not_there_is_told = shared.test_a_server_that_is_not_there_is_told
test_it_refuses_what_our_codec_refuses_and_reads_the_rest_alike = (
    shared.test_it_refuses_what_our_codec_refuses_and_reads_the_rest_alike
)
