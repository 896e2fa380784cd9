"""An MCP server whose names and texts try to leave their place in generated code."""

import json
import sys

EVIL = '*/ throw 1; /* """ \\""" ${x} ` \\\nimport os\r\u2028#\u202e\0\'; end'
CIRCLE = {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "array", "items": {"$ref": "#/$defs/b"}}}}
PROPERTIES = {"__proto__": {}, "constructor": {"description": EVIL}, "a\nb": {"const": EVIL}, "": {"type": ["null", "object"]}, EVIL: {"enum": [EVIL, "\\", 1, None, True, "\U0001f600"], "description": EVIL}}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": [EVIL], "additionalProperties": {"type": "integer"}}
NAMES = ["constructor", "then", "__init__", "class", "del", "list", "str", "Result", "日本", "a b", "a-b", "aB", "pillion", EVIL]
TOOLS = [{"name": name, "description": EVIL, "inputSchema": SCHEMA, "outputSchema": SCHEMA} for name in NAMES]
TOOLS.append({"name": "circle", "inputSchema": CIRCLE, "outputSchema": {"anyOf": [CIRCLE, {"type": "array"}]}})

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": EVIL, "version": "1"}}
    elif request["method"] == "tools/list":
        answer["result"] = {"tools": TOOLS}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
