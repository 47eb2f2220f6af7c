class_name TryllAgent
extends RefCounted
## An agent of a session. It is gone with the connection that it was made on.
##
## Its signals tell of every turn, also of those that the server begins because somebody has spoken.

## The next piece of the answer.
signal text(piece: String)
## The answer is something else than what was said so far.
signal replaced(whole: String)
## A model wants to call a tool. Its name and its arguments are the model's: check them.
signal tool_call(name: String, arguments: Dictionary, node: String)
## What else a node tells, for instance `intent_classified`; `values` by their names.
signal event(type: String, values: Dictionary, node: String)
## A piece of the voice: 16-bit samples, little-endian, of all channels in turns.
signal sound(samples: PackedByteArray, sample_rate: int, channels: int)
## When what is spoken: a list of `kind`, `text`, `start_ms` and `end_ms`.
signal timing(marks: Array)
## Once for each turn, the last. The value is a dictionary with `text`, `status`, and tokens.
signal done(result: TryllResult)

var id := 0

var _client: TryllClient
var _epoch := 0
var _destroyed := false
var _turns: Array[TryllCall] = []
var _said := ""
var _sample_rate := 0
var _channels := 1


func _init(client: TryllClient, agent_id: int) -> void:
	_client = client
	_epoch = client.epoch
	id = agent_id


## Begins a turn, and waits for its end; what is said until then comes by the signals.
func send(line: String) -> TryllResult:
	var problem := _unusable()
	if problem:
		return problem
	var call := _client.begin(
		"SendMessageRequest", {"agent_id": id, "text": line}, _client.turn_seconds
	)
	_turns.append(call)
	var result := await call.ended()
	_turns.erase(call)
	if result.ok:
		return result
	# Nobody waits for this turn any longer: the server is told to stop, if it can.
	if result.code == TryllResult.TIMEOUT and _client.has_extension("cancel"):
		_client.begin("CancelTurnRequest", {"agent_id": id})
		_said = ""
	done.emit(result)
	return result


## Ends the turn that it is in.
func cancel() -> TryllResult:
	var problem := _unable("cancel", "stop a turn")
	if problem:
		return problem
	return await _client.ask("CancelTurnRequest", {"agent_id": id})


## Gives a node other parameters: all of them, of the same kind, with their `type`.
func change(node: String, params: Dictionary) -> TryllResult:
	var problem := _unusable()
	if problem:
		return problem
	var fields := {"agent_id": id, "node_name": node, "params": params}
	return await _client.ask("ChangeAgentParamRequest", fields)


## The conversation, for a saved game: a list of `role` and `text`.
func history() -> TryllResult:
	var problem := _unable("history", "give a conversation")
	if problem:
		return problem
	return await _client.collect("SaveHistoryRequest", {"agent_id": id}, "entries")


## Gives it a conversation: in place of its own, or after it.
func restore(entries: Array, append := false) -> TryllResult:
	var problem := _unable("history", "take a conversation")
	if problem:
		return problem
	var fields := {"agent_id": id, "entries": entries, "append": append}
	return await _client.ask("RestoreHistoryRequest", fields)


## It is gone, and a turn of it ends as cancelled.
func destroy() -> TryllResult:
	var problem := _unusable()
	if problem:
		return problem
	_destroyed = true
	var result := await _client.ask("DestroyAgentRequest", {"agent_id": id})
	if result.ok:
		lose(TryllResult.bad(TryllResult.AGENT_ALREADY_DESTROYED, "The agent was destroyed."))
	return result


## What comes from the server for it. The client calls this.
func take(message: Dictionary) -> void:
	var request_id := int(message.get("request_id", 0))
	# What comes of a turn that nobody waits for harms no other one.
	if request_id != 0 and _client.call_of(request_id) == null:
		return
	for turn in _turns:
		turn.deadline = _client.now() + turn.seconds
	match message["type"]:
		"AnswerText":
			_take_text(message)
		"NodeEvent":
			_take_event(message)
		"TtsAudioFormatFrame":
			_sample_rate = int(message.get("sample_rate", 0))
			_channels = int(message.get("channels", 1))
		"TtsAudioFrame":
			# Without a format it is no sound.
			if _sample_rate > 0 and _channels > 0:
				sound.emit(Marshalls.base64_to_raw(message.get("pcm", "")), _sample_rate, _channels)
		"TtsTimingFrame":
			timing.emit(message.get("marks", []))
		"TurnComplete":
			var result := message.duplicate()
			result["text"] = _said
			_finish(request_id, TryllResult.good(result))


## Everything that was asked of it has come to that.
func lose(result: TryllResult) -> void:
	_client.forget_agent(id)
	for turn: TryllCall in _turns.duplicate():
		turn.finish(result)


## The end of a turn: of the one that was asked for by that number, or, 0, of one that the server
## began.
func _finish(request_id: int, result: TryllResult) -> void:
	_said = ""
	_sample_rate = 0
	done.emit(result)
	var call := _client.call_of(request_id)
	if call:
		_client.forget_call(request_id)
		call.finish(result)


func _take_text(message: Dictionary) -> void:
	var piece: String = message.get("text", "")
	if message.get("is_delta", false):
		_said += piece
		if piece:
			text.emit(piece)
	elif piece.begins_with(_said):
		var more := piece.substr(_said.length())
		_said = piece
		if more:
			text.emit(more)
	else:
		_said = piece
		replaced.emit(piece)


func _take_event(message: Dictionary) -> void:
	var node: String = message.get("node_name", "")
	var values := {}
	for pair: Dictionary in message.get("kv_pairs", []):
		values[pair.get("key", "")] = pair.get("value", "")
	if message.get("event_type", "") != "tool_call" or not values.get("tool_name", ""):
		event.emit(message.get("event_type", ""), values, node)
		return
	var arguments: Variant = JSON.parse_string(values.get("arguments_json", "{}"))
	if not arguments is Dictionary:
		arguments = {}
	tool_call.emit(values["tool_name"], arguments, node)


func _unusable() -> TryllResult:
	if _destroyed:
		return TryllResult.bad(TryllResult.AGENT_ALREADY_DESTROYED, "The agent was destroyed.")
	return _client.unusable(_epoch)


func _unable(extension: String, what: String) -> TryllResult:
	var problem := _unusable()
	return problem if problem else _client.lacks(extension, what)
