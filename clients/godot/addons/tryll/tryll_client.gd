# gdlint: disable=max-public-methods,max-returns
class_name TryllClient
extends Node
## A session on a Tryll server, by WebSocket, in JSON.
##
## Calls are awaited, and come to a `TryllResult`. What is not said of a call here is said in
## clients/README.md of Trunkline: all clients have the same shape.

## A session is there and configured; `again`: in place of one that was lost.
signal connected(again: bool)
## It is lost. It is tried again, unless `is_final`: then every call fails until `open` is called.
signal lost(result: TryllResult, is_final: bool)

enum Connection { IDLE, CONNECTING, READY, WAITING }

const PROTOCOL_VERSION := 2
const MAX_MESSAGE := 1 << 20
## What waits to be sent: more than the largest message.
const OUTBOUND_BYTES := 2 << 20
## What may come between two frames of the game: before Godot 4.4, and in browsers, the engine drops
## what does not fit. So there is room for hundreds of thousands of characters of an answer: they
## come in messages of a hundred bytes and more. A byte less, since the engine would double a power
## of two.
const INBOUND_BYTES := (16 << 20) - 1
## The same in messages.
const INBOUND_MESSAGES := (1 << 18) - 1
## More parts of one answer are no answer.
const MOST_PARTS := 64
## How often it is looked whether another client has downloaded a model.
const LOOK_SECONDS := 1.0
## After these it is not tried again.
const FINAL_CODES: Array[int] = [
	TryllResult.FRAME_TOO_LARGE,
	TryllResult.PROTOCOL_VERSION_MISMATCH,
	TryllResult.UNAUTHORIZED,
]
## Fields that not every server knows, and the extension that brought each of them.
const EXTENSION_OF := {
	"stop": "generation",
	"json_schema": "generation",
	"logit_bias": "generation",
	"lora": "generation",
	"timings": "timings",
	"pronunciations": "timings",
	"records_json": "records",
	"memory_path": "memory",
}
## What tells of a turn.
const OF_AN_AGENT: Array[String] = [
	"AnswerText",
	"TurnComplete",
	"NodeEvent",
	"TtsAudioFormatFrame",
	"TtsAudioFrame",
	"TtsTimingFrame",
]

@export var url := "ws://127.0.0.1:9101"
## The fields of a `ConfigureSessionRequest`: engines by their names, `token`, and so on.
@export var config := {}
@export var reconnect_attempts := 6
@export var reconnect_first_seconds := 0.1
@export var reconnect_longest_seconds := 5.0
@export var connect_seconds := 30.0
@export var request_seconds := 30.0
@export var model_seconds := 300.0
@export var turn_seconds := 120.0

var connection := Connection.IDLE
var session_id := 0
var extensions: Array = []
## Changes whenever a connection begins or ends.
var epoch := 0

var _socket: WebSocketPeer = null
var _greeted := false
var _last_id := 0
var _calls := {}
var _agents := {}
var _voices := {}
var _connecting: TryllCall = null
var _connect_deadline := 0.0
var _next_attempt := 0.0
var _pause := 0.0
var _attempts := 0
var _again := false
var _reason: TryllResult = null
var _last_error: TryllResult = null


func _process(_delta: float) -> void:
	update()


func _exit_tree() -> void:
	close()


## Connects, and configures with `config`. Tries once.
func open(address := "") -> TryllResult:
	if address:
		url = address
	if connection == Connection.READY:
		return TryllResult.good()
	if _connecting == null:
		_connecting = TryllCall.new()
		if connection == Connection.IDLE:
			_again = false
		if connection != Connection.CONNECTING:
			_open()
	if _connecting == null:
		return _last_error
	return await _connecting.ended()


## Ends the session and all that it has; whoever waits gets 1002.
func close() -> void:
	_end(_dropped("This client is closed."), false)


## Delivers what has come. Each frame of the game does that already, while this node is in the tree.
func update() -> void:
	if _socket:
		_read()
	_look_at_the_clock()


func has_extension(extension: String) -> bool:
	return extension in extensions


