"""The messages of the Tryll wire about models and storages. See `messages`."""

from __future__ import annotations

from trunkline.core.graph.models import ModelInfo
from trunkline.core.graph.ordinals import StringStorageKind
from trunkline.wires.tryll.messages_base import FromClient, FromServer


class ListModelsRequest(FromClient):
    """Ask for the catalog."""

    wire = "Q"

    request_id: int = 0


class ListModelsResponse(FromServer):
    """The catalog. One that does not fit into a frame comes in several, all but the last with `more`."""

    wire = "Q [ModelInfo ?"

    request_id: int = 0
    models: tuple[ModelInfo, ...] = ()
    more: bool = False


class _ModelRequest(FromClient):
    wire = "Q s"

    request_id: int = 0
    model_name: str = ""


class DownloadModelRequest(_ModelRequest):
    """Fetch a model."""


class DownloadProgress(FromServer):
    """How far a download is. `percent` goes to 100."""

    wire = "Q s Q Q f"

    request_id: int = 0
    model_name: str = ""
    bytes_downloaded: int = 0
    total_bytes: int = 0
    percent: float = 0.0


class DownloadComplete(FromServer):
    """The end of a download that was asked for."""

    wire = "Q s ? s"

    request_id: int = 0
    model_name: str = ""
    success: bool = False
    error_message: str = ""


class LoadModelRequest(_ModelRequest):
    """Load a model, and keep it."""


class LoadModelResponse(FromServer):
    """The model is loaded."""

    wire = "Q s"

    request_id: int = 0
    model_name: str = ""


class UnloadModelRequest(_ModelRequest):
    """Keep a model no longer."""


class DeleteModelRequest(_ModelRequest):
    """Remove what a download has brought."""


# Storages.


class CreateStringStorageRequest(FromClient):
    """Name some strings, given here or in a file."""

    wire = "Q s [s s B [s"

    request_id: int = 0
    name: str = ""
    strings: tuple[str, ...] = ()
    file_path: str = ""
    kind: int = StringStorageKind.LIST
    keys: tuple[str, ...] = ()


class CreateStringStorageResponse(FromServer):
    """The storage is there."""

    wire = "Q s"

    request_id: int = 0
    name: str = ""


class _StorageRequest(FromClient):
    wire = "Q s"

    request_id: int = 0
    name: str = ""


class DestroyStringStorageRequest(_StorageRequest):
    """Forget a string storage."""


class CreateEmbeddedStringStorageRequest(FromClient):
    """Name some strings that are found by their meaning, given here or by a file that describes them.

    `records_json` (extension `records`) gives records with fields: `{"records": [...], "fields": [...]}`. `memory_path`
    (extension `memory`) names a file in which agents keep what they write down.
    """

    wire = "Q s s [s s s s"

    request_id: int = 0
    name: str = ""
    config_path: str = ""
    strings: tuple[str, ...] = ()
    embedding_model: str = ""
    records_json: str = ""
    memory_path: str = ""


class CreateEmbeddedStringStorageResponse(FromServer):
    """The storage is there, and its records are embedded."""

    wire = "Q s I I"

    request_id: int = 0
    name: str = ""
    record_count: int = 0
    embedding_dim: int = 0


class DestroyEmbeddedStringStorageRequest(_StorageRequest):
    """Forget an embedded string storage."""
