"""The tests' side of `body_server.py`."""

from __future__ import annotations

import os
import pickle
import re
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("body_server.py")
TIMEOUT = 60
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    end: Any
    events: list[Any]
    out: bytes
    err: bytes
    names: dict[str, str]

    @property
    def shown(self) -> str:
        """The traceback of a failure without colours, without trailing blanks."""
        return "\n".join(line.rstrip() for line in _ANSI.sub("", self.end.rendered).splitlines())


class BodyServer:
    """A process that runs bodies one after the other."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
        self._socket = connection
        self._process = process
        self.born = self._read()

    def run(self, cell: str, **options: Any) -> Reply:
        """Run a cell below its magic's line."""
        self.start(cell, **options)
        return self.reply()

    def start(self, cell: str, **options: Any) -> None:
        request = {"line": 2, "number": 3, "namespace": {"rank": 1, "nprocs": 2}, "mark": None, **options}
        payload = pickle.dumps({"cell": f"%%parallel nprocs=2\n{cell}", **request})
        self._socket.sendall(struct.pack("=I", len(payload)) + payload)

    def reply(self) -> Reply:
        reply = self._read()
        if isinstance(reply, BaseException):
            raise reply
        return Reply(**reply)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def _read(self) -> Any:
        header = self._socket.recv(4, socket.MSG_WAITALL)
        assert header, "the server has ended"
        length = struct.unpack("=I", header)[0]
        return pickle.loads(self._socket.recv(length, socket.MSG_WAITALL))


@contextmanager
def body_server(**environment: str) -> Iterator[BodyServer]:
    """Have a process that runs bodies, while this is entered."""
    ours, theirs = socket.socketpair()
    ours.settimeout(TIMEOUT)
    with ours, theirs:
        command = [sys.executable, str(SERVER), str(theirs.fileno())]
        process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        try:
            yield BodyServer(ours, process)
            ours.close()
            process.wait(TIMEOUT)
        finally:
            process.kill()
            process.wait()
