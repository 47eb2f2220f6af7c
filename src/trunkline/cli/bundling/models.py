"""The models of a bundle, in the places in which the server looks for them; and the graphs that name them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator

from trunkline.agents.graph import bundled, yaml_graph
from trunkline.agents.graph.agent_models import wanted
from trunkline.base import document
from trunkline.base.document import Part
from trunkline.base.regular import read_regular
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError
from trunkline.models import catalog, catalog_pulled
from trunkline.models.catalog_entry import OPENAI, CatalogEntry, ModelFile
from trunkline.models.installed import extra_of, lacking_engines

#: Where they are in the bundle.
MODELS, GRAPHS = "models", "graphs"


class ChosenModel(Value):
    """A model, and where it is now: its folder, or for a file of somebody's own that file."""

    entry: CatalogEntry
    place: str
    loose: bool = False


class ChosenGraph(Value):
    """A graph's file, and the files beside it that it names."""

    name: str
    path: str
    beside: tuple[str, ...]
    models: tuple[str, ...]


def chosen(name: str) -> ChosenModel:
    """A model by its name, or a GGUF file by its path.

    Raises:
        ConfigError: it is not on this machine, or nothing here runs it.
    """
    if name.endswith(".gguf") and os.path.isfile(name):
        file = os.path.basename(name)
        own = CatalogEntry(file.removesuffix(".gguf"), files=(ModelFile(file),), licence="not stated")
        return ChosenModel(own, os.path.abspath(name), loose=True)
    entry = catalog.known(catalog.find(name))
    if entry.engine == OPENAI:
        raise ConfigError(f"The model `{name}` runs on another machine: it cannot be put into a bundle.")
    if (lacks := lacking_engines((entry.engine,))) is not None:
        raise ConfigError(f"The model `{name}` cannot be used. {lacks}")
    if catalog.path(entry) is None:
        raise ConfigError(
            f"The model `{name}` is not on this machine.", hint=f"`trunkline models pull {name}` gets it."
        )
    return ChosenModel(entry, "" if entry.packaged is not None else catalog.place(entry))


def extras(found: Iterable[ChosenModel]) -> tuple[str, ...]:
    """Our extras that bring what runs them. `graph` is what every server has."""
    engines = (extra_of(each.entry.engine) for each in found)
    return tuple(dict.fromkeys(("graph", *(extra for extra in engines if extra))))


def copy(found: ChosenModel, root: str) -> None:
    """Put a model into the bundle."""
    if not found.place:
        return
    folder = os.path.join(root, MODELS)
    os.makedirs(folder, exist_ok=True)
    if found.loose:
        shutil.copyfile(found.place, os.path.join(folder, os.path.basename(found.place)))
        return
    shutil.copytree(found.place, os.path.join(folder, os.path.basename(found.place)))
    if found.entry.origin:
        catalog_pulled.write(folder, found.entry)


def graph(spec: str) -> ChosenGraph:
    """A graph's file, or a bundled graph, with all models that it names.

    Raises:
        ConfigError: it is no graph.
    """
    file = yaml_graph.load(spec)
    _, models = wanted(file.graph, file.default_model)
    others = [getattr(node.params, key, None) for node in file.graph.nodes for key in ("tts_model_name",)]
    others += [each.embedding_model for each in file.knowledge]
    path, folder = bundled.locate(spec), bundled.folder_of(spec)
    data = read_regular(path, document.MAX_BYTES + 1).data
    beside = sorted({text for text in _texts(document.parse(data, path, "the graph")) if _is_beside(folder, text)})
    named = dict.fromkeys(filter(None, (*models, *others)))
    return ChosenGraph(os.path.basename(path), path, tuple(beside), tuple(name for name in named if name))


def copy_graph(found: ChosenGraph, root: str) -> None:
    """Put a graph into the bundle, and the files that it names into the same places beside it."""
    folder = os.path.join(root, GRAPHS)
    for name in (found.name, *found.beside):
        there = os.path.join(folder, name)
        os.makedirs(os.path.dirname(there), exist_ok=True)
        source = found.path if name == found.name else os.path.join(os.path.dirname(found.path), name)
        shutil.copyfile(source, there)


def _is_beside(folder: str, text: str) -> bool:
    if not text or len(text) > 255 or os.path.isabs(text) or "\0" in text or os.pardir in text.split("/"):
        return False
    return os.path.isfile(os.path.join(folder, text))


def _texts(root: Part) -> Iterator[str]:
    """All texts in a document."""
    return (part.value for part in root.walk() if isinstance(part.value, str))
