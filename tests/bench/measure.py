"""One round of one contender: start-up and memory, then calls. Everything is taken beside the bare pipe."""
import asyncio
import collections
import contextlib
import json
import os
import pathlib
import re
import statistics
import time

from contenders import FLOOR, PILLION, Paths, fleet, running
from wire import RpcError

TEN = 10 << 20
OVER = 70 << 20  # more than the 64 MiB a message may have
TOOLS = 20


def tree(pid):
    """The manager and its helpers, without the MCP servers it started."""
    children = collections.defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = pathlib.Path("/proc", entry, "stat").read_text()
                children[int(stat.rsplit(")", 1)[1].split()[1])].append(int(entry))
    todo, found, fixture = [pid], [], os.path.realpath(Paths.fixture())
    while todo:
        current = todo.pop()
        todo += children[current]
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{current}/exe") != fixture:
                found.append(current)
    return found


def resident(pid):
    """MiB of memory that is there."""
    total = 0
    for current in tree(pid):
        with contextlib.suppress(OSError):
            total += int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{current}/status").read_text())[1])
    return total / 1024


def processor(pid):
    """Nanoseconds of processor time so far, and how often a thread was given the processor."""
    spent = turns = 0
    for current in tree(pid):
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{current}/task"):
                stat = pathlib.Path(f"/proc/{current}/task/{thread}/schedstat").read_text().split()
                spent, turns = spent + int(stat[0]), turns + int(stat[2])
    return spent, turns


async def until_ready(name, servers, wanted=None):
    """Seconds from spawn to all wanted servers listed."""
    begin = time.perf_counter()
    async with running(name, servers) as handle:
        got = await handle.ready(wanted or list(servers))
        seconds = time.perf_counter() - begin
    if got != TOOLS * len(wanted or servers):
        raise RuntimeError(f"{got} tools listed instead of {TOOLS * len(wanted or servers)}")
    return seconds


async def starting(name, figures, idle):
    """Fills the figures of start-up, memory and idleness."""
    begin = time.perf_counter()
    async with running(name, {}) as handle:
        await handle.ready([])
        figures["first_answer_ms"] = (time.perf_counter() - begin) * 1000
        await asyncio.sleep(1)
        figures["memory_empty"] = resident(handle.pid)

    servers = fleet(40)
    figures["floor_forty"] = await until_ready(FLOOR, servers)
    begin = time.perf_counter()
    async with running(name, servers) as handle:
        await handle.ready(list(servers))
        figures["forty"] = time.perf_counter() - begin
        await asyncio.sleep(1.5)
        figures["memory_forty"] = resident(handle.pid)
        before = processor(handle.pid)
        await asyncio.sleep(idle)
        after = processor(handle.pid)
        figures["idle_percent"] = (after[0] - before[0]) / idle / 1e7
        figures["wakeups"] = (after[1] - before[1]) / idle

    slow = {server: [*command, "--init-delay", "500"] for server, command in servers.items()}
    figures["slow_one"] = await until_ready(name, {"s0": slow["s0"]})
    figures["slow_forty"] = await until_ready(name, slow)

    faulty = fleet(40, s7="--mode hang", s23="--mode crash")
    good = [server for server in faulty if server not in ("s7", "s23")]
    figures["faultless_38"] = await until_ready(name, servers, good)
    figures["faulty_38"] = await until_ready(name, faulty, good)

    async with running(name, faulty) as handle:
        if handle.at_once:
            await handle.ready(["s0"])
            begin = time.perf_counter()
            figures["at_once_states"] = await handle.at_once()
            figures["at_once_ms"] = (time.perf_counter() - begin) * 1000


async def calling(name, figures, calls):
    """Fills the figures of calls, in turns with the bare pipe so that a noisy machine hits both alike."""
    servers, arguments = fleet(10), {"text": "hello world"}
    async with running(name, servers) as handle, running(FLOOR, {"s9": servers["s9"]}) as floor:
        await handle.ready(list(servers))
        await floor.ready(["s9"])
        if "hello world" not in json.dumps(await handle.call("s9", "echo", arguments)):
            raise RuntimeError("the echo is wrong")
        both = (("floor_", floor), ("", handle))
        for _, side in both:
            for _ in range(200):
                await side.call("s9", "echo", arguments)

        times = collections.defaultdict(list)
        for _ in range(10):
            for prefix, side in both:
                for _ in range(calls // 10):
                    begin = time.perf_counter()
                    await side.call("s9", "echo", arguments)
                    times[prefix].append((time.perf_counter() - begin) * 1e6)
        for prefix, values in times.items():
            figures[prefix + "call_us"] = statistics.median(values)

        for prefix, side in both:
            await flight(prefix, side, calls * 4, arguments, figures)
        # The memory to come back to is that of a sidecar that has worked.
        figures["memory_before"] = resident(handle.pid)
        for what, size, times in (("big1", 1 << 20, 5), ("big10", TEN, 3)):
            await big(what, size, times, both, figures)
        await asyncio.sleep(2)
        figures["memory_after"] = resident(handle.pid)
        if name == PILLION:
            await too_big(handle, arguments, figures)


async def flight(prefix, side, calls, arguments, figures):
    """64 calls in flight all the time."""
    left = [calls]

    async def worker():
        while left[0] > 0:
            left[0] -= 1
            await side.call("s9", "echo", arguments)

    spent, begin = processor(side.pid)[0] if side.pid else 0, time.perf_counter()
    await asyncio.gather(*[worker() for _ in range(64)])
    figures[prefix + "calls_per_second"] = calls / (time.perf_counter() - begin)
    if side.pid:
        figures["cpu_us"] = (processor(side.pid)[0] - spent) / calls / 1000


async def big(what, size, times, both, figures):
    """A big result, which must come through byte for byte."""
    taken, bodies = collections.defaultdict(list), {}
    for _ in range(times):
        for prefix, side in both:
            begin = time.perf_counter()
            bodies[prefix] = await side.call("s9", "big", {"n": size}, True)
            taken[prefix].append((time.perf_counter() - begin) * 1000)
    for prefix, values in taken.items():
        figures[prefix + what + "_ms"] = statistics.median(values)
    # From the content on: a modern result has further members before it.
    content = re.compile(rb'"content":\[.*\],"isError":false\}', re.DOTALL)
    sent = content.search(bodies["floor_"])[0]
    figures[what + "_as_sent"] = len(bodies[""]) >= size and sent in bodies[""]


async def too_big(handle, arguments, figures):
    """A result over the limit: its call fails, one beside it and one after it do not."""
    beside = asyncio.ensure_future(_value(handle.call("s9", "sleep", {"ms": 300})))
    try:
        await asyncio.wait_for(_value(handle.call("s9", "big", {"n": OVER}, True)), 20)
        figures["over_limit"] = "passes"
    except asyncio.TimeoutError:
        figures["over_limit"] = "no answer"
    except RpcError as refusal:
        figures["over_limit"] = refusal.error.get("data", {}).get("kind", "no kind")
    await beside
    await handle.call("s9", "echo", arguments)
    figures["over_limit_spares_others"] = True


async def _value(awaitable):
    return await awaitable


async def round_of(name, calls, idle):
    figures = {}
    for part in (starting(name, figures, idle), calling(name, figures, calls)):
        try:
            await asyncio.wait_for(part, 240)
        except Exception as problem:  # one figure that cannot be had must not cost the others
            figures.setdefault("problems", []).append(f"{type(problem).__name__} {str(problem)[:300]}")
    return figures