## Another configuration, for what is created from then on.
func configure(fields: Dictionary) -> TryllResult:
	var request := fields.duplicate()
	request["protocol_version"] = PROTOCOL_VERSION
	var result := await ask("ConfigureSessionRequest", request)
	if result.ok:
		config = fields
	return result


## The value is a `TryllAgent`. The graph is a `GraphDescription`, as `trunkline graph export`
## writes it.
func create_agent(
	graph: Dictionary,
	default_model := "",
	diagnostics := false,
	max_steps := 0,
	progress := Callable()
) -> TryllResult:
	var fields := {
		"graph": graph,
		"default_model_name": default_model,
		"enable_diagnostics": diagnostics,
		"max_steps_per_turn": max_steps,
	}
	var result := await ask("CreateAgentRequest", fields, model_seconds, progress)
	if not result.ok:
		return result
	var made: Variant = _agents.get(int(result.value.get("agent_id", 0)))
	return TryllResult.good(made) if made else unusable(-1)


## The value is a `TryllVoiceInput`. The fields are those of a `CreateVoiceInputRequest`.
func create_voice_input(fields: Dictionary, progress := Callable()) -> TryllResult:
	var result := await ask("CreateVoiceInputRequest", fields, model_seconds, progress)
	if not result.ok:
		return result
	var made: Variant = _voices.get(int(result.value.get("voice_input_id", 0)))
	return TryllResult.good(made) if made else unusable(-1)


## Strings that nodes use. `kind`: List, Map or Multimap; without one, it is what keys or file tell.
func create_storage(
	storage: String,
	strings: PackedStringArray,
	keys := PackedStringArray(),
	kind := "",
	file_path := ""
) -> TryllResult:
	if not kind:
		kind = "Map" if keys or file_path.ends_with(".json") else "List"
		if file_path.ends_with(".mm.json"):
			kind = "Multimap"
	var fields := {
		"name": storage,
		"strings": Array(strings),
		"keys": Array(keys),
		"kind": kind,
		"file_path": file_path,
	}
	return await ask("CreateStringStorageRequest", fields)


## Agents that use it keep it.
func destroy_storage(storage: String) -> TryllResult:
	return await ask("DestroyStringStorageRequest", {"name": storage})


## Strings that are found by their meaning. `options`: `embedding_model`, `config_path`,
## `records_json`, `memory_path`.
func create_embedded_storage(
	storage: String, strings: PackedStringArray, options := {}, progress := Callable()
) -> TryllResult:
	var fields: Dictionary = options.duplicate()
	fields["name"] = storage
	fields["strings"] = Array(strings)
	return await ask("CreateEmbeddedStringStorageRequest", fields, model_seconds, progress)


func destroy_embedded_storage(storage: String) -> TryllResult:
	return await ask("DestroyEmbeddedStringStorageRequest", {"name": storage})


## The value is a list of `ModelInfo`.
func list_models() -> TryllResult:
	return await collect("ListModelsRequest", {}, "models")


func download_model(model: String, progress := Callable()) -> TryllResult:
	var result := await ask("DownloadModelRequest", {"model_name": model}, model_seconds, progress)
	if result.ok and not result.value.get("success", false):
		return TryllResult.bad(
			TryllResult.DOWNLOAD_FAILED, result.value.get("error_message", "The download failed.")
		)
	return result


func load_model(model: String) -> TryllResult:
	return await ask("LoadModelRequest", {"model_name": model}, model_seconds)


func unload_model(model: String) -> TryllResult:
	return await ask("UnloadModelRequest", {"model_name": model})


func delete_model(model: String) -> TryllResult:
	return await ask("DeleteModelRequest", {"model_name": model})


## Downloads it if it is absent, waits while another client does, and loads it.
func ensure_model(model: String, progress := Callable()) -> TryllResult:
	while true:
		var models := await list_models()
		if not models.ok:
			return models
		var status := ""
		for each: Dictionary in models.value:
			if each.get("name", "") == model:
				status = str(each.get("status", "Absent"))
		if not status:
			return TryllResult.bad(
				TryllResult.DOWNLOAD_NOT_AVAILABLE, "The server has no model `%s`." % model
			)
		if status == "Loaded":
			return TryllResult.good()
		if status != "Absent" and status != "Downloading":
			return await load_model(model)
		var downloaded := await download_model(model, progress)
		if downloaded.ok:
			return await load_model(model)
		if downloaded.code != TryllResult.DOWNLOAD_ALREADY_ACTIVE:
			return downloaded
		await get_tree().create_timer(LOOK_SECONDS).timeout
	return null


