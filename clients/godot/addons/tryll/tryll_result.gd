class_name TryllResult
extends RefCounted
## What a call came to: `value`, if `ok`; otherwise `code` and `message`, a sentence for people.

const INVALID_PARAM_VALUE := 3007
const INVALID_AGENT_ID := 3001
const AGENT_ALREADY_DESTROYED := 3002
const AGENT_BUSY := 3004
const VOICE_INPUT_NOT_FOUND := 4102
const NO_ACTIVE_UTTERANCE := 4104
const UTTERANCE_TIMEOUT := 4105
const CONNECTION_FAILED := 1001
const CONNECTION_DROPPED := 1002
const TIMEOUT := 1003
const UNAUTHORIZED := 2003
const MALFORMED_MESSAGE := 5001
const UNKNOWN_MESSAGE_TYPE := 5002
const FRAME_TOO_LARGE := 5003
const PROTOCOL_VERSION_MISMATCH := 5004
const DOWNLOAD_FAILED := 6001
const DOWNLOAD_NOT_AVAILABLE := 6002
const DOWNLOAD_ALREADY_ACTIVE := 6004

var ok := true
var value: Variant = null
var code := 0
var message := ""


static func good(found: Variant = null) -> TryllResult:
	var result := TryllResult.new()
	result.value = found
	return result


static func bad(number: int, sentence: String) -> TryllResult:
	var result := TryllResult.new()
	result.ok = false
	result.code = number
	result.message = sentence
	return result
