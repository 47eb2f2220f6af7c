"""Graphs that tests write, break and try."""

from __future__ import annotations

#: Answers without any model, and calls a tool when it hears its name.
SMITH = """\
start: guard
default_model: mock
storages: {refusals: ["Nice try.", "No."]}
nodes:
  guard:
    type: HumanMessageGuardrail
    inline_strings: ["ignore (all )?previous"]
    triggered: refuse
    not_triggered: tools
  refuse: {type: CannedResponse, string_storage: refusals}
  tools:
    type: ToolCall
    notify_client: true
    tools: [{name: sell_sword, description: Sells the traveller a sword.}]
    no_tool_called: answer
  answer:
    type: Generate
    system_prompt: You are a smith. Answer in one sentence.
    stream: true
"""
#: The same with two mistakes, in the lines 8 and 19.
BROKEN_SMITH = SMITH.replace("triggered: refuse\n", "triggered: refuze\n", 1).replace("stream: true", "strem: true")

#: What a page must show as text wherever it stands.
MARKUP = "<img src=x onerror=alert(1)></title><script>alert(2)</script>"
HOSTILE = f"""\
start: "{MARKUP}"
default_model: mock
nodes:
  "{MARKUP}":
    type: Generate
    system_prompt: "{MARKUP}"
"""