func health() -> TryllResult:
	var problem: TryllResult = null
	if connection == Connection.READY:
		problem = lacks("health", "say how it is")
	if problem:
		return problem
	return await ask("HealthRequest", {})


## Any request, and whatever answers it.
func ask(type: String, fields: Dictionary, seconds := 0.0, progress := Callable()) -> TryllResult:
	return await begin(type, fields, seconds, progress).ended()


## The same for an answer that may come in several parts; the value is the list of all of them.
func collect(type: String, fields: Dictionary, items: String) -> TryllResult:
	var call := begin(type, fields)
	call.items = items
	return await call.ended()


## Sends a request, and does not wait.
func begin(type: String, fields: Dictionary, seconds := 0.0, progress := Callable()) -> TryllCall:
	_last_id += 1
	var call := TryllCall.new()
	call.seconds = seconds if seconds > 0.0 else request_seconds
	call.deadline = now() + call.seconds
	call.progress = progress
	var request := fields.duplicate()
	request["request_id"] = _last_id
	var result := tell(type, request)
	if result.ok:
		_calls[_last_id] = call
	else:
		call.finish(result)
	return call


## Sends something that nothing answers.
func tell(type: String, fields: Dictionary) -> TryllResult:
	if connection != Connection.READY and type != "ConfigureSessionRequest":
		return _not_connected()
	if _socket == null:
		return _not_connected()
	var unknown := _unknown_field(fields)
	if unknown:
		return TryllResult.bad(
			TryllResult.UNKNOWN_MESSAGE_TYPE, "This server does not know `%s`." % unknown
		)
	var message := fields.duplicate()
	message["type"] = type
	var line := JSON.stringify(message)
	if line.to_utf8_buffer().size() > MAX_MESSAGE:
		return TryllResult.bad(
			TryllResult.FRAME_TOO_LARGE, "The message is larger than the server takes."
		)
	if _socket.send_text(line) != OK:
		return _dropped("The server does not read: too much waits for it.")
	return TryllResult.good()


## A field that is set, and that this server does not know: it would pass over it, and answer
## otherwise. "" without one.
func _unknown_field(value: Variant) -> String:
	var parts: Array = []
	if value is Dictionary:
		for field: Variant in value:
			var extension: String = EXTENSION_OF.get(field, "")
			if extension and value[field] and not has_extension(extension):
				return field
		parts = value.values()
	elif value is Array:
		parts = value
	for part: Variant in parts:
		var found := _unknown_field(part)
		if found:
			return found
	return ""


## Why what was made in that epoch cannot be used, or null.
func unusable(made_in: int) -> TryllResult:
	if connection != Connection.READY:
		return _not_connected()
	if made_in != epoch:
		return _dropped("It is gone with the connection that it belonged to.")
	return null


## Why a server without that extension is not asked; null for one that has it.
func lacks(extension: String, what: String) -> TryllResult:
	if has_extension(extension):
		return null
	return TryllResult.bad(TryllResult.UNKNOWN_MESSAGE_TYPE, "This server cannot %s." % what)


func now() -> float:
	return Time.get_ticks_msec() / 1000.0


func call_of(request_id: int) -> TryllCall:
	return _calls.get(request_id)


func forget_call(request_id: int) -> void:
	_calls.erase(request_id)


func forget_agent(agent_id: int) -> void:
	_agents.erase(agent_id)


func forget_voice(voice_input_id: int) -> void:
	_voices.erase(voice_input_id)


# The connection's life.


func _open() -> void:
	epoch += 1
	connection = Connection.CONNECTING
	_greeted = false
	_reason = null
	_connect_deadline = now() + connect_seconds
	_socket = WebSocketPeer.new()
	_socket.inbound_buffer_size = INBOUND_BYTES
	_socket.outbound_buffer_size = OUTBOUND_BYTES
	_socket.max_queued_packets = INBOUND_MESSAGES
	var separator := "&" if "?" in url else "/?" if url.count("/") == 2 else "?"
	if _socket.connect_to_url(url + separator + "format=json") != OK:
		_end(TryllResult.bad(TryllResult.CONNECTION_FAILED, "The address is none: " + url), false)


