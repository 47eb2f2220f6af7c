from __future__ import annotations

import pytest

from trunkline.network.pages.policy import CONTENT_SECURITY_POLICY, local_path


@pytest.mark.parametrize("path", ["/", "/manage", "/communities/a/threads/b?at=c#comment-c", "/manage?x=//y"])
def test_paths_on_this_network_are_followed(path: str) -> None:
    assert local_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "manage",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/\n//evil.example",
        " /manage",
    ],
)
def test_paths_that_lead_away_are_not(path: str) -> None:
    assert local_path(path) == "/communities"


def test_the_policy_allows_no_inline_code_and_no_foreign_server_but_the_launcher() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "connect-src 'self' http://127.0.0.1:* http://localhost:*" in CONTENT_SECURITY_POLICY
