"""What the engine's child gives up before it reads anything it does not trust.

The allow-list of ``rules`` is the first line of defence; this is the second, kept by the kernel.
"""

from __future__ import annotations

import os
import resource
import sys

# What the process holds before any work: the engine's mapped library, Python, msgspec.
_BASE_MEMORY_BYTES = 768 << 20
_CPU_GRACE_S = 2


def seal_process() -> None:
    """Give up opening files, running Python from the engine, and core dumps. For good.

    Call it after every import: nothing can be imported from a file any more.
    """
    sys.modules["cloudpickle"] = None  # type: ignore[assignment]  # None makes its import fail
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, lowest_free))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_request(seconds: float, memory_bytes: int) -> None:
    """Bound one request in processor time (SIGXCPU) and address space (SIGABRT)."""
    _lower_to(resource.RLIMIT_AS, _BASE_MEMORY_BYTES + memory_bytes)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used_s = usage.ru_utime + usage.ru_stime
    _lower_to(resource.RLIMIT_CPU, int(used_s + seconds) + _CPU_GRACE_S)


def _lower_to(kind: int, wanted: int) -> None:
    """Set the soft limit, under whatever hard limit the process was started with."""
    _, hard = resource.getrlimit(kind)
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (soft, hard))
