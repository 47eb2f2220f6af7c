extends Node
## Talks with Berta, who keeps a gate, on the mock engine of `trunkline tryll serve --ws`.

const GRAPH := {
	"start_node": "tools",
	"nodes":
	[
		{
			"name": "tools",
			"params":
			{
				"type": "ToolCallParams",
				"tools": [{"name": "open_gate", "description": "Opens the gate."}],
				"notify_client": true,
				"no_tool_called_exit": "answer",
			},
		},
		{
			"name": "answer",
			"params":
			{
				"type": "GenerateParams",
				"system_prompt": "You are Berta, the keeper of a gate. Answer in one sentence.",
				"stream": true,
			},
		},
	],
}

var berta: TryllAgent = null


func _ready() -> void:
	Tryll.connected.connect(_appear)
	var result: TryllResult = await Tryll.open("ws://127.0.0.1:9101")
	if not result.ok:
		print(result.message)


## Also after a lost connection, which takes the old agent with it.
func _appear(_again: bool) -> void:
	var result: TryllResult = await Tryll.create_agent(GRAPH, "mock")
	if not result.ok:
		print(result.message)
		return
	berta = result.value
	berta.text.connect(func(piece: String) -> void: printraw(piece))
	berta.tool_call.connect(_do)
	for line: String in ["Good evening", "open_gate, please"]:
		await berta.send(line)
		print()


func _do(tool: String, _arguments: Dictionary, _node: String) -> void:
	if tool == "open_gate":
		printraw("* The gate opens.")
