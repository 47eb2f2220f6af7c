"""What providers say when they cannot take a part of a conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trunkline.models.http_errors import status_fault, stream_fault
from trunkline.models.refused import Part, PartRefused

#: Status, error and what is refused.
SAID: list[tuple[int, dict[str, Any], Part]] = [
    (400, {"type": "invalid_request_error", "message": "Could not process image"}, "pictures"),
    (400, {"message": "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"}, "pictures"),
    (400, {"message": "At least one of the image dimensions exceed max allowed size: 8000 pixels"}, "pictures"),
    (400, {"code": "invalid_image_format", "message": "You uploaded an unsupported file."}, "pictures"),
    (400, {"message": "Invalid content type. image_url is only supported by certain models."}, "pictures"),
    (404, {"message": "No endpoints found that support image input"}, "pictures"),
    (500, {"message": "image input is not supported - hint: you may need to provide the mmproj"}, "pictures"),
    (400, {"message": "unknown variant `image_url`, expected `text`"}, "pictures"),
    (400, {"code": "invalid_encrypted_content", "message": "It could not be verified."}, "reasoning"),
    (400, {"message": "Item with id 'rs_1' not found. Items are not persisted when `store` is false."}, "reasoning"),
    (
        400,
        {"message": "Item 'rs_1' of type 'reasoning' was provided without its required following item."},
        "reasoning",
    ),
    (400, {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}, "reasoning"),
]


@pytest.mark.parametrize(("status", "error", "part"), SAID)
def test_a_part_that_is_refused_is_known(status: int, error: dict[str, Any], part: Part) -> None:
    for fault in (
        status_fault(status, {}, json.dumps({"error": error}).encode(), {}),
        stream_fault({**error, "code": error.get("code", status)}),
    ):
        assert isinstance(fault, PartRefused)
        assert fault.what == part
        assert not fault.retryable
        assert str(fault)[-1] in ".!?"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Invalid parameter: `tools`"),
        (429, "Too many images per minute"),
        (401, "Invalid key for image input"),
        (500, "The server had an error while processing your request"),
        (400, "Unsupported parameter: `reasoning.effort`"),
    ],
)
def test_what_has_another_remedy_is_not(status: int, message: str) -> None:
    fault = status_fault(status, {}, json.dumps({"error": {"message": message}}).encode(), {})
    assert not isinstance(fault, PartRefused)
