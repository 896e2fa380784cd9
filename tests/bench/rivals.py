"""Other programs that manage MCP servers, from npm (`cargo xtask bench --rivals`)."""
import asyncio
import json
import os
import pathlib
import socket
import subprocess
import urllib.request

from contenders import Handle, Paths
from wire import end


def modules():
    return Paths.rivals / "node_modules"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


async def mcp_hub(place, servers):
    """An HTTP hub on Node."""
    config = pathlib.Path(place.folder, "hub.json")
    config.write_text(json.dumps({"mcpServers": {n: {"command": c[0], "args": c[1:]} for n, c in servers.items()}}))
    port = free_port()
    homes = {name: place.folder for name in ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    command = ["node", str(modules() / "mcp-hub/dist/cli.js"), "--port", str(port), "--config", str(config)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=place.log,
        stderr=place.log,
        env={**os.environ, **homes},
        start_new_session=True,
    )
    place.ends.append(lambda: end(process))

    def post(path, body):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    async def ask(path, body=None):
        return await asyncio.get_running_loop().run_in_executor(None, post, path, body)

    async def ready(names):
        while True:
            try:
                listed = json.loads(await ask("/api/servers"))["servers"]
            except OSError:
                listed = []
            up = {s["name"]: len(s["capabilities"]["tools"]) for s in listed if s["status"] == "connected"}
            if all(name in up for name in names):
                return sum(up[name] for name in names)
            await asyncio.sleep(0.025)

    async def call(server, tool, arguments, big=False):
        body = {"server_name": server, "tool": tool, "arguments": arguments}
        raw = await ask("/api/servers/tools", body)
        return raw if big else json.loads(raw)["result"]

    return Handle(process.pid, ready, call)


async def codex_app_server(place, servers):
    """The app server of a coding agent, without a model."""
    program = modules() / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
    home = pathlib.Path(place.folder, ".codex")
    home.mkdir()
    toml = ['model_provider = "local"', "check_for_update_on_startup = false", "[analytics]", "enabled = false"]
    toml += ["[model_providers.local]", 'name = "local"', 'base_url = "http://127.0.0.1:9/v1"', 'wire_api = "responses"']
    for name, command in servers.items():
        toml += [f"[mcp_servers.{name}]", f"command = {json.dumps(command[0])}", f"args = {json.dumps(command[1:])}"]
    home.joinpath("config.toml").write_text("\n".join(toml))
    environment = {**os.environ, "HOME": place.folder, "CODEX_HOME": str(home)}
    rpc = place.rpc([str(program), "app-server"], environment=environment)
    up, changed = set(), asyncio.Event()

    def notification(message):
        if message["method"] == "mcpServer/startupStatus/updated" and message["params"]["status"] == "ready":
            up.add(message["params"]["name"])
            changed.set()

    rpc.on_notification = notification

    async def begin():
        info = {"name": "bench", "title": "bench", "version": "0"}
        await rpc.request("initialize", {"clientInfo": info, "capabilities": {"experimentalApi": True}})
        rpc.notify("initialized")
        return (await rpc.request("thread/start", {"ephemeral": True}))["thread"]["id"]

    begun = asyncio.ensure_future(begin())

    async def ready(names):
        thread = await begun
        while not set(names) <= up:
            changed.clear()
            await changed.wait()
        if not names:
            return 0
        # Asked one by one: the list of all waits for the slowest.
        ask = {"detail": "toolsAndAuthOnly", "threadId": thread}
        pages = await asyncio.gather(
            *[rpc.request("mcpServerStatus/list", {**ask, "serverName": name}) for name in names]
        )
        return sum(len(server["tools"]) for page in pages for server in page["data"] if server["name"] in names)

    async def call(server, tool, arguments, big=False):
        params = {"threadId": begun.result(), "server": server, "tool": tool, "arguments": arguments}
        return await rpc.request("mcpServer/tool/call", params, big)

    return Handle(rpc.pid, ready, call)


CONTENDERS = {"mcp-hub": mcp_hub, "codex app-server": codex_app_server}
