@tool
extends EditorPlugin
## Adds the client to the project, as the autoload `Tryll`.

const AUTOLOAD := "Tryll"


func _enter_tree() -> void:
	add_autoload_singleton(AUTOLOAD, "res://addons/tryll/tryll.gd")


func _exit_tree() -> void:
	remove_autoload_singleton(AUTOLOAD)
