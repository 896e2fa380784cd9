"""Tokens and recall of the right tool: every tool loaded, or found by search. `cargo xtask bench --tools` runs it."""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


class Host:
    def __init__(self, pillion, entries, data):
        environment = {**os.environ, "PILLION_HOME": data}
        self.child = subprocess.Popen([pillion, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.numbers = itertools.count(1)
        layers = [{"label": "bench", "entries": entries}]
        options = {"layers": layers, "directories": [data]}
        self.request("initialize", {"capabilities": {}, "initializationOptions": options})
        self.send({"method": "initialized", "params": {}})
        self.directory = data

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self.child.stdin.flush()

    def receive(self):
        length = 0
        while line := self.child.stdout.readline().strip():
            length = int(line.split(b":")[1])
        return json.loads(self.child.stdout.read(length))

    def request(self, method, params):
        number = next(self.numbers)
        self.send({"id": number, "method": method, "params": params})
        while (message := self.receive()).get("id") != number:
            pass
        if "error" in message:
            raise RuntimeError(message["error"])
        return message["result"]

    def ask(self, method, **params):
        return self.request(method, {"directory": self.directory, **params})

    def end(self):
        self.request("shutdown", {})
        self.send({"method": "exit"})
        self.child.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pillion", required=True)
    parser.add_argument("--markdown")
    arguments = parser.parse_args()
    servers = list(json.loads((HERE / "tools.json").read_text()))
    queries = json.loads((HERE / "queries.json").read_text())
    python = {"command": sys.executable, "startTimeoutMs": 60000}
    entries = {name: {**python, "args": ["-S", str(HERE / "server.py"), name]} for name in servers}
    with tempfile.TemporaryDirectory() as data:
        host = Host(arguments.pillion, entries, data)
        everything = host.ask("mcp.model.tools", waitMs=60000)
        assert len(everything["tools"]) == 800 and not everything["issues"], everything["issues"]
        loaded = sum(tool["tokens"] for tool in everything["tools"])
        host.end()
        # A new process, in which no server runs.
        host = Host(arguments.pillion, entries, data)
        search = host.ask("mcp.model.tools", load="search", waitMs=0)
        builtin = sum(tool["tokens"] for tool in search["tools"])
        host.end()
        host = Host(arguments.pillion, entries, data)
        outcomes = {wording: measure(host, queries, wording) for wording in ("near", "far")}
        running = [server["name"] for server in host.ask("mcp.status")["servers"] if server["state"] != "stopped"]
        host.end()
    assert not running, f"the search started {running}"
    table = "| | tokens before the first call | there, near wording | there, far wording |\n| --- | --- | --- | --- |\n"
    table += f"| everything loaded | {loaded:,} | 100% | 100% |\n"
    for limit in (1, 5, 10):
        shares = [outcomes[wording][limit] for wording in ("near", "far")]
        tokens = builtin + round(shares[0][0])
        table += f"| search, {limit} hit{'s' if limit > 1 else ''} | {tokens:,} | {shares[0][1]:.0%} | {shares[1][1]:.0%} |\n"
    print(table)
    if arguments.markdown:
        page = pathlib.Path(arguments.markdown)
        before, rest = page.read_text().split("<!-- table -->\n", 1)
        _, after = rest.split("<!-- end -->", 1)
        page.write_text(f"{before}<!-- table -->\n{table}<!-- end -->{after}")
    tokens, share = outcomes["near"][5]
    if share < 0.8 or builtin + tokens > loaded / 20:
        sys.exit("the search has become worse than what docs/tool-search.md says")


def measure(host, queries, wording):
    """Tokens of the hits on average, and how often the right tool is among them, by number of hits."""
    ranks, shown = [], {1: 0, 5: 0, 10: 0}
    for query in queries:
        hits = host.ask("mcp.tools.search", query=query[wording], limit=10)["hits"]
        found = [(hit["server"], hit["tool"]) for hit in hits]
        wanted = (query["server"], query["tool"])
        ranks.append(found.index(wanted) + 1 if wanted in found else 99)
        for limit in shown:
            shown[limit] += sum(hit["tokens"] for hit in hits[:limit])
    return {limit: (shown[limit] / len(ranks), sum(rank <= limit for rank in ranks) / len(ranks)) for limit in shown}


main()
