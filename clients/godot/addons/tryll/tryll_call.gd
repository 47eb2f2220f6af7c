class_name TryllCall
extends RefCounted
## Somebody waits for an answer.

signal finished(result: TryllResult)

var seconds := 0.0
var deadline := 0.0
## Called with each `DownloadProgress`.
var progress := Callable()
## The list of an answer that may come in several frames: the name of its field.
var items := ""
var collected: Array = []
var over := false
var result: TryllResult = null


## Waits for the end, also if that was already.
func ended() -> TryllResult:
	if not over:
		await finished
	return result


func finish(found: TryllResult) -> void:
	if over:
		return
	over = true
	result = found
	finished.emit(found)
