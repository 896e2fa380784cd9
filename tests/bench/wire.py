"""JSON-RPC with a child process over pipes, made to cost little: answers known to be big are measured, not parsed."""
import asyncio
import collections
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import time

ID = re.compile(rb'"id":\s*(\d+)')
LENGTH = re.compile(rb"(?i)content-length:\s*(\d+)")


class RpcError(Exception):
    """The error object of an answer."""

    def __init__(self, error):
        super().__init__(str(error)[:300])
        self.error = error


class Rpc:
    """One child; `framed` speaks Content-Length frames, else lines."""

    def __init__(self, command, framed, log, environment=None, folder=None):
        self.framed, self.loop, self.last, self.waiters = framed, asyncio.get_running_loop(), 0, {}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            cwd=folder,
            start_new_session=True,
            bufsize=0,
        )
        self.pid = self.process.pid
        self.input, self.output = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.on_notification = lambda message: None
        self.parts, self.buffer, self.need, self.body = [], bytearray(), 0, 0
        self.queue = collections.deque()
        for descriptor in (self.input, self.output):
            flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
            fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        self.loop.add_reader(self.output, self._readable)

    def request(self, method, params, big=False):
        """A future of the result; with `big` of the raw answer's bytes."""
        self.last += 1
        future = self.waiters[self.last] = self.loop.create_future()
        future.big = big
        self._send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return future

    def notify(self, method, params=None):
        self._send({"jsonrpc": "2.0", "method": method, "params": {} if params is None else params})

    async def close(self):
        with contextlib.suppress(Exception):
            self.loop.remove_reader(self.output)
            self.loop.remove_writer(self.input)
        await end(self.process)

    def _readable(self):
        try:
            data = os.read(self.output, 1 << 18)
        except BlockingIOError:
            return
        if not data:
            self.loop.remove_reader(self.output)
            for future in self.waiters.values():
                if not future.done():
                    future.set_exception(RuntimeError("the process ended"))
        elif self.framed:
            self._frames(data)
        else:
            self._lines(data)

    def _lines(self, data):
        if b"\n" not in data:
            self.parts.append(data)
            return
        *lines, rest = data.split(b"\n")
        if self.parts:
            lines[0] = b"".join([*self.parts, lines[0]])
        self.parts = [rest] if rest else []
        for line in lines:
            if line.strip():
                self._message(line)

    def _frames(self, data):
        self.buffer += data
        while len(self.buffer) >= self.need:
            if self.need:
                message = bytes(self.buffer[self.body : self.need])
                del self.buffer[: self.need]
                self.need = 0
                self._message(message)
                continue
            head = self.buffer.find(b"\r\n\r\n", 0, 1024)
            if head < 0:
                return
            self.body = head + 4
            self.need = self.body + int(LENGTH.search(self.buffer[:head])[1])

    def _message(self, raw):
        if len(raw) > 100_000:
            match = ID.search(raw[:300]) or ID.search(raw[-300:])
            future = match and self.waiters.get(int(match[1]))
            if future and future.big:
                del self.waiters[int(match[1])]
                if not future.done():
                    future.set_result(raw)
                return
        message = json.loads(raw)
        if "method" in message:
            if "id" in message:
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            self.on_notification(message)
            return
        future = self.waiters.pop(message.get("id"), None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(RpcError(message["error"]))
        else:
            future.set_result(raw if future.big else message["result"])

    def _send(self, message):
        data = json.dumps(message).encode()
        data = b"Content-Length: %d\r\n\r\n%s" % (len(data), data) if self.framed else data + b"\n"
        if not self.queue:
            try:
                written = os.write(self.input, data)
            except BlockingIOError:
                written = 0
            if written == len(data):
                return
            data = data[written:]
            self.loop.add_writer(self.input, self._writable)
        self.queue.append(data)

    def _writable(self):
        while self.queue:
            data = self.queue[0]
            try:
                written = os.write(self.input, data)
            except BlockingIOError:
                return
            if written < len(data):
                self.queue[0] = data[written:]
                return
            self.queue.popleft()
        self.loop.remove_writer(self.input)


async def end(process):
    """Ends a process and its group: politely, then not."""
    for number, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        begin = time.time()
        while process.poll() is None and time.time() - begin < patience:
            await asyncio.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
