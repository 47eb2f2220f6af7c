"""Checks of embeddings; a server need not have them."""

from __future__ import annotations

import base64
from typing import Any

from trunkline.conform.expect import expect, short
from trunkline.conform.kit import NotApplicable
from trunkline.conform.openai.answer import OpenAIAnswer, member
from trunkline.conform.openai.scenes import MISSING, fine, offered, refused
from trunkline.conform.openai.stage import Stage
from trunkline.conform.openai.suite import SUITE

_FLOAT_BYTES = 4


async def _embedded(stage: Stage, given: Any, **more: Any) -> OpenAIAnswer:
    """Embeddings of some texts.

    Raises:
        NotApplicable: the model has none.
    """
    model = stage.target.embedder or await stage.model()
    answer = await stage.asking.ask("POST", "/embeddings", {"model": model, "input": given, **more})
    if answer.member("error") is None:
        # Not the model is missing then, but the whole route.
        answer = offered(answer, "`POST /embeddings`")
    if answer.status in (*MISSING, 400):
        refused(answer, "embeddings", *MISSING, 400)
        raise NotApplicable(
            f"the model gives no embeddings, name one that does with `--embeddings-model`: {answer.told}"
        )
    return fine(answer)


def _vectors(answer: OpenAIAnswer) -> list[Any]:
    found = answer.member("data")
    listed = answer.member("object") == "list" and isinstance(found, list)
    expect(listed, f"{answer.asked} was answered with {answer.shown}, not with a list")
    return found if isinstance(found, list) else []


@SUITE.check("openai.embeddings.shape", "MUST", "Embeddings")
async def embeddings_have_a_shape(stage: Stage) -> None:
    """An embedding is a list of numbers, with the object `embedding` and its index; the list has a `model`."""
    answer = await _embedded(stage, "hello")
    for each in _vectors(answer):
        vector = member(each, "embedding")
        numbers = isinstance(vector, list) and bool(vector) and all(isinstance(x, int | float) for x in vector)
        whole = numbers and member(each, "object") == "embedding" and member(each, "index") == 0
        expect(whole, f"the embedding {short(each)} is not as it should be")
    expect(
        len(_vectors(answer)) == 1 and isinstance(answer.member("model"), str), f"{answer.asked} gave {answer.shown}"
    )


@SUITE.check("openai.embeddings.many", "MUST", "Embeddings")
async def several_are_in_order(stage: Stage) -> None:
    """Several texts get one embedding each, in their order, of one length."""
    answer = await _embedded(stage, ["hello", "good morning", "hello"])
    vectors = [member(each, "embedding") for each in _vectors(answer)]
    indexes = [member(each, "index") for each in _vectors(answer)]
    expect(indexes == [0, 1, 2], f"three texts got embeddings with the indexes {short(indexes)}")
    sizes = {len(each) if isinstance(each, list) else 0 for each in vectors}
    expect(len(sizes) == 1 and 0 not in sizes, f"three texts got embeddings of the lengths {short(sizes)}")


@SUITE.check("openai.embeddings.base64", "SHOULD", "Embeddings")
async def embeddings_may_be_packed(stage: Stage) -> None:
    """With the `encoding_format` `base64` an embedding is the base64 text of its 32-bit floats."""
    plain = await _embedded(stage, "hello", encoding_format="float")
    packed = await _embedded(stage, "hello", encoding_format="base64")
    size = len(member(_vectors(plain), 0, "embedding") or ())
    found = member(_vectors(packed), 0, "embedding")
    expect(isinstance(found, str), f"{packed.asked} was answered with the embedding {short(found)}, not with a text")
    try:
        length = len(base64.b64decode(str(found), validate=True))
    except ValueError:
        length = -1
    expect(length == _FLOAT_BYTES * size, f"the packed embedding has {length} bytes for {size} numbers")
