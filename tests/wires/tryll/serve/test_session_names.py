"""What a session may name, as any client may rely on it: models, files and storages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.tryll_served import Served
from tests.wires.tryll.foreign_client import Foreigner, foreigner, graph, text_of
from trunkline.agents.graph.hosting import LocalGraphHost
from trunkline.agents.graph.pool import ModelPool
from trunkline.wires.tryll import messages as m
from trunkline.wires.tryll.serve import TryllServer

SAY = graph(say=m.GenerateParams(stream=True))
REAL = m.InferenceEngine.LLAMA_CPP


# Models.


@pytest.mark.parametrize("engine", [m.InferenceEngine.MOCK, REAL])
async def test_models_that_are_not_in_the_catalog_are_refused_on_every_engine(server: Served, engine: int) -> None:
    async with foreigner(server, inference_engine=engine, embedding_engine=engine) as client:
        for kind in (m.LoadModelRequest, m.UnloadModelRequest, m.DeleteModelRequest, m.DownloadModelRequest):
            for name in ("no-such-model", "", "../smollm2-135m", "mock"):
                error = await client.refused(kind(5, name))
                assert 6000 < error.code < 7000
                assert name in error.message


async def test_an_agent_whose_model_nobody_has_is_refused_by_its_name(server: Served) -> None:
    for automatic, codes in ((False, (3003, 6002)), (True, (6006,))):
        options: dict[str, Any] = {
            "inference_engine": REAL,
            "embedding_engine": REAL,
            "allow_auto_model_downloading": automatic,
        }
        async with foreigner(server, **options) as client:
            for request in (
                m.CreateAgentRequest(5, SAY, "no-such-model"),
                m.CreateAgentRequest(5, graph(a=m.GenerateParams(model_name="no-such-model")), "smollm2-135m"),
            ):
                error = await client.refused(request)
                assert error.code in codes
                assert "no-such-model" in error.message
            storage = m.CreateEmbeddedStringStorageRequest(6, "s", strings=("x",), embedding_model="no-such-model")
            assert "no-such-model" in (await client.refused(storage)).message


# Paths.


OUTSIDE = ("../out.txt", "a/../../out.txt", "/etc/passwd", "/", "//etc/passwd", "\\etc\\passwd", "..\\out.txt",
           "C:\\out.txt", "c:/out.txt", "C:out.txt", "\\\\host\\share\\out.txt", "link.txt", "folder/out.txt", "..",
           "a/b/../../..")  # fmt: skip


def naming(path: str) -> list[m.Message]:
    """Every request that a path can be in."""
    strings = (
        m.HumanMessageGuardrailParams(string_storage=path),
        m.CannedResponseParams(string_storage=path),
        m.IntentToInstructionParams(string_storage=path),
        m.RetrieveParams(embedded_string_storage=path),
        m.ClassifyIntentParams(embedded_string_storage=path, metadata_field="x"),
    )
    return [
        *(m.CreateStringStorageRequest(5, "s", kind=kind, file_path=path) for kind in range(3)),
        m.CreateEmbeddedStringStorageRequest(5, "s", config_path=path, embedding_model="any"),
        *(m.CreateAgentRequest(5, graph(a=params)) for params in strings),
    ]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_no_path_leads_out_of_the_storage_folder(tmp_path: Path, client: Foreigner, path: str) -> None:
    root = tmp_path / "root"
    (tmp_path / "out.txt").write_text("secret")
    (root / "a" / "b").mkdir(parents=True)
    os.symlink(tmp_path / "out.txt", root / "link.txt")
    os.symlink(tmp_path, root / "folder")
    for request in naming(path):
        assert (await client.refused(request)).code == 3009, request


async def test_paths_that_no_file_can_have_are_refused_wherever_they_are_named(client: Foreigner) -> None:
    for path in ("d/" * 100_000 + "x.jsonl", "d" * 5000):
        for request in naming(path):
            error = await client.refused(request)
            assert (error.code in (3010, 7003, 8003), "A path of more than" in error.message) == (True, True)


async def test_a_server_without_a_storage_folder_refuses_the_same_paths(tmp_path: Path) -> None:
    server = TryllServer(LocalGraphHost(ModelPool()))
    address = Served(server, *await server.listen("127.0.0.1", 0))
    try:
        async with foreigner(address) as client:
            for path in ("../out.txt", "/etc/passwd", "C:\\out.txt", "a/../../out.txt", "..\\out.txt"):
                for request in naming(path):
                    assert (await client.refused(request)).code == 3009, request
            for request in naming("inside.json"):
                assert (await client.refused(request)).code in (3010, 7003, 8003)
    finally:
        await server.close()


async def test_a_session_may_choose_a_folder_inside_the_storage_folder_only(tmp_path: Path, client: Foreigner) -> None:
    (tmp_path / "root" / "game").mkdir(parents=True)
    (tmp_path / "root" / "game" / "lines.txt").write_text("hat")
    os.symlink(tmp_path, tmp_path / "root" / "folder")
    for folder in ("..", "/etc", "game/../..", "C:\\game", "\\\\host\\share", "folder", str(tmp_path)):
        error = await client.refused(m.ConfigureSessionRequest(5, storage_data_folder=folder))
        assert error.code == 3009, folder
    for folder in ("d/" * 100_000, "d" * 5000):
        error = await client.refused(m.ConfigureSessionRequest(5, storage_data_folder=folder))
        assert (error.code, "A path of more than" in error.message) == (3010, True)
    assert (await client.refused(m.ConfigureSessionRequest(5, storage_data_folder="none"))).code == 3010
    await client.configure(storage_data_folder="game")
    agent = await client.agent(graph(a=m.CannedResponseParams(string_storage="lines.txt")))
    client.say(m.SendMessageRequest(3, agent, "x"))
    assert text_of((await client.turn())[0]) == "hat"
    assert (await client.refused(m.CreateStringStorageRequest(6, "s", file_path="../lines.txt"))).code == 3009


# Storages.


MAP, MULTIMAP = m.StringStorageKind.MAP, m.StringStorageKind.MULTIMAP


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (m.CreateStringStorageRequest(5, "", ("x",)), 7001),
        (m.CreateStringStorageRequest(5, "there", ("x",)), 7002),
        (m.CreateStringStorageRequest(5, "s"), 7003),
        (m.CreateStringStorageRequest(5, "s", ("x",), file_path="lines.txt"), 7003),
        (m.CreateStringStorageRequest(5, "s", ("x",), keys=("k",)), 7003),
        (m.CreateStringStorageRequest(5, "s", ("x",), kind=MAP), 7003),
        (m.CreateStringStorageRequest(5, "s", ("x",), kind=MAP, keys=("k", "l")), 7003),
        (m.CreateStringStorageRequest(5, "s", ("x", "y"), kind=MAP, keys=("k", "k")), 7003),
        (m.CreateStringStorageRequest(5, "s", kind=MULTIMAP, keys=("k",)), 7003),
        (m.CreateStringStorageRequest(5, "s", ("x",), kind=9), 7003),
        (m.CreateStringStorageRequest(5, "s", file_path="none.txt"), 7003),
        (m.CreateStringStorageRequest(5, "lines.txt", ("x",)), 7004),
        (m.DestroyStringStorageRequest(5, "none"), 7001),
        (m.DestroyStringStorageRequest(5, ""), 7001),
        (m.DestroyEmbeddedStringStorageRequest(5, "there"), 8001),
        (m.CreateEmbeddedStringStorageRequest(5, "", strings=("x",), embedding_model="any"), 8001),
        (m.CreateEmbeddedStringStorageRequest(5, "lines.txt", strings=("x",), embedding_model="any"), 7004),
        (m.CreateEmbeddedStringStorageRequest(5, "s", embedding_model="any"), 8003),
    ],
)
async def test_storages_that_cannot_be_are_refused(
    tmp_path: Path, client: Foreigner, request_: m.Message, code: int
) -> None:
    (tmp_path / "root" / "lines.txt").write_text("hat")
    await client.ask(m.CreateStringStorageRequest(3, "there", ("x",)), m.CreateStringStorageResponse)
    assert (await client.refused(request_)).code == code


async def test_storages_of_each_kind_are_made_and_their_names_are_free_again(client: Foreigner) -> None:
    for request in (
        m.CreateStringStorageRequest(3, "s", ("b", "a")),
        m.CreateStringStorageRequest(3, "s", ("b", "a"), kind=MAP, keys=("2", "1")),
        m.CreateStringStorageRequest(3, "s", ("b", "a", "c"), kind=MULTIMAP, keys=("2", "1", "2")),
    ):
        made = await client.ask(request, m.CreateStringStorageResponse)
        assert (made.request_id, made.name) == (3, "s")
        line = m.CannedResponseParams(string_storage="s", selection_strategy=1)
        agent = await client.agent(graph(a=line))
        assert await client.ask(m.DestroyStringStorageRequest(4, "s"), m.Ack) == m.Ack(4)
        # Whoever uses it keeps it. What has keys is sorted by them.
        client.say(m.SendMessageRequest(5, agent, "x"))
        assert text_of((await client.turn())[0]) == ("a" if request.kind else "b")


async def test_storages_belong_to_their_session(server: Served, client: Foreigner) -> None:
    await client.ask(m.CreateStringStorageRequest(3, "s", ("x",)), m.CreateStringStorageResponse)
    async with foreigner(server) as other:
        assert (await other.refused(m.DestroyStringStorageRequest(4, "s"))).code == 7001
        await other.ask(m.CreateStringStorageRequest(3, "s", ("y",)), m.CreateStringStorageResponse)