func _read() -> void:
	var socket := _socket
	socket.poll()
	# A callback may end the connection, or begin another one.
	while socket == _socket and socket.get_available_packet_count() > 0:
		_take_text(socket.get_packet().get_string_from_utf8())
	if socket != _socket or socket.get_ready_state() != WebSocketPeer.STATE_CLOSED:
		return
	if _reason:
		_end(_reason, true)
	elif connection == Connection.CONNECTING and not _greeted:
		_end(
			TryllResult.bad(TryllResult.CONNECTION_FAILED, "The server could not be reached."), true
		)
	else:
		_end(_dropped("The connection was lost."), true)


func _greet(message: Dictionary) -> void:
	if message["type"] == "ErrorResponse":
		_end(_error_of(message), true)
	elif message["type"] != "SessionReady":
		_end(_broken("The server began with something else than a session."), true)
	elif int(message.get("protocol_version", 0)) != PROTOCOL_VERSION:
		_end(
			TryllResult.bad(
				TryllResult.PROTOCOL_VERSION_MISMATCH,
				"The server speaks another version of the protocol."
			),
			true
		)
	else:
		_greeted = true
		session_id = int(message.get("session_id", 0))
		extensions = message.get("extensions", [])
		_configure()


func _configure() -> void:
	var fields := config.duplicate()
	fields["protocol_version"] = PROTOCOL_VERSION
	var began := epoch
	var result := await begin("ConfigureSessionRequest", fields, connect_seconds).ended()
	if epoch != began:
		return
	if not result.ok:
		_end(result, true)
		return
	var again := _again
	connection = Connection.READY
	_again = false
	_attempts = 0
	var waiting := _connecting
	_connecting = null
	connected.emit(again)
	if waiting:
		waiting.finish(TryllResult.good())


## The connection is over. `retries`: whether another may be tried.
func _end(error: TryllResult, retries: bool) -> void:
	var was := connection
	if was == Connection.IDLE and _connecting == null:
		return
	if _socket:
		_socket.close()
	_socket = null
	session_id = 0
	epoch += 1
	var had_session := was == Connection.READY or _again
	var tries := (
		retries and had_session and not error.code in FINAL_CODES and _attempts < reconnect_attempts
	)
	_last_error = null if tries else error
	connection = Connection.WAITING if tries else Connection.IDLE
	if tries:
		_pause = (
			minf(2.0 * _pause, reconnect_longest_seconds)
			if _attempts > 0
			else reconnect_first_seconds
		)
		_next_attempt = now() + _pause
	_attempts = _attempts + 1 if tries else 0
	_again = tries
	var waiting := _connecting
	if not tries:
		_connecting = null
	_let_go(error)
	if waiting and not tries:
		waiting.finish(error)
	# Of each loss it is heard once, and once more if that is the end.
	if retries and had_session and (was == Connection.READY or not tries):
		lost.emit(error, not tries)


## Whoever waits hears why that has no end.
func _let_go(error: TryllResult) -> void:
	var calls := _calls.values()
	_calls.clear()
	for call: TryllCall in calls:
		call.finish(error)
	for agent: TryllAgent in _agents.values():
		agent.lose(error)
	for voice: TryllVoiceInput in _voices.values():
		voice.lose(error)


func _look_at_the_clock() -> void:
	for request_id: int in _calls.keys():
		var call: TryllCall = _calls.get(request_id)
		if call and call.deadline <= now():
			_calls.erase(request_id)
			call.finish(TryllResult.bad(TryllResult.TIMEOUT, "No answer came in time."))
	if connection == Connection.CONNECTING and _connect_deadline <= now():
		var late := "The server did not begin a session in time."
		_end(TryllResult.bad(TryllResult.TIMEOUT, late), true)
	if connection == Connection.WAITING and _next_attempt <= now():
		_open()


