"""What a run of a kit found, in the forms that people and programs read: text lines, JSON, Markdown.

Everything that leaves here went through the redactor: a target may well print the key that it was given.
"""

from __future__ import annotations

from typing import Any

from trunkline import __version__
from trunkline.base import jsontext
from trunkline.base.redact import Redactor
from trunkline.base.values import Value
from trunkline.conform.kit import HARMLESS, TIERS, VERDICTS, Check, CheckResult
from trunkline.conform.record import Record

#: How a requirement that was not met is counted, in one sentence for every report.
RULE = "A target conforms when every MUST that applies to it passed; a MUST that was not exercised counts as failed."


class Report(Value):
    """One run of a kit."""

    wire: str
    protocol: str
    argv: tuple[str, ...]
    started: str
    """When, in ISO 8601."""
    seconds: float
    results: tuple[CheckResult, ...]
    records: tuple[Record, ...]
    redactor: Redactor
    left_out: int = 0
    """Checks of the kit that were not selected: of those, nothing is said."""

    @property
    def conforms(self) -> bool:
        """Whether every MUST that applies passed."""
        return not any(result.counts_as_failed for result in self.results)

    @property
    def is_flawless(self) -> bool:
        """Whether every MUST and every SHOULD that applies passed."""
        return all(result.verdict in HARMLESS or result.check.tier == "MAY" for result in self.results)

    def summary(self) -> str:
        """One line: the counts of each tier, and the verdict."""
        counts = self._counts()
        parts = []
        for tier in TIERS:
            total = sum(counts[tier].values())
            if total:
                others = [f"{counts[tier][verdict]} {verdict}" for verdict in VERDICTS[1:] if counts[tier][verdict]]
                more = f" ({', '.join(others)})" if others else ""
                parts.append(f"{tier} {counts[tier]['passed']}/{total}{more}")
        verdict = "conforms" if self.conforms else "does not conform"
        if self.left_out and self.conforms:
            verdict += f", as far as checked ({self.left_out} checks left out)"
        return f"{' · '.join(parts)} · {verdict} · {self.seconds:.1f} s"

    def _counts(self) -> dict[str, dict[str, int]]:
        counts = {tier: dict.fromkeys(VERDICTS, 0) for tier in TIERS}
        for result in self.results:
            counts[result.check.tier][result.verdict] += 1
        return {tier: {str(verdict): count for verdict, count in found.items()} for tier, found in counts.items()}

    def as_data(self) -> dict[str, Any]:
        """All of it as JSON values, the conversations included."""
        data = {
            "kit": {"name": "trunkline conform", "version": __version__},
            "wire": self.wire,
            "protocol_version": self.protocol,
            "target": {"argv": list(self.argv)},
            "started": self.started,
            "seconds": round(self.seconds, 3),
            "conforms": self.conforms,
            "summary": self._counts(),
            "results": [_result_data(result) for result in self.results],
            "conversations": [record.export() for record in self.records],
        }
        found: dict[str, Any] = self.redactor.data(data)
        return found

    def as_json(self) -> str:
        """`as_data` as one JSON text, with its line feed."""
        return jsontext.dumps(self.as_data()).decode("utf-8") + "\n"

    def as_markdown(self) -> str:
        """A document for people, the conversations included."""
        data = self.as_data()
        lines = [
            f"# Conformance of `{' '.join(data['target']['argv'])}`",
            "",
            f"{self.wire}, protocol version {self.protocol}. {self.started}, trunkline {__version__}.",
            "",
            f"**{self.summary()}**",
            "",
            RULE,
            "",
            "| check | tier | section | result | reason |",
            "|---|---|---|---|---|",
        ]
        for result in data["results"]:
            cells = (f"`{result['id']}`", result["tier"], result["section"], result["result"], _cell(result["reason"]))
            lines.append(f"| {' | '.join(cells)} |")
        lines += [
            "",
            "## Conversations",
            "",
        ]
        if data["conversations"]:
            ours, theirs = data["conversations"][0]["roles"]
            lines += [f"Seconds since the start; `>` is the {ours}, `<` the {theirs}, `#` the kit.", ""]
        for conversation in data["conversations"]:
            lines += _conversation(conversation)
        return "\n".join(lines) + "\n"


def check_data(check: Check) -> dict[str, Any]:
    """A requirement as JSON values."""
    return {"id": check.id, "tier": check.tier, "section": check.section, "requirement": check.requirement}


def _result_data(result: CheckResult) -> dict[str, Any]:
    return check_data(result.check) | {
        "result": result.verdict,
        "reason": result.reason,
        "seconds": round(result.seconds, 3),
        "conversations": list(result.conversations),
    }


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _conversation(data: dict[str, Any]) -> list[str]:
    ended = "killed by the kit" if data["killed"] else f"exit status {data['exit_code']}"
    # What was not a process has neither.
    suffix = f" ({ended})" if data["killed"] or data["exit_code"] is not None else ""
    lines = [f"<details><summary>{data['name']}{suffix}</summary>", "", "````text", f"$ {' '.join(data['argv'])}"]
    arrows = dict(zip(data["roles"], "><", strict=True))
    lines += [f"{line['at']:9.4f} {arrows.get(line['from'], '#')} {line['line']}" for line in data["lines"]]
    if data["lines_left_out"]:
        lines.append(f"({data['lines_left_out']} lines in the middle are left out)")
    if data["stderr"]:
        lines += ["standard error:", data["stderr"]]
    return [*lines, "````", "", "</details>", ""]
