"""What names and addresses in a configuration look like."""

from __future__ import annotations

import pytest

from trunkline.base.config_addresses import origin


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("https://game.example", "https://game.example"),
        ("https://GAME.example/", "https://game.example"),
        # Browsers leave out the port that is meant anyway.
        ("https://game.example:443", "https://game.example"),
        ("HTTPS://game.example:443/", "https://game.example"),
        ("http://game.example:80", "http://game.example"),
        ("http://[::1]:80", "http://[::1]"),
        ("http://[::1]", "http://[::1]"),
        ("https://game.example:80", "https://game.example:80"),
        ("http://game.example:443", "http://game.example:443"),
        ("http://[::80]", "http://[::80]"),
        ("http://localhost:03000", "http://localhost:3000"),
        ("https://game.example:65536", None),
        ("https://game.example/page", None),
        ("null", None),
        ("*", None),
        (443, None),
    ],
)
def test_an_origin_has_the_form_in_which_browsers_send_it(said: object, sent: str | None) -> None:
    assert origin(said) == sent
