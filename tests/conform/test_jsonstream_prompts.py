from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.conform.jsonstream.prompts import PROMPTS, WORDING
from trunkline.conform.wording import PromptError, fill


def written(folder: Path, text: str) -> Path:
    path = folder / "prompts.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_replaces_the_prompts_that_it_names_and_no_others(tmp_path: Path) -> None:
    prompts = WORDING.load(written(tmp_path, 'hello = "Say hello in one word."'))
    assert prompts == PROMPTS | {"hello": "Say hello in one word."}


def test_the_parts_of_a_prompt_are_filled_in() -> None:
    assert fill(PROMPTS, "bash", command="echo {text}").count("`echo {text}`") == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('helo = "x"', "did you mean `hello`?"),
        ("hello = 5", "must be a string"),
        ('hello = " "', "must be a string"),
        ('bash = "Run something."', "must contain `{command}`"),
        ("hello = ", "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PromptError, match=r"prompts\.toml") as caught:
        WORDING.load(written(tmp_path, text))
    assert problem in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="cannot be read"):
        WORDING.load(tmp_path / "nothing.toml")
