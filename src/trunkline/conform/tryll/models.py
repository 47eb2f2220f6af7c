"""Checks of models: the catalog, and names that are not in it."""

from __future__ import annotations

from trunkline.conform.expect import expect, same
from trunkline.conform.tryll.stage import Stage
from trunkline.conform.tryll.suite import check
from trunkline.wires.tryll import messages as m

_UNKNOWN = "conform-has-no-such-model"
_KINDS = ("language", "embedding", "stt", "tts", "vad")


@check("tryll.model.list", "MUST", "Message types")
async def listed(stage: Stage) -> None:
    """`ListModelsRequest` is answered with the catalog: each name once, with a known kind and status."""
    found = await _models(stage)
    names = [each.name for each in found]
    expect(all(names), "a model has no name")
    expect(len(set(names)) == len(names), "a name occurs twice")
    for each in found:
        expect(each.model_type in _KINDS, f"the model {each.name!a} has the kind {each.model_type!a}")
        expect(each.status in m.ModelStatus.names(), f"the model {each.name!a} has the status {each.status}")


@check("tryll.model.sizes", "SHOULD", "Details")
async def sizes(stage: Stage) -> None:
    """A model that is absent has no size and no path; a model whose files are present has their size."""
    for each in await _models(stage):
        if each.status == m.ModelStatus.ABSENT:
            same(f"what {each.name!a} has, which is absent,", (each.size_bytes, each.local_path), (0, ""))
        elif each.files and each.status != m.ModelStatus.DOWNLOADING:
            expect(each.size_bytes > 0, f"the model {each.name!a} is present with a size of 0")


@check("tryll.model.unknown", "SHOULD", "Details")
async def unknown(stage: Stage) -> None:
    """Loading, unloading, deleting or downloading a model that is not in the catalog is refused with 6xxx on every
    engine.
    """
    for engine in (m.InferenceEngine.MOCK, m.InferenceEngine.LLAMA_CPP):
        link = await stage.session(inference_engine=engine, embedding_engine=engine)
        for kind in (m.LoadModelRequest, m.UnloadModelRequest, m.DeleteModelRequest, m.DownloadModelRequest):
            for name in (_UNKNOWN, ""):
                await link.refused(kind(0, name), 6000, why=f"for the model {name!a}")


@check("tryll.model.unconfigured", "MAY", "Details")
async def unconfigured(stage: Stage) -> None:
    """The catalog can be read before the session is configured."""
    link = await stage.greeted()
    await link.ask(m.ListModelsRequest(), m.ListModelsResponse)


async def _models(stage: Stage) -> list[m.ModelInfo]:
    link = await stage.session()
    request_id = link.next_id()
    answer = await link.ask(m.ListModelsRequest(request_id), m.ListModelsResponse)
    found = list(answer.models)
    while answer.more:
        more = await link.answer(request_id, "ListModelsRequest")
        if not isinstance(more, m.ListModelsResponse):
            break
        answer = more
        found += answer.models
    return found
