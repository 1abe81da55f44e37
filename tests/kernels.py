"""A real Jupyter kernel to run cells in, for tests."""

from __future__ import annotations

import queue
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_client.manager import KernelManager

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(slots=True, kw_only=True)
class Reply:
    """What one cell sent back; `outputs` are the messages as a notebook would save them, in order."""

    streams: list[tuple[str, str]] = field(default_factory=list)
    displays: list[dict] = field(default_factory=list)
    result: dict | None = None
    error: tuple[str, str, str] | None = None

    @property
    def stdout(self) -> str:
        return "".join(text for name, text in self.streams if name == "stdout")

    @property
    def stderr(self) -> str:
        return "".join(text for name, text in self.streams if name == "stderr")

    @property
    def text(self) -> str:
        """All that a person could read, without colours."""
        parts = [text for _, text in self.streams]
        parts += [f"{data.get('text/plain', '')}\n" for data in self.displays]
        if self.result:
            parts.append(self.result.get("text/plain", ""))
        if self.error:
            parts += ["\n", *self.error]
        return ANSI.sub("", "".join(parts))

    def check(self) -> Reply:
        """Return the reply if the cell ran, else fail with what it said."""
        assert self.error is None, self.text
        assert "UsageError" not in self.stderr, self.text
        return self


class Kernel:
    """A kernel of this Python, in a working directory of its own."""

    def __init__(self, manager: KernelManager, directory: Path) -> None:
        self.manager = manager
        self.directory = directory
        self.client = manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    @property
    def pid(self) -> int:
        return self.manager.provisioner.pid

    def run(self, source: str, *, timeout: float = 60) -> Reply:
        """Run a cell to its end and return what it sent."""
        return self.finish(self.send(source), timeout=timeout)

    def send(self, source: str) -> str:
        """Start a cell without waiting for it.

        A kernel that has told of an error refuses for a moment what comes in, unless it is told to go on.
        """
        return self.client.execute(source, allow_stdin=False, stop_on_error=False)

    def finish(
        self, message_id: str, *, timeout: float = 60, until: str | None = None, reply: Reply | None = None
    ) -> Reply:
        """Collect what a cell sends until it ends, or until its text contains `until`.

        `reply` is what has been collected before, when an earlier call ran out of time.
        """
        reply, limit = reply or Reply(), time.monotonic() + timeout
        while not (until and until in reply.text):
            message = self._next(limit, reply)
            if message["parent_header"].get("msg_id") != message_id:
                continue
            if self._note(message, reply):
                return reply
        return reply

    def _next(self, limit: float, reply: Reply) -> dict:
        while time.monotonic() < limit:
            try:
                return self.client.get_iopub_msg(timeout=0.2)
            except queue.Empty:  # noqa: PERF203  # nothing has been said for a moment
                assert self.manager.is_alive(), f"the kernel died; so far: {reply.text}"
        raise AssertionError(f"the cell did not end in time; so far: {reply.text}")

    @staticmethod
    def _note(message: dict, reply: Reply) -> bool:
        """Add a message to the reply; tell whether the cell has ended."""
        content = message["content"]
        match message["msg_type"]:
            case "stream":
                reply.streams.append((content["name"], content["text"]))
            case "display_data" | "update_display_data":
                reply.displays.append(content["data"])
            case "execute_result":
                reply.result = content["data"]
            case "error":
                traceback = ANSI.sub("", "\n".join(content["traceback"]))
                reply.error = (content["ename"], content["evalue"], traceback)
            case "status":
                return content["execution_state"] == "idle"
        return False

    def value(self, expression: str) -> object:
        """Return the value of an expression that has a literal for its repr."""
        import ast

        reply = self.run(f"print(repr({expression}))").check()
        return ast.literal_eval(reply.stdout)

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()


@contextmanager
def kernel(
    directory: Path, *, load: bool = True, env: dict[str, str] | None = None, through: Sequence[str] = ()
) -> Iterator[Kernel]:
    """Start a kernel, give it, and end it with all that it started.

    `through` is a command that turns into the one that follows it (`unshare`, say).
    """
    with tempfile.TemporaryFile("w+") as log:
        manager = KernelManager(kernel_name="python3")
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        manager.kernel_spec.argv = [*through, *command]
        options = {} if env is None else {"env": env}
        manager.start_kernel(stdout=log, stderr=log, cwd=str(directory), **options)
        running = Kernel(manager, directory)
        try:
            if load:
                running.run("%load_ext nbshm").check()
            yield running
        finally:
            running.client.stop_channels()
            manager.shutdown_kernel(now=True)
            manager.cleanup_resources()
