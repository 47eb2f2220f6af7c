"""What is told of a model that a graph can name."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.core.graph.description import LogitBias, LoraAdapter
from trunkline.core.graph.ordinals import ModelStatus


class SamplingParams(Value):
    """How a model samples unless a node says otherwise. `seed` 0: another one each turn."""

    temperature: float = 0.7
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    max_tokens: int = 2048
    seed: int = 0
    stop: tuple[str, ...] = ()
    json_schema: str | None = None
    logit_bias: tuple[LogitBias, ...] = ()
    lora: tuple[LoraAdapter, ...] = ()


class ModelInfo(Value):
    """One model of the catalog. `model_type`: language, embedding, stt, tts or vad.

    `memory_bytes` is what it needs, about; 0 where nobody knows. `gpu_layers` and what follows say how a loaded model
    was loaded: 0 and "" for one that is not, or whose engine does not say.
    """

    name: str = ""
    status: int = ModelStatus.ABSENT
    huggingface_repo: str = ""
    size_bytes: int = 0
    model_type: str = ""
    engine: str = ""
    audience: str = ""
    tool_call_format: str = ""
    context_size: int = 0
    files: tuple[str, ...] = ()
    local_path: str = ""
    default_sampling: SamplingParams | None = None
    description: str = ""
    good_for: str = ""
    licence: str = ""
    languages: tuple[str, ...] = ()
    memory_bytes: int = 0
    gpu_layers: int = 0
    threads: int = 0
    context_used: int = 0
    kv_cache_type: str = ""
    device: str = ""
    voices: tuple[str, ...] = ()
    """The speakers of a model that speaks, by the numbers that nodes ask for them."""
