"""Checks of the list of models."""

from __future__ import annotations

from urllib.parse import quote

from trunkline.conform.expect import expect, short
from trunkline.conform.kit import NotApplicable
from trunkline.conform.openai.answer import is_count, is_text, member
from trunkline.conform.openai.scenes import MISSING, fine, refused
from trunkline.conform.openai.stage import Stage, word
from trunkline.conform.openai.suite import SUITE


@SUITE.check("openai.models.list", "MUST", "Models")
async def models_are_listed(stage: Stage) -> None:
    """`GET /models` gives a list of objects of the kind `model`, each with an `id`; `created` is an integer."""
    answer = fine(await stage.asking.ask("GET", "/models"))
    found = answer.member("data")
    expect(
        answer.member("object") == "list" and isinstance(found, list), f"{answer.asked} gave {answer.shown}, no list"
    )
    for each in found if isinstance(found, list) else ():
        named = is_text(member(each, "id")) and member(each, "object") == "model"
        expect(named and is_count(member(each, "created") or 0), f"the model {short(each)} is not as it should be")


@SUITE.check("openai.models.members", "SHOULD", "Models")
async def models_have_all_members(stage: Stage) -> None:
    """A model tells when it was made, in seconds, and by whom: `created`, `owned_by`."""
    answer = fine(await stage.asking.ask("GET", "/models"))
    for each in answer.member("data") or ():
        whole = is_count(member(each, "created")) and isinstance(member(each, "owned_by"), str)
        expect(whole, f"the model {short(each)} lacks `created` or `owned_by`")


@SUITE.check("openai.models.named", "SHOULD", "Models")
async def the_model_is_listed(stage: Stage) -> None:
    """The model that answers is in the list."""
    answer = fine(await stage.asking.ask("GET", "/models"))
    found = [member(each, "id") for each in answer.member("data") or ()]
    model = await stage.model()
    expect(model in found, f"{answer.asked} lists {short(found)}, without {short(model)}")


@SUITE.check("openai.models.one", "SHOULD", "Models")
async def one_can_be_read(stage: Stage) -> None:
    """`GET /models/NAME` gives that model."""
    model = await stage.model()
    answer = fine(await stage.asking.ask("GET", f"/models/{quote(model, safe='')}"))
    expect(answer.member("id") == model, f"{answer.asked} gave {answer.shown}, not the model {short(model)}")


@SUITE.check("openai.models.unknown", "SHOULD", "Models")
async def others_cannot(stage: Stage) -> None:
    """`GET /models/NAME` of a model that does not exist is 404."""
    answer = await stage.asking.ask("GET", f"/models/{word()}")
    if answer.status in MISSING and answer.status != 404:
        raise NotApplicable(f"the server does not give single models: {answer.asked} was answered with {answer.status}")
    refused(answer, "no such model", 404)
