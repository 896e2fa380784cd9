#!/usr/bin/env python3
"""A small MCP server for the editor runs: greets, asks, counts, complains, ends. Standard library only."""
import json
import sys
import time

ASKED = {
    "type": "object",
    "properties": {
        "who": {"type": "string", "title": "Rider", "minLength": 2},
        "where": {"type": "string", "title": "Seat", "enum": ["front", "pillion"]},
        "helmet": {"type": "boolean", "title": "Helmet", "default": True},
        "speed": {"type": "integer", "title": "Speed", "minimum": 1, "maximum": 90, "default": 50},
    },
    "required": ["who", "where"],
}
TOOLS = {
    "greet": {"type": "object", "properties": {"name": {"type": "string", "description": "whom"}}, "required": ["name"]},
    "ride": {"type": "object"},
    "count": {"type": "object", "properties": {"to": {"type": "integer"}}, "required": ["to"]},
    "break": {"type": "object"},
}
sent = 0
waiting = []


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def ask(method, params):
    """Sends a request to the client and reads until its answer; what else comes meanwhile has its turn later."""
    global sent
    sent += 1
    send({"id": f"ask-{sent}", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == f"ask-{sent}":
            return message.get("result", {})
        waiting.append(message)
    sys.exit(0)


def call(name, arguments, meta):
    if name == "greet":
        return f"Hello {arguments['name']} ✓"
    if name == "ride":
        answer = ask("elicitation/create", {"message": "Who rides where?", "requestedSchema": ASKED})
        content = answer.get("content", {})
        return f"{answer.get('action')}: " + ", ".join(f"{key}={content[key]!r}" for key in sorted(content))
    if name == "count":
        for step in range(1, arguments["to"] + 1):
            time.sleep(0.15)
            params = {"progressToken": meta.get("progressToken"), "progress": step, "total": arguments["to"]}
            send({"method": "notifications/progress", "params": params})
        return f"counted to {arguments['to']}"
    sys.stderr.write("the chain came off\n")
    sys.stderr.flush()
    sys.exit(3)


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, "title": name.title(), "inputSchema": TOOLS[name]} for name in TOOLS]}
    if method == "tools/call":
        text = call(params["name"], params.get("arguments") or {}, params.get("_meta") or {})
        return {"content": [{"type": "text", "text": text}]}
    return {} if method == "ping" else None


sys.stderr.write("the scripted server is up\n")
sys.stderr.flush()
while True:
    line = None if waiting else sys.stdin.readline()
    if line == "":
        break
    message = json.loads(line) if line else waiting.pop(0)
    if "method" not in message or "id" not in message:
        continue
    result = answer(message)
    if result is None:
        send({"id": message["id"], "error": {"code": -32601, "message": f"no method {message['method']}"}})
    else:
        send({"id": message["id"], "result": result})
