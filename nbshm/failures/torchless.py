"""torch.multiprocessing's exceptions where torch is not installed: the same names and attributes."""

from __future__ import annotations


class ProcessException(Exception):  # noqa: N818  # torch's name
    """A process of a parallel run failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid


class ProcessRaisedException(ProcessException):
    """A process failed because its code raised."""


class ProcessExitedException(ProcessException):
    """A process was ended by a signal, or exited with a code."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name
