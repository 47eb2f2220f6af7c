"""ONNX Runtime as all models of ours use it: quiet, and with the cores that it was given."""

from __future__ import annotations

from typing import Any


def session_options(threads: int) -> Any:
    """Options for an `InferenceSession`.

    Raises:
        ImportError: the library is not installed.
    """
    import onnxruntime  # type: ignore[import-untyped]  # it has no stubs

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Only what is fatal: standard error may be somebody's terminal.
    options.log_severity_level = 4
    # Threads that wait busily would take the cores from the language models beside it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options
