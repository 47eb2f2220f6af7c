"""Models over HTTP: from a hub on the loopback interface into an empty cache, and how fast they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.api_world import Reader, World, token, world
from tests.support.hub_server import REPOSITORY, Hub, gguf, hub_serving
from tests.support.loop import until
from tests.support.package_index import settings_of_nobody
from trunkline.core.faults import AgentBusy
from trunkline.exchange import pulling
from trunkline.exchange.api import models
from trunkline.models import catalog, llama, measuring, speed
from trunkline.models.figures import Figure, MeasuredModel

FILE = "tiny.Q4_K_M.gguf"
NAME = f"{REPOSITORY}:{FILE}"
ID = NAME.replace("/", "~")
SIZE = 300_000


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    settings_of_nobody(monkeypatch)
    monkeypatch.setenv("TRUNKLINE_CACHE", str(tmp_path / "cache"))
    # Other tests of this process have used real ones.
    monkeypatch.setattr(speed, "_last", {})
    with hub_serving(Hub(**{FILE: gguf("one", size=SIZE)}), monkeypatch) as hub:
        yield hub


async def pull(net: World, name: str = REPOSITORY) -> str:
    """Begin to pull a model; gives the id of the pull."""
    found = await net.post("/api/models/pull", {"name": name})
    assert found.status_code == 200, found.text
    return str(found.json()["id"])


async def pulls(net: World, who: str = "admin") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await net.get("/api/models/pulls", who)).json()["pulls"]
    return found


async def over(net: World, id: str) -> dict[str, Any]:
    """A pull, when it is over."""
    pull = next(each for each in net.exchange.pulls.listed() if each.id == id)
    await until(lambda: pull.state != "running")
    return pull.members()


async def about(net: World, name: str, who: str = "admin") -> dict[str, Any]:
    listed = (await net.get("/api/models", who)).json()["models"]
    return next(each for each in listed if each["name"] == name)


async def test_the_models_are_listed_with_what_each_is_good_for(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = (await net.get("/api/models", "observer")).json()
        names = [each["name"] for each in found["models"]]
        assert names == [entry.name for entry in catalog.entries()]
        small = found["models"][names.index("smollm2-135m")]
        assert (small["kind"], small["state"], small["disk"], small["engine"]) == ("llm", "absent", 0, "llama-cpp")
        assert small["licence"] == "Apache-2.0"
        assert small["tokens_per_second"] is None
        assert found["disk_free"] > 0


async def test_a_pull_goes_on_in_the_background_and_ends_with_the_model_here(tmp_path: Path, hub: Hub) -> None:
    async with world(tmp_path) as net:
        hub.go_on.clear()
        id = await pull(net)
        assert [(each["id"], each["state"]) for each in await pulls(net, "observer")] == [(id, "running")]
        # Whoever asks again gets the one under way.
        assert await pull(net) == id
        hub.go_on.set()
        done = await over(net, id)
        assert (done["name"], done["state"], done["percent"], done["bytes"]) == (NAME, "done", 100, SIZE)
        assert (done["by"], done["error"]) == ("admin", None)
        found = await about(net, NAME)
        assert (found["state"], found["disk"], found["id"], found["licence"]) == ("here", SIZE, ID, "apache-2.0")


async def test_only_an_admin_is_told_where_a_model_is(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        await over(net, await pull(net))
        assert (await about(net, NAME))["path"].endswith(FILE)
        for who in ("observer", "talker", "approver"):
            told = await net.get("/api/models", who)
            assert str(tmp_path) not in told.text


async def test_a_pull_that_is_given_up_goes_on_where_it_was(tmp_path: Path, hub: Hub) -> None:
    async with world(tmp_path) as net:
        hub.cuts = [100_000] * 20
        failed = await over(net, await pull(net))
        assert failed["state"] == "failed"
        hub.cuts = []
        hub.go_on.clear()
        id = await pull(net)
        assert (await net.post(f"/api/models/pulls/{id}/cancel")).json()["state"] == "cancelled"
        begun = await about(net, NAME)
        assert begun["state"] == "partly"
        assert 100_000 <= begun["disk"] < SIZE
        hub.go_on.set()
        assert (await over(net, await pull(net)))["state"] == "done"
        assert any(span for span in hub.ranges)
        # To cancel what is over changes nothing.
        assert (await net.post(f"/api/models/pulls/{id}/cancel")).json()["state"] == "cancelled"
        assert (await net.post("/api/models/pulls/nothing/cancel")).status_code == 404


async def test_what_is_wrong_with_a_pull_is_told_to_admins_whole(tmp_path: Path, hub: Hub) -> None:
    async with world(tmp_path) as net:
        hub.wrong_hash = "0" * 64
        failed = await over(net, await pull(net))
        assert "SHA-256" in failed["error"]
        assert (await pulls(net))[0]["error"] == failed["error"]
        assert (await pulls(net, "talker"))[0]["error"] == models.FAILED
        gone = await over(net, await pull(net, "nobody/nothing"))
        assert "has no `nobody/nothing` for you" in gone["error"]


@pytest.mark.parametrize("name", ["", " ", "no-such-model", "../etc/passwd", "a/b/c", "x" * 401, "a\nb"])
async def test_what_is_no_name_of_a_model_is_refused_at_once(tmp_path: Path, name: str) -> None:
    async with world(tmp_path) as net:
        assert (await net.post("/api/models/pull", {"name": name})).status_code == 400
        assert await pulls(net) == []


async def test_only_so_many_are_pulled_at_once(tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "MOST_AT_ONCE", 1)
    async with world(tmp_path) as net:
        hub.go_on.clear()
        await pull(net)
        refused = await net.post("/api/models/pull", {"name": "smollm2-135m"})
        assert refused.status_code == 409
        assert "cancel one" in refused.json()["error"]["message"]


async def test_the_end_of_the_exchange_ends_its_pulls(tmp_path: Path, hub: Hub) -> None:
    hub.go_on.clear()
    async with world(tmp_path) as net:
        id = await pull(net)
        (pulled,) = net.exchange.pulls.listed()
    assert (pulled.id, pulled.state) == (id, "cancelled")


async def test_whoever_watches_hears_how_it_goes(tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LOOK_SECONDS", 0.01)
    async with world(tmp_path) as net:
        reader = Reader(net.app, "/api/models/events", {"authorization": f"Bearer {token('observer')}"})
        await until(lambda: reader.kinds == ["pulls"])
        hub.go_on.clear()
        await pull(net)
        await until(lambda: any(each["pulls"] for _, each in reader.events))
        hub.go_on.set()
        await until(lambda: reader.events[-1][1]["pulls"][0]["state"] == "done")
        net.app.state.streams.close()
        await reader.leave()


@pytest.mark.parametrize("who", ["observer", "talker", "approver"])
async def test_models_are_pulled_removed_and_measured_by_admins_only(tmp_path: Path, who: str) -> None:
    async with world(tmp_path) as net:
        for method, path in (
            ("POST", "/api/models/pull"), ("POST", "/api/models/pulls/x/cancel"),
            ("DELETE", "/api/models/smollm2-135m"), ("POST", "/api/models/smollm2-135m/measure"),
        ):  # fmt: skip
            assert (await net.ask(method, path, {"name": "smollm2-135m"}, who)).status_code == 403


async def test_a_model_is_removed_unless_somebody_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(tmp_path) as net:
        await over(net, await pull(net))
        entry = net.exchange.directory.find("echo")
        entry.options["model"] = NAME
        assert (await about(net, NAME, "observer"))["used_by"] == ["echo"]
        refused = await net.ask("DELETE", f"/api/models/{ID}")
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            409, f"`{NAME}` is the model of `echo`. Give it another one first.",
        )  # fmt: skip
        del entry.options["model"]
        monkeypatch.setattr(llama, "loaded", lambda: frozenset({NAME}))
        refused = await net.ask("DELETE", f"/api/models/{ID}")
        assert refused.status_code == 409
        assert "is in use" in refused.json()["error"]["message"]
        monkeypatch.undo()
        monkeypatch.setenv("TRUNKLINE_CACHE", str(tmp_path / "cache"))
        assert (await net.ask("DELETE", f"/api/models/{ID}")).json() == {"name": NAME, "removed": True}
        assert (await net.ask("DELETE", f"/api/models/{ID}")).status_code == 404
        assert (await net.ask("DELETE", "/api/models/smollm2-135m")).status_code == 404
        assert not [name for name in (tmp_path / "cache" / "models").rglob("*") if name.suffix == ".gguf"]


async def test_a_model_that_is_being_pulled_is_not_removed(tmp_path: Path, hub: Hub) -> None:
    async with world(tmp_path) as net:
        hub.cuts = [100_000] * 20
        await over(net, await pull(net))
        hub.cuts = []
        hub.go_on.clear()
        await pull(net)
        assert (await net.ask("DELETE", f"/api/models/{ID}")).status_code == 409


async def test_the_last_answer_of_a_model_tells_how_fast_it_is(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        await over(net, await pull(net))
        assert (await about(net, NAME))["tokens_per_second"] is None
        # By the name that it was loaded with: that of its repository is enough.
        speed.heard(REPOSITORY, {"predicted_n": 30, "predicted_per_second": 12.34, "prompt_ms": 80.0})
        assert (await about(net, NAME, "observer"))["tokens_per_second"] == 12.3
        speed.heard(NAME, {"predicted_n": 30, "predicted_per_second": 20, "prompt_ms": 80.0})
        assert (await about(net, NAME))["tokens_per_second"] == 20.0


async def test_a_model_is_measured_when_somebody_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def measure(name: str) -> MeasuredModel:
        asked.append(name)
        figures = {"tokens_per_second": Figure(33.3, 30.0, 40.0), "first_token_ms": Figure(120.4, 110.0, 130.0)}
        return MeasuredModel(name, "llm", 1.0, 0, 1, figures)

    monkeypatch.setattr(measuring, "measure", measure)
    async with world(tmp_path) as net:
        found = await net.post("/api/models/smollm2-135m/measure")
        assert found.json() == {"name": "smollm2-135m", "tokens_per_second": 33.3, "first_token_ms": 120}
        assert asked == ["smollm2-135m"]
        assert (await net.post("/api/models/no-such/measure")).status_code == 404


async def test_a_measurement_is_bounded_and_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(name: str) -> MeasuredModel:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]  # it gives nothing

    async def busy(name: str) -> MeasuredModel:
        raise AgentBusy("The model `other` is being measured.")

    monkeypatch.setattr(models, "MEASURE_SECONDS", 0.01)
    async with world(tmp_path) as net:
        monkeypatch.setattr(measuring, "measure", never)
        assert (await net.post("/api/models/smollm2-135m/measure")).status_code == 504
        monkeypatch.setattr(measuring, "measure", busy)
        assert (await net.post("/api/models/smollm2-135m/measure")).status_code == 409


async def test_a_model_that_is_not_here_cannot_be_measured(tmp_path: Path) -> None:
    async with world(tmp_path) as net:
        found = await net.post("/api/models/smollm2-135m/measure")
        assert found.status_code == 400
        assert "is not here yet" in found.json()["error"]["message"]
