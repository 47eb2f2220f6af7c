class_name TryllVoiceInput
extends RefCounted
## An ear of a session. It is gone with the connection that it was made on.

## What is understood, as it comes. `kind`: SpeechStart, Partial, SegmentFinal or UtteranceFinal.
signal transcript_changed(kind: String, text: String)

## Half a second of 16 kHz: far from what a message carries.
const FRAME_BYTES := 16000

var id := 0

var _client: TryllClient
var _epoch := 0
var _destroyed := false
var _utterance := TryllCall.new()


func _init(client: TryllClient, voice_input_id: int) -> void:
	_client = client
	_epoch = client.epoch
	id = voice_input_id
	_utterance.finish(
		TryllResult.bad(TryllResult.NO_ACTIVE_UTTERANCE, "The voice input is not listening.")
	)


## Listens from now on. `agent` gets what was said, and answers; with `hands_free`, a pause ends the
## utterance; with `barge_in`, speech ends a turn of the agent.
func begin(
	agent: TryllAgent = null, hands_free := false, max_ms := 60000, barge_in := true
) -> TryllResult:
	var fields := {
		"voice_input_id": id,
		"agent_id": agent.id if agent else 0,
		"auto_finish_on_silence": hands_free,
		"max_utterance_ms": max_ms,
		"barge_in": barge_in,
	}
	var problem := _unusable()
	if problem:
		return problem
	var result := await _client.ask("BeginUtteranceRequest", fields)
	if result.ok:
		# The last words of the one before come until then.
		_utterance.finish(
			TryllResult.bad(TryllResult.NO_ACTIVE_UTTERANCE, "The utterance is over.")
		)
		_utterance = TryllCall.new()
	return result


## Lets it hear 16-bit samples, little-endian, of all channels in turns. Nothing answers.
func send(samples: PackedByteArray) -> TryllResult:
	var problem := _unusable()
	if problem:
		return problem
	for start in range(0, samples.size(), FRAME_BYTES):
		var part := samples.slice(start, mini(start + FRAME_BYTES, samples.size()))
		var result := _client.tell(
			"AudioBufferFrame", {"voice_input_id": id, "pcm": Marshalls.raw_to_base64(part)}
		)
		if not result.ok:
			return result
	return TryllResult.good()


## Takes what was heard: the text of the utterance, "" if nothing was understood.
func end() -> TryllResult:
	var problem := _unusable()
	if problem:
		return problem
	var utterance := _utterance
	if utterance.over:
		return utterance.result
	var result := await _client.ask(
		"EndUtteranceRequest", {"voice_input_id": id}, _client.turn_seconds
	)
	# It may have ended by itself just before; and its last words may come later.
	if not result.ok and not utterance.over:
		return result
	return await utterance.ended()


## Waits for an utterance that ends by itself. Nothing limits that but the connection.
func transcript() -> TryllResult:
	var problem := _unusable()
	if problem:
		return problem
	return await _utterance.ended()


## Forgets what was heard.
func cancel() -> TryllResult:
	var problem := _unusable()
	if problem:
		return problem
	var utterance := _utterance
	var result := await _client.ask("CancelUtteranceRequest", {"voice_input_id": id})
	if result.ok:
		utterance.finish(
			TryllResult.bad(TryllResult.NO_ACTIVE_UTTERANCE, "The utterance was cancelled.")
		)
	return result


func destroy() -> TryllResult:
	var problem := _unusable()
	if problem:
		return problem
	_destroyed = true
	var result := await _client.ask("DestroyVoiceInputRequest", {"voice_input_id": id})
	if result.ok:
		lose(_gone())
	return result


## What comes from the server for it. The client calls this.
func take(message: Dictionary) -> void:
	var kind: String = str(message.get("kind", "Partial"))
	transcript_changed.emit(kind, message.get("text", ""))
	if kind == "UtteranceFinal":
		_utterance.finish(TryllResult.good(message.get("text", "")))


## The utterance has come to that.
func fail(result: TryllResult) -> void:
	_utterance.finish(result)


## It is gone, and why.
func lose(result: TryllResult) -> void:
	_client.forget_voice(id)
	_utterance.finish(result)


func _gone() -> TryllResult:
	return TryllResult.bad(TryllResult.VOICE_INPUT_NOT_FOUND, "The voice input was destroyed.")


func _unusable() -> TryllResult:
	return _gone() if _destroyed else _client.unusable(_epoch)
