"""A process that stands for a worker: it reads jobs from its socket and runs their code."""

from __future__ import annotations

import contextlib
import pickle
import socket
import sys

import numpy as np
import torch
from memory_notebook import pickled

from nbshm.memory.mapping import MappedSegments
from nbshm.memory.parcels import pack


def main(fd: int) -> None:
    kernel = socket.socket(fileno=fd)
    while True:
        length, fds, _, _ = socket.recv_fds(kernel, 8, 250)
        if not length:
            return
        payload, places, sizes, spare, code = pickle.loads(_read(kernel, int.from_bytes(length, "little")))
        with MappedSegments(fds, sizes) as mapping:
            result = _run(mapping, payload, places, code)
            parcel, made = pack(result, mapping=mapping, pickle=pickled, spare=spare)
            message = pickle.dumps(parcel)
            socket.send_fds(kernel, [len(message).to_bytes(8, "little")], [segment.fd for segment in made])
            kernel.sendall(message)
            del result, made


def _run(mapping, payload, places, code):
    try:
        with mapping.loading(places):
            names = pickle.loads(payload)
        names.update(np=np, torch=torch)
        exec(code, names)  # noqa: S102  # the code is a test's own
        return names.get("result")
    except Exception as error:  # noqa: BLE001  # the test that sent the code raises it
        return error


def _read(kernel: socket.socket, length: int) -> bytes:
    message = b""
    while len(message) < length:
        message += kernel.recv(1 << 16)
    return message


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(int(sys.argv[1]))
