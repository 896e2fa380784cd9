"""A host in Python: hands the tools of an MCP server to a model and answers the model's calls."""

import itertools
import json
import subprocess
import sys

pillion = sys.argv[1] if len(sys.argv) > 1 else "pillion"
child = subprocess.Popen([pillion, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
numbers = itertools.count(1)


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    child.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    child.stdin.flush()


def receive():
    length = 0
    while (line := child.stdout.readline().strip()) != b"":
        name, value = line.split(b":", 1)
        if name.lower() == b"content-length":
            length = int(value)
    return json.loads(child.stdout.read(length))


def request(method, params):
    number = next(numbers)
    send({"id": number, "method": method, "params": params})
    while (message := receive()).get("id") != number:
        pass  # A notification, such as `mcp.changed`.
    if "error" in message:
        raise RuntimeError(message["error"]["message"])
    return message["result"]


def model(tools, messages):
    """Stands for a model: calls the tool that lists notes, then says what it learned."""
    if messages[-1]["role"] == "tool":
        return {"text": "You have these notes: " + messages[-1]["content"]}
    return {"call": next(tool["name"] for tool in tools if "list_notes" in tool["name"]), "arguments": {}}


notes = {"command": pillion, "args": ["demo-server", "stdio"]}
options = {"clientName": "example", "dialect": "portable", "layers": [{"label": "example", "entries": {"notes": notes}}]}
hello = request("initialize", {"capabilities": {}, "initializationOptions": options})
send({"method": "initialized", "params": {}})
directory = hello["capabilities"]["experimental"]["mcp"]["defaultDirectory"]
tools = request("mcp.model.tools", {"directory": directory})["tools"]
messages = [{"role": "user", "content": "Which notes do I have?"}]
while "text" not in (turn := model(tools, messages)):
    result = request("mcp.model.call", {"directory": directory, "name": turn["call"], "arguments": turn["arguments"]})
    text = "".join(block["text"] for block in result["content"] if block["type"] == "text")
    messages.append({"role": "tool", "content": text, "isError": result["isError"]})
print(turn["text"])
request("shutdown", {})
send({"method": "exit"})
sys.exit(child.wait())
