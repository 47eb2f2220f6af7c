"""How models are named."""

from __future__ import annotations

import pytest

from trunkline.core.faults import ConfigError
from trunkline.models import naming


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("owner/repo", ("owner/repo", "")),
        ("owner/repo:sub/f.gguf", ("owner/repo", "sub/f.gguf")),
        ("smollm2-135m", None),
        ("models/mine.gguf", None),
        ("./mine", None),
        ("../passwd", None),
        ("owner/..", None),
        ("a/b/c", None),
        ("https://h/x", None),
    ],
)
def test_a_name_of_a_hub_is_told_from_a_path(text: str, expected: tuple[str, str] | None) -> None:
    assert naming.split(text) == expected


@pytest.mark.parametrize("text", ["", " ", "../passwd", "../../etc/passwd", "owner/", "/repo", "owner/repo:"])
def test_what_no_model_can_be_called_is_refused_with_what_names_look_like(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is (?:not the name of a model|empty)\..* `OWNER/REPOSITORY` or"):
        naming.check(text)


@pytest.mark.parametrize("text", ["mine", "owner/repo", "owner/repo:Q8_0"])
def test_what_a_model_can_be_called_passes(text: str) -> None:
    naming.check(text)
