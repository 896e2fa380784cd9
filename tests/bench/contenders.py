"""What is measured. A contender is one function that starts a process with servers and says how to use them."""
import asyncio
import contextlib
import os
import pathlib
import shutil
import tempfile

from wire import Rpc

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}
FLOOR, NULL, PILLION = "bare pipe", "null-sidecar", "pillion"
CONTENDERS = {}


class Paths:
    """Set once by `bench.py`."""

    material = pillion = rivals = None

    @classmethod
    def fixture(cls):
        return str(cls.material / "fixture-server")


class Handle:
    """A running contender.

    pid: the manager's, None where there is none. ready(names): the number of tools once these servers are listed.
    call(server, tool, arguments, big): an awaitable result, or the raw bytes of the answer.
    at_once(): how many states a list of everything has that waits for no one.
    """

    def __init__(self, pid, ready, call, at_once=None):
        self.pid, self.ready, self.call, self.at_once = pid, ready, call, at_once


class Place:
    """A folder of one run, and what has to end with it."""

    def __init__(self):
        self.folder, self.ends = tempfile.mkdtemp(prefix="pillion-bench-"), []
        self.log = open(os.path.join(self.folder, "stderr.log"), "ab")

    def rpc(self, command, framed=False, environment=None):
        rpc = Rpc(command, framed, self.log, environment, self.folder)
        self.ends.append(rpc.close)
        return rpc

    async def close(self):
        for end in reversed(self.ends):
            await end()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def running(name, servers):
    place = Place()
    try:
        yield await CONTENDERS[name](place, servers)
    finally:
        await place.close()


def contender(name):
    def register(function):
        CONTENDERS[name] = function
        return function

    return register


@contender(FLOOR)
async def bare_pipe(place, servers):
    """The harness is the client itself, with one pair of pipes per server and nothing between."""
    pipes = {name: place.rpc(command) for name, command in servers.items()}

    async def start(rpc):
        await rpc.request("initialize", HELLO)
        rpc.notify("notifications/initialized")
        return len((await rpc.request("tools/list", {}))["tools"])

    starts = {name: asyncio.ensure_future(start(rpc)) for name, rpc in pipes.items()}

    async def ready(names):
        return sum(await asyncio.gather(*[starts[name] for name in names]))

    def call(server, tool, arguments, big=False):
        return pipes[server].request("tools/call", {"name": tool, "arguments": arguments}, big)

    return Handle(None, ready, call)


@contender(NULL)
async def null_sidecar(place, servers):
    """The least a sidecar can do."""
    rpc = place.rpc([str(Paths.material / "null-sidecar")], framed=True)
    adds = {
        name: rpc.request("server/add", {"name": name, "command": command[0], "args": command[1:]})
        for name, command in servers.items()
    }
    first = rpc.request("ping", {})

    async def ready(names):
        await first
        return sum(len(answer["tools"]) for answer in await asyncio.gather(*[adds[name] for name in names]))

    def call(server, tool, arguments, big=False):
        return rpc.request("tools/call", {"server": server, "name": tool, "arguments": arguments}, big)

    return Handle(rpc.pid, ready, call)


@contender(PILLION)
async def pillion(place, servers):
    """`pillion serve`, its servers given by the host."""
    environment = {**os.environ, "HOME": place.folder, "PILLION_HOME": os.path.join(place.folder, "data")}
    rpc = place.rpc([str(Paths.pillion), "serve"], framed=True, environment=environment)
    entries = {name: {"command": command[0], "args": command[1:]} for name, command in servers.items()}
    options = {"layers": [{"label": "bench", "entries": entries}], "capabilities": {}}
    hello = rpc.request("initialize", {"processId": os.getpid(), "capabilities": {}, "initializationOptions": options})
    folder = {"directory": place.folder}

    async def begin():
        await hello
        rpc.notify("initialized")

    begun = asyncio.ensure_future(begin())

    async def tools(server):
        page = await rpc.request("mcp.tools.list", {**folder, "server": server, "waitMs": 60000})
        return len(page["items"])

    async def ready(names):
        await begun
        return sum(await asyncio.gather(*[tools(name) for name in names]))

    def call(server, tool, arguments, big=False):
        params = {**folder, "server": server, "name": tool, "arguments": arguments}
        return rpc.request("mcp.tool.call", params, big)

    async def at_once():
        page = await rpc.request("mcp.catalog", {**folder, "waitMs": 0})
        return sum(1 for server in page["servers"] if server["state"])

    return Handle(rpc.pid, ready, call, at_once)


def fleet(count, tools=20, **special):
    """That many fixture servers, some of them with further arguments."""
    servers = {f"s{number}": [Paths.fixture(), "--tools", str(tools)] for number in range(count)}
    for name, arguments in special.items():
        servers[name] = servers[name] + arguments.split()
    return servers


def rivals(folder):
    Paths.rivals = pathlib.Path(folder)
    import rivals as others

    CONTENDERS.update(others.CONTENDERS)
