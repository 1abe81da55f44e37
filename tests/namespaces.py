"""A /dev/shm of a test's own, as small as a container's: a mount namespace that a command starts in."""

from __future__ import annotations

import functools
import subprocess

import pytest

_MOUNT = 'mount -t tmpfs -o size="$0" tmpfs /dev/shm && exec "$@"'
_WAYS = (["--mount"], ["--mount", "--user", "--map-root-user"])  # as root; as anybody, where that is allowed


def small_shared_memory(size: str) -> list[str]:
    """Return a command that turns into the one that follows it, which then sees a /dev/shm of that size.

    The test is skipped where the system permits nobody to make a namespace, as containers do by default.
    """
    return ["unshare", *_way(), "sh", "-c", _MOUNT, size]


@functools.cache
def _way() -> list[str]:
    for way in _WAYS:
        command = ["unshare", *way, "sh", "-c", _MOUNT, "1m", "true"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        if done.returncode == 0:
            return way
    assert "not permitted" in done.stderr or "denied" in done.stderr, done.stderr
    pytest.skip(f"no mount namespace can be made here, neither as root nor as a user ({done.stderr.strip()})")
