"""`trunkline acp` for those who list commands, ask for help or complete a line; `cli.acp` is what runs."""

from __future__ import annotations

from trunkline.cli.program_command import program_command

command = program_command("acp", "Be an agent for an editor that speaks ACP.", "acp")
