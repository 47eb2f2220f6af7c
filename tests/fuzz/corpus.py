"""What the fuzzer begins with: every message of the protocol, and every trap that a reader of JSON lines can fall into.

An input is three bytes that say how to feed it (see `jsonstream_target`), then the stream.
"""

from __future__ import annotations

MESSAGES = (
    b'{"type":"message","msg_id":"m1","input":"Hello","files":["/a.png"]}',
    b'{"type":"message","msg_id":"m1","content":"Hello"}',
    b'{"type":"stop"}',
    b'{"type":"tool_approve","call_id":"c1","scope":"once"}',
    b'{"type":"tool_approve","call_id":"c1","scope":"always"}',
    b'{"type":"tool_deny","call_id":"c1","reason":"no"}',
    b'{"type":"init_history","text":"Before\\n"}',
    b'{"type":"set_mode","mode":"auto_edit"}',
    b'{"type":"set_mode","mode":"yolo"}',
    b'{"type":"set_config","model":"m","thinking":"enabled","thinking_budget":1000,"effort":"high","compaction":"safe"}',
    b'{"type":"add_mcp_server","name":"n","transport":"stdio","command":"c","args":["a"],"env":{"K":"V"}}',
    b'{"type":"add_mcp_server","name":"n","transport":"sse","url":"http://127.0.0.1","headers":{"H":"V"}}',
    b'{"type":"ping"}',
    b'{"type":"ready","version":"0.1.0","session_id":"s","capabilities":{"tool_approval":true,"thinking":true,"mcp":false}}',
    b'{"type":"config_changed","capabilities":{"modes":["default","yolo"],"current_mode":"default"}}',
    b'{"type":"stream_start","msg_id":"m1"}',
    b'{"type":"text_delta","text":"Hi","msg_id":"m1"}',
    b'{"type":"thinking","text":"Hm","msg_id":"m1"}',
    (
        b'{"type":"tool_request","msg_id":"m1","call_id":"c1","tool":{"name":"Bash","category":"exec","args":{"command":"ls"},'
        b'"description":"Execute: ls"}}'
    ),
    b'{"type":"tool_running","msg_id":"m1","call_id":"c1","tool_name":"Bash"}',
    (
        b'{"type":"tool_result","msg_id":"m1","call_id":"c1","tool_name":"Edit","status":"success","output":"-a\\n+b",'
        b'"output_type":"diff","metadata":{"file_path":"/f"}}'
    ),
    b'{"type":"tool_cancelled","msg_id":"m1","call_id":"c1","reason":"User denied"}',
    (
        b'{"type":"stream_end","msg_id":"m1","usage":{"input_tokens":15,"output_tokens":3,"cache_read_tokens":8,'
        b'"cache_write_tokens":2}}'
    ),
    b'{"type":"error","msg_id":null,"error":{"code":"protocol_error","message":"What?","retryable":false}}',
    b'{"type":"error","error":{"code":"engine_error"}}',
    b'{"type":"info","msg_id":"m1","message":"retrying"}',
    b'{"type":"pong"}',
    b'{"type":"mcp_ready","name":"n","tools":["t"]}',
    b'{"type":"hologram","new":true}',
)

TRAPS = (
    b"Loading model...",
    b"",
    b" \t\r",
    b"null",
    b"[]",
    b"{}",
    b'{"type":null}',
    b'{"type":{"type":"ping"}}',
    b'{"type":"set_config","thinking_budget":NaN}',
    b'{"type":"set_config","thinking_budget":-Infinity}',
    b'{"type":"set_config","thinking_budget":1e999}',
    b'{"type":"set_config","thinking_budget":-0.0}',
    # The longest integer that Python reads has 4300 digits.
    b'{"type":"set_config","thinking_budget":1%b}' % (b"0" * 4299),
    b'{"type":"set_config","thinking_budget":1%b}' % (b"0" * 4300),
    b'{"type":"tool_request","msg_id":"m","call_id":"c","tool":{"name":"t","args":{"n":1e308,"big":123456789012345678901}}}',
    b'{"type":"ping","deep":%b%b}' % (b"[" * 199, b"]" * 199),
    b'{"type":"ping","deep":%b%b}' % (b"[" * 200, b"]" * 200),
    b"[" * 3000,
    b'{"a":' * 1000,
    b'{"type":"message","msg_id":"\\udfff","input":"a\\ud800b\\ud83d\\ude00"}',
    b'{"type":"message","msg_id":"m","input":"\xed\xa0\x80"}',
    b'{"type":"message","msg_id":"m","input":"\xff\xfe"}',
    b'{"type":"message","msg_id":"m","input":"\xc3\xa9\xf0\x9f\x98\x80\xe2\x80\xa8\xc2\x85"}',
    b'{"type":"message","msg_id":"m","input":"a\0b"}',
    b'{"type":"message","msg_id":"m","input":"a\\u0000b"}',
    b'\xef\xbb\xbf{"type":"ping"}',
    b'{"type":"ping"}\r',
    b'{"type":"ping"}\0',
    b'{"type":"stop","type":"ping"}',
    b'{"type":"ping"}{"type":"ping"}',
    b'{"type":"message","msg_id":"","input":""}',
    b'{"type":"tool_result","msg_id":"m","call_id":"c","output_type":["x"],"status":{}}',
    b'{"type":"tool_request","msg_id":"m","call_id":"c","tool":{"name":"t","category":[]}}',
    b'{"type":"error","error":{"code":{"x":1}}}',
    b'{"type":"ready","capabilities":{"tool_approval":1,"modes":"all"}}',
)

#: What a mutation may put anywhere.
TOKENS = (
    b"\n", b"\r\n", b"\0", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc3", b"\xa9", b"\xff", b'"', b"\\", b"\\u0000",
    b"\\ud800", b"\\udc00", b"{", b"}", b"[", b"]", b":", b",", b"null", b"true", b"false", b"NaN",
    b"-Infinity", b"1e999", b"-1", b"0.5", b"1" * 30, b'"type":', b'"msg_id":', b'"input":', b'"content":',
    b'"files":', b'"call_id":', b'"scope":', b'"once"', b'"always"', b'"reason":', b'"text":', b'"mode":',
    b'"default"', b'"tool":', b'"name":', b'"category":', b'"exec"', b'"args":', b'"description":',
    b'"status":', b'"success"', b'"output":', b'"output_type":', b'"image"', b'"metadata":', b'"usage":',
    b'"input_tokens":', b'"error":', b'"code":', b'"message":', b'"retryable":', b'"capabilities":',
    b'"modes":', b'"current_mode":', b'"tools":', b'"env":', b'"transport":', b'"stdio"', b'"ping"', b'"stop"',
    b'"ready"', b'"text_delta"', b'"stream_end"', b'"tool_request"', b'"set_mode"', b'"set_config"',
)  # fmt: skip

#: Limits at which the longest seed passes, most of them pass, and few of them do.
_HEADS = (b"\x07\x00\x00", b"\x05\x11\x22", b"\x03\x86\x01")

SEEDS = (
    *(_HEADS[0] + line + b"\n" for line in (*MESSAGES, *TRAPS)),
    *(_HEADS[0] + line for line in MESSAGES[:3]),
    *(_HEADS[0] + b"\n".join(lines) + b"\n" for lines in (MESSAGES[:13], MESSAGES[13:], TRAPS[:12], TRAPS[-16:])),
    *(head + b"\n".join(MESSAGES[::7]) + b"\n" for head in _HEADS),
    _HEADS[2] + b"x" * 64 + b"\n" + b"x" * 65 + b'\n{"type":"ping"}\n',
)
