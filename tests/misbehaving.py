"""A child process that does what children should not do, on request."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import msgspec

from rulecheck.workers import serve_pipes, take_pipes


class Order(msgspec.Struct, frozen=True, tag=True):
    """What to do; ``text`` comes back from well-behaved actions."""

    action: str
    text: str = ""


class Done(msgspec.Struct, frozen=True, tag=True):
    """The answer."""

    text: str
    process: int


REPLIES = -1


def die_by(number: int) -> Callable[[Order], None]:
    return lambda _: os.kill(os.getpid(), number)


def print_noise(_: Order) -> None:
    sys.stdout.write("noise" * 1000)
    sys.stdout.flush()
    os.write(1, b"more noise")
    os.system("echo and a child's noise")


def spin(_: Order) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    while True:
        pass


def fault(_: Order) -> None:
    # What a stack that is overrun ends in too; newer interpreters stop their own recursion.
    ctypes.string_at(0)


def allocate(_: Order) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    bytearray(8 << 30)


def flood_stderr(_: Order) -> None:
    for _line in range(4000):
        os.write(2, b"x" * 1000 + b"\n")


def leave_a_child_behind(_: Order) -> None:
    """End, while a grandchild keeps the pipes open."""
    subprocess.Popen(["sleep", "60"], stdout=REPLIES, pass_fds=(REPLIES,))
    os._exit(5)


def close_the_pipe(_: Order) -> None:
    os.close(REPLIES)
    time.sleep(60)


def write_raw(data: bytes) -> Callable[[Order], None]:
    def act(_: Order) -> None:
        os.write(REPLIES, data)
        time.sleep(60)

    return act


ACTIONS: dict[str, Callable[[Order], object]] = {
    "echo": lambda _: None,
    "print": print_noise,
    "sleep": lambda _: time.sleep(60),
    "spin": spin,
    "abort": die_by(signal.SIGABRT),
    "kill": die_by(signal.SIGKILL),
    "terminate": die_by(signal.SIGTERM),
    "fault": fault,
    "allocate": allocate,
    "rust-allocate": lambda _: (
        os.write(2, b"memory allocation of 8589934592 bytes failed\n"),
        os.abort(),
    ),
    "exit": lambda _: os._exit(3),
    "raise": lambda _: 1 // 0,
    "flood": flood_stderr,
    "orphan": leave_a_child_behind,
    "half-frame": write_raw(b"\x00\x00\x01\x00abc"),
    "half-header": write_raw(b"\x00\x00"),
    "huge-frame": write_raw(b"\xff\xff\xff\xff"),
    "garbage": write_raw(b"\x00\x00\x00\x03abc"),
    "close": close_the_pipe,
}


def answer(order: Order) -> Done:
    ACTIONS[order.action](order)
    return Done(order.text, os.getpid())


if __name__ == "__main__":
    requests, REPLIES = take_pipes()
    if os.environ.get("MISBEHAVING") == "deaf":
        time.sleep(60)
    serve_pipes(answer, Order, requests, REPLIES)
