"""The command line of `trunkline agentproc run`: what it says about words that it does not understand."""

from __future__ import annotations

import pytest

from trunkline.cli import agentproc_run_options
from trunkline.cli.arguments import UsageError


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--mesage", "hi"], "there is no option `--mesage` (did you mean `--message`?)"),
        (["--profile", "p", "--message", "m", "--jsn"], "there is no option `--jsn` (did you mean `--json`?)"),
        (["--profile", "p", "--message", "m", "--zzzzzz=1"], "there is no option `--zzzzzz`"),
        (["p.yaml", "hi there"], "`p.yaml` is not understood; write `--profile p.yaml --message 'hi there'`"),
        (["--profile", "p.yaml", "hi"], "`hi` is not understood; write `--message hi`"),
        (["--profile", "p", "--message", "two", "words"], "`words` is not understood"),
        (["--profile", "p"], "`--message` is missing"),
        ([], "`--profile` and `--message` are missing"),
    ],
)
def test_a_word_that_is_not_understood_is_named(given: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        agentproc_run_options.parse(given)
    assert str(caught.value) == said


def test_what_is_required_is_shown_so_in_the_help() -> None:
    usage = agentproc_run_options.make_parser().format_usage()
    assert "--profile P --message M [" in usage
