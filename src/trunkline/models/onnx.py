"""ONNX Runtime as all models of ours use it: quiet, to itself, and with the cores that it was given."""

from __future__ import annotations

import os
from typing import Any

#: Its published packages report their use to Microsoft, under a number that they keep in the user's cache, unless this
#: is set when it is imported. What runs on somebody's machine is nobody else's business.
TELEMETRY_OFF = "ORT_DISABLE_TELEMETRY"


def runtime() -> Any:
    """The library. Import it nowhere else.

    Raises:
        ImportError: it is not installed.
    """
    os.environ[TELEMETRY_OFF] = "1"
    import onnxruntime  # type: ignore[import-untyped]  # it has no stubs

    return onnxruntime


def session_options(threads: int) -> Any:
    """Options for an `InferenceSession`.

    Raises:
        ImportError: the library is not installed.
    """
    options = runtime().SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Only what is fatal: standard error may be somebody's terminal.
    options.log_severity_level = 4
    # Threads that wait busily would take the cores from the language models beside it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options
