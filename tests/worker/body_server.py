"""A process that runs bodies in a worker's shell, one after the other, as it is told over a socket."""

from __future__ import annotations

import contextlib
import os
import pickle
import socket
import struct
import sys
import threading
import types
from typing import Any

from nbshm.jobs import Body, Origin
from nbshm.worker.bodies import BodyRaised, BodyValue, run_body
from nbshm.worker.kernel_interrupts import KernelInterrupts
from nbshm.worker.shell import warm_up
from nbshm.worker.streams import Voice


def read(connection: socket.socket) -> Any:
    header = connection.recv(4, socket.MSG_WAITALL)
    return pickle.loads(connection.recv(*struct.unpack("=I", header), socket.MSG_WAITALL)) if header else None


def write(connection: socket.socket, message: Any) -> None:
    payload = pickle.dumps(message)
    connection.sendall(struct.pack("=I", len(payload)) + payload)


@contextlib.contextmanager
def captured(number: int) -> Any:
    """Have a descriptor's output in a list when this is left."""
    sys.stdout.flush()
    kept, file, output = os.dup(number), os.memfd_create("output"), []
    os.dup2(file, number)
    try:
        yield output
    finally:
        sys.stdout.flush()
        os.dup2(kept, number)
        output.append(os.pread(file, 1 << 24, 0))
        os.close(kept)
        os.close(file)


def run(
    cell: str,
    *,
    line: int,
    number: int | None,
    namespace: dict[str, Any],
    mark: str | None,
    interactivity: str = "last_expr",
    **more: Any,
) -> Any:
    module = types.ModuleType("__main__")
    vars(module).update(namespace)
    sys.modules["__main__"] = module
    origin = Origin(filename="/tmp/ipykernel_1/77.py", line=line, cell=number)  # noqa: S108  # as ipykernel names cells; nothing is there
    source = "\n".join(cell.split("\n")[line - 1 :])
    body = Body(source=source, cell=cell, origin=origin, interactivity=interactivity)
    events: list[Any] = []
    with captured(1) as out, captured(2) as err:
        voice = Voice(rank=1, say=events.append, token=mark)
        with contextlib.closing(voice):
            end = run_body(body, module, voice=voice, interrupted=interrupts.arrived, **more)
    if isinstance(end, BodyRaised):
        end = end.report
    elif isinstance(end, BodyValue):
        end = end.value
    names = {name: repr(value) for name, value in vars(module).items()}
    return {"end": end, "events": events, "out": out[0], "err": err[0], "names": names}


if __name__ == "__main__":
    interrupts = KernelInterrupts()
    interrupts.listen()
    warm_up()
    with socket.socket(fileno=int(sys.argv[1])) as parent:
        write(parent, {"modules": set(sys.modules), "threads": threading.active_count()})
        while (request := read(parent)) is not None:
            try:
                reply = run(**request)
            except BaseException as error:  # noqa: BLE001  # the test is to see what came out
                reply = error
            write(parent, reply)
