class_name TryllManagedServer
extends Node
## A server of this machine that ends with the game. Needs Godot 4.3 or later, on a desktop.
##
## It is at a free port, and sees the end of its standard input: however the game ends, so does it.

## What it is told besides `arguments`.
const OUR_ARGUMENTS: Array[String] = [
	"--listen",
	"127.0.0.1:0",
	"--ws",
	"127.0.0.1:0",
	"--exit-with-stdin",
	"--json",
]
const STOP_SECONDS := 10.0
const LOOK_MSEC := 10
const NEWLINE := 10
## The last lines of its log, for whoever wants to know why it did not start.
const KEPT_LINES := 20

## A bundle's is `tryll-server`.
@export var program := "trunkline"
## What comes before our own arguments. Of `trunkline`, unless given: `tryll serve`, and a
## `--config` that keeps out what players have configured for servers of their own.
@export var arguments := PackedStringArray()
## A machine that is busy with something else starts Python slowly.
@export var start_seconds := 60.0

## For `TryllClient.open`; "" while it does not run.
var url := ""
## Where it tells its figures; 0 unless `--metrics` is among the arguments.
var metrics_port := 0

var _pid := 0
var _output: FileAccess = null
var _listening: Thread = null
var _logging: Thread = null
var _log: Array[String] = []


func _exit_tree() -> void:
	stop()


## Starts it, and waits until it is ready. The value is its address.
func start() -> TryllResult:
	if _pid:
		return TryllResult.bad(TryllResult.CONNECTION_FAILED, "It is started already.")
	var child := OS.execute_with_pipe(program, _words())
	if child.is_empty():
		return TryllResult.bad(TryllResult.CONNECTION_FAILED, "`%s` cannot be started." % program)
	_pid = child["pid"]
	_output = child["stdio"]
	_log.clear()
	_listening = Thread.new()
	_listening.start(_ready_line.bind(_output))
	_logging = Thread.new()
	_logging.start(_keep_log.bind(child["stderr"]))
	var pid := _pid
	var deadline := Time.get_ticks_msec() + start_seconds * 1000
	while _pid == pid and _listening.is_alive() and Time.get_ticks_msec() < deadline:
		await get_tree().process_frame
	if _pid != pid:
		return TryllResult.bad(TryllResult.CONNECTION_DROPPED, "`%s` was stopped." % program)
	if _listening.is_alive():
		stop()
		var late := "`%s` was not ready within %d s.%s" % [program, start_seconds, _last_words()]
		return TryllResult.bad(TryllResult.TIMEOUT, late)
	var ready_line: Dictionary = _listening.wait_to_finish()
	_listening = null
	if ready_line.is_empty():
		stop()
		var gone := "`%s` ended before it was ready.%s" % [program, _last_words()]
		return TryllResult.bad(TryllResult.CONNECTION_FAILED, gone)
	url = "ws://%s:%d" % [ready_line["host"], ready_line["ws_port"]]
	metrics_port = int(ready_line["metrics_port"]) if ready_line.get("metrics_port") else 0
	return TryllResult.good(url)


## Ends it, in bounded time: its input is closed; if that is not enough, it is killed.
func stop() -> void:
	if _pid == 0:
		return
	# While a thread reads its output, the pipe stays open: it ends with the program.
	var deadline := 0.0
	if _listening == null:
		_output.close()
		deadline = Time.get_ticks_msec() + STOP_SECONDS * 1000
	while OS.is_process_running(_pid) and Time.get_ticks_msec() < deadline:
		OS.delay_msec(LOOK_MSEC)
	if OS.is_process_running(_pid):
		OS.kill(_pid)
	for thread: Thread in [_listening, _logging]:
		if thread:
			thread.wait_to_finish()
	_pid = 0
	_output = null
	_listening = null
	_logging = null
	url = ""
	metrics_port = 0


func _words() -> PackedStringArray:
	var words := arguments.duplicate()
	if words.is_empty() and program == "trunkline":
		var nothing := "NUL" if OS.get_name() == "Windows" else "/dev/null"
		words = PackedStringArray(["tryll", "serve", "--config", nothing])
	for word: String in OUR_ARGUMENTS:
		words.append(word)
	return words


## In a thread of its own: what the program says when it is ready; nothing, if it ends before.
static func _ready_line(pipe: FileAccess) -> Dictionary:
	while true:
		var line := _line_of(pipe)
		if line.is_empty():
			break
		var found: Variant = JSON.parse_string(line)
		if found is Dictionary and found.get("type") == "ready":
			return found
	return {}


## In a thread of its own, which ends with the program.
func _keep_log(pipe: FileAccess) -> void:
	while true:
		var line := _line_of(pipe)
		if line.is_empty():
			break
		_log.append(line)
		if _log.size() > KEPT_LINES:
			_log.pop_front()


## The next line with its end; "" after the last. A pipe that is asked for more than it has waits:
## so it is asked for a byte.
static func _line_of(pipe: FileAccess) -> String:
	var bytes := PackedByteArray()
	while pipe.is_open() and pipe.get_error() == OK:
		var byte := pipe.get_8()
		if pipe.get_error() != OK:
			break
		bytes.append(byte)
		if byte == NEWLINE:
			break
	return bytes.get_string_from_utf8()


## For the end of an error, once the program and its threads have ended.
func _last_words() -> String:
	return " Its last words: %s" % "".join(_log) if _log else ""