# Messages.


func _take_text(line: String) -> void:
	var message: Variant = JSON.parse_string(line)
	if not message is Dictionary or not message.get("type") is String:
		_end(_broken("The server broke the protocol: what it sent is no message."), true)
	elif connection == Connection.CONNECTING and not _greeted:
		_greet(message)
	else:
		_reason = null
		_take(message)


func _take(message: Dictionary) -> void:
	match message["type"]:
		"ErrorResponse":
			_take_error(message)
		"DownloadProgress":
			_take_progress(message)
		"WireTranscriptUpdate":
			var voice: TryllVoiceInput = _voices.get(int(message.get("voice_input_id", 0)))
			if voice:
				voice.take(message)
		_:
			if not message["type"] in OF_AN_AGENT:
				_take_answer(message)
				return
			var agent: TryllAgent = _agents.get(int(message.get("agent_id", 0)))
			if agent:
				agent.take(message)


func _take_answer(message: Dictionary) -> void:
	var request_id := int(message.get("request_id", 0))
	var call: TryllCall = _calls.get(request_id)
	if call == null:
		_too_late(message)
		return
	if call.items:
		call.collected.append(message)
		if message.get("more", false) and call.collected.size() < MOST_PARTS:
			call.deadline = now() + call.seconds
			return
		var all: Array = []
		for part: Dictionary in call.collected:
			all.append_array(part.get(call.items, []))
		message = {"items": all}
	_calls.erase(request_id)
	if message.get("type", "") == "CreateAgentResponse":
		var agent_id := int(message.get("agent_id", 0))
		_agents[agent_id] = TryllAgent.new(self, agent_id)
	elif message.get("type", "") == "CreateVoiceInputResponse":
		var voice_input_id := int(message.get("voice_input_id", 0))
		_voices[voice_input_id] = TryllVoiceInput.new(self, voice_input_id)
	call.finish(TryllResult.good(message["items"] if call.items else message))


## Whoever asked for it has given up.
func _too_late(message: Dictionary) -> void:
	if message["type"] == "CreateAgentResponse":
		begin("DestroyAgentRequest", {"agent_id": int(message.get("agent_id", 0))})
	elif message["type"] == "CreateVoiceInputResponse":
		var voice_input_id := int(message.get("voice_input_id", 0))
		begin("DestroyVoiceInputRequest", {"voice_input_id": voice_input_id})


func _take_progress(message: Dictionary) -> void:
	var call: TryllCall = _calls.get(int(message.get("request_id", 0)))
	if call == null:
		return
	call.deadline = now() + call.seconds
	if call.progress.is_valid():
		call.progress.call(message)


func _take_error(message: Dictionary) -> void:
	var error := _error_of(message)
	var request_id := int(message.get("request_id", 0))
	var call: TryllCall = _calls.get(request_id)
	var agent: TryllAgent = _agents.get(int(message.get("agent_id", 0)))
	var voice: TryllVoiceInput = _voices.get(int(message.get("voice_input_id", 0)))
	# Whatever it was about, nothing that is said from now on is understood.
	if error.code == TryllResult.PROTOCOL_VERSION_MISMATCH:
		_end(error, true)
	elif call:
		_calls.erase(request_id)
		call.finish(error)
	elif request_id != 0:
		return
	elif voice and error.code == TryllResult.UTTERANCE_TIMEOUT:
		voice.fail(error)
	elif agent:
		# What was said to the agent, it was not told.
		agent.done.emit(error)
	elif voice == null:
		_reason = error


func _error_of(message: Dictionary) -> TryllResult:
	var sentence: String = message.get("message", "")
	if not sentence:
		sentence = "The server gave no reason."
	return TryllResult.bad(int(message.get("code", 0)), sentence)


func _broken(sentence: String) -> TryllResult:
	return TryllResult.bad(TryllResult.MALFORMED_MESSAGE, sentence)


func _dropped(sentence: String) -> TryllResult:
	return TryllResult.bad(TryllResult.CONNECTION_DROPPED, sentence)


func _not_connected() -> TryllResult:
	if connection == Connection.IDLE and _last_error:
		return _last_error
	return _dropped("There is no connection.")
