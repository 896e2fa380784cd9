"""One of the servers of tools.json over stdio: `server.py NAME`."""

import json
import pathlib
import sys

tools = json.loads((pathlib.Path(__file__).parent / "tools.json").read_text())[sys.argv[1]]
results = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": sys.argv[1], "version": "1"},
    },
    "tools/list": {"tools": tools},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in results:
        answer["result"] = results[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "method not found"}
    print(json.dumps(answer), flush=True)
