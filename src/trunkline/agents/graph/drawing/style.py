"""The colours of a picture, for light and for dark pages.

Plain rules and no variables: programs that turn SVG into other pictures know no more than those.
"""

from __future__ import annotations

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif"

#: The family of each type of node; each has a colour. Types that are not here are `other`.
FAMILIES = {
    "Generate": "model",
    "GenerateAndSpeak": "model",
    "ToolCall": "model",
    "ClassifyIntentLLM": "model",
    "Director": "model",
    "Retrieve": "search",
    "ClassifyIntent": "search",
    "Remember": "search",
    "HumanMessageGuardrail": "guard",
    "CannedResponse": "words",
    "Instruction": "words",
    "IntentToInstruction": "words",
}

#: Selector, property, and the value on light and on dark pages.
_COLOURS = (
    (".page", "fill", "#fafbfc", "#14171c"),
    (".box", "fill", "#ffffff", "#1d2229"),
    (".box,.rule", "stroke", "#cfd5dd", "#3b4450"),
    (".name,.title", "fill", "#1b2027", "#e8ebf0"),
    (".value,.exit", "fill", "#3d4650", "#c3cad4"),
    (".key,.time,.about", "fill", "#6a7481", "#929dab"),
    (".edge", "stroke", "#8a94a2", "#727d8c"),
    (".tip", "fill", "#8a94a2", "#727d8c"),
    (".pill", "fill", "#e9edf2", "#2a313b"),
    (".pill-text", "fill", "#56606c", "#aab4c1"),
    (".ran .box", "stroke", "#2563eb", "#71a7ff"),
    (".ran .exit.taken,.done", "fill", "#1d4fc4", "#8ab8ff"),
    (".edge.taken", "stroke", "#2563eb", "#71a7ff"),
    (".tip.taken,.badge", "fill", "#2563eb", "#71a7ff"),
    (".badge-text", "fill", "#ffffff", "#10141a"),
    (".failed .box", "stroke", "#c62828", "#ff8a80"),
    (".bad", "fill", "#c62828", "#ff8a80"),
    (".model", "fill", "#4f46e5", "#a9b5ff"),
    (".search", "fill", "#0b7269", "#5fdfcd"),
    (".guard", "fill", "#a8500a", "#f7b955"),
    (".words", "fill", "#7b2fb0", "#d3adf7"),
    (".other", "fill", "#b01657", "#f6a3c6"),
)

_RULES = f"""text{{font-family:{FONT};white-space:pre}}
.name{{font-size:14px;font-weight:650}}
.type{{font-size:11px;font-weight:550}}
.key,.value,.time,.done{{font-size:11.5px}}
.exit,.pill-text{{font-size:11px}}
.exit,.pill-text,.badge-text{{text-anchor:middle}}
.time{{text-anchor:end}}
.title{{font-size:17px;font-weight:650}}
.about,.bad{{font-size:12.5px}}
.badge-text{{font-size:11px;font-weight:700}}
.box{{stroke-width:1.2}}
.ran .box{{stroke-width:2}}
.edge{{fill:none;stroke-width:1.5}}
.edge.taken{{stroke-width:2.6}}
.exit.taken{{font-weight:700}}
.unused{{opacity:.45}}
.unreached .box{{stroke-dasharray:5 4}}"""


def stylesheet() -> str:
    """All rules, for the inside of a `style` element."""
    light = "\n".join(f"{selector}{{{key}:{value}}}" for selector, key, value, _ in _COLOURS)
    dark = "\n".join(f"{selector}{{{key}:{value}}}" for selector, key, _, value in _COLOURS)
    return f"{_RULES}\n{light}\n@media (prefers-color-scheme:dark){{\n{dark}\n}}"
