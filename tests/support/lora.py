"""A small adapter for the small model, in a GGUF file, with random weights: nobody trained it for anything."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

#: Of the model: what its attention takes and gives.
WIDTH = 576
#: How many of its layers are adapted, the rank of the matrices, and the seed of their weights.
LAYERS, RANK, SEED = 8, 4, 11

_STRING, _FLOAT = 8, 6
_ALIGNMENT = 32


def write_adapter(path: Path, *, width: int = WIDTH) -> str:
    """Write it. With another `width` it is one for another model."""
    random = Random(SEED)
    tensors = []
    for layer in range(LAYERS):
        for part, shape in (("lora_a", (width, RANK)), ("lora_b", (RANK, width))):
            weights = [random.gauss(0.0, 0.1) for _ in range(width * RANK)]
            name = f"blk.{layer}.attn_q.weight.{part}"
            tensors.append((name, shape, struct.pack(f"<{len(weights)}f", *weights)))
    texts = {"general.type": "adapter", "general.architecture": "llama", "adapter.type": "lora"}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(texts) + 1)
    for key, value in texts.items():
        head += _text(key) + struct.pack("<I", _STRING) + _text(value)
    head += _text("adapter.lora.alpha") + struct.pack("<If", _FLOAT, 8.0)
    data = b""
    for name, shape, packed in tensors:
        head += _text(name) + struct.pack("<IQQIQ", 2, *shape, 0, len(data))
        data += packed + bytes(-len(packed) % _ALIGNMENT)
    path.write_bytes(head + bytes(-len(head) % _ALIGNMENT) + data)
    return str(path)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()
