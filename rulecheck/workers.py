"""Child processes that answer messages: one transport for the engine and for the numerics.

A child may crash, hang, print, or be fed hostile input; the parent sees none of that except as a
``Failure``. Frames are a four-byte big-endian length and a msgpack body, over pipes that are never
read or written without a deadline.
"""

from __future__ import annotations

import abc
import contextlib
import os
import selectors
import signal
import site
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

from rulecheck.errors import InternalError
from rulecheck.records import Failure, FailureKind

Reply = TypeVar("Reply")

_HEADER_BYTES = 4
_MAX_FRAME_BYTES = 1 << 28
_CHUNK_BYTES = 1 << 20
_STDERR_KEPT_BYTES = 16 << 10
# A child whose pipe is still held open by a grandchild gives no end-of-file: look at it this often.
_POLL_S = 0.1
_EXIT_GRACE_S = 1.0

# One thread (its ids and extraction depend on it), no backtraces (0.3 s on a panic), fixed hashes.
_PINNED = {
    "RAYON_NUM_THREADS": "1",
    "RUST_BACKTRACE": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_PASSED_ON = (
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
)

_SIGNALS: dict[int, tuple[FailureKind, str]] = {
    signal.SIGABRT: (FailureKind.CRASH, "it aborted"),
    signal.SIGSEGV: (FailureKind.CRASH, "it overran its stack, or followed a bad pointer"),
    signal.SIGBUS: (FailureKind.CRASH, "it touched memory that is not there"),
    signal.SIGILL: (FailureKind.CRASH, "it ran an instruction that this machine does not have"),
    signal.SIGFPE: (FailureKind.CRASH, "it trapped on an arithmetic error"),
    signal.SIGXCPU: (FailureKind.TIMEOUT, "it used up its processor time"),
    signal.SIGKILL: (FailureKind.MEMORY, "the system killed it, most often for want of memory"),
}
_MEMORY_SIGNS = ("memory allocation of", "memory allocation failed", "MemoryError", "bad_alloc")


class Startable(abc.ABC):
    """Something with children: started where a ``with`` block begins, stopped where it ends."""

    @abc.abstractmethod
    def start(self) -> None:
        """Start the children, unless they run."""

    @abc.abstractmethod
    def close(self) -> None:
        """Stop the children and everything they started."""

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.close()


class Worker(Startable, Generic[Reply]):
    """One child process, started again when it is needed after it died.

    ``starts`` counts the processes so far: when it has changed, the new child knows nothing of
    what the old one was told.

    Args:
        module: what the child runs, as ``python -m module``.
        reply_type: the type (a union of tagged records) that replies are decoded to.
        environment: variables set for the child on top of the pinned ones.
    """

    def __init__(
        self, module: str, reply_type: Any, environment: Mapping[str, str] | None = None
    ) -> None:
        """Remember what to start; ``start`` or the first request starts it."""
        self.starts = 0
        self._module = module
        self._name = module.rpartition(".")[2]
        self._environment = dict(environment or {})
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(reply_type)
        self._process: subprocess.Popen[bytes] | None = None
        self._incoming = bytearray()
        self._outgoing = memoryview(b"")
        self._stderr = bytearray()

    @property
    def alive(self) -> bool:
        """Whether a child is running."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the child if none is running; return at once, while it is still importing."""
        if self.alive:
            return
        self._kill()
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
            # -P: the working folder may be a hostile checkout, so nothing is imported from it.
            [sys.executable, "-P", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_child_environment(self._environment),
            bufsize=0,
            start_new_session=True,
        )
        for pipe in self._pipes():
            os.set_blocking(pipe, False)
        self._incoming.clear()
        self._stderr.clear()
        self._outgoing = memoryview(b"")
        self.starts += 1

    def send(self, message: msgspec.Struct) -> None:
        """Queue a message and write what fits; ``receive`` writes the rest."""
        self.start()
        body = self._encoder.encode(message)
        frame = len(body).to_bytes(_HEADER_BYTES, "big") + body
        self._outgoing = memoryview(bytes(self._outgoing) + frame)
        self._write()

    def receive(self, timeout_s: float) -> Reply | Failure:
        """Wait for one reply. After a ``Failure`` the child is gone."""
        if self._process is None:
            return Failure(FailureKind.CRASH, f"The {self._name} process is not running.")
        deadline_s = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            self._watch(selector)
            while True:
                frame = self._take_frame()
                if isinstance(frame, Failure):
                    self._kill()
                    return frame
                if frame is not None:
                    return self._decode(frame)
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    self._kill()
                    what = f"The {self._name} process gave no answer within {timeout_s:g} s"
                    return Failure(FailureKind.TIMEOUT, f"{what} and was stopped.")
                if not self._pump(selector, min(left_s, _POLL_S)):
                    return self._post_mortem()

    def request(self, message: msgspec.Struct, timeout_s: float) -> Reply | Failure:
        """Send ``message`` and wait for its reply, starting a child if none is running."""
        self.send(message)
        return self.receive(timeout_s)

    def close(self) -> None:
        """Stop the child and everything it started. A later request starts a new one."""
        self._kill()

    def interrupt(self) -> None:
        """Kill the child from another thread: a request that waits for it fails at once."""
        process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def _pipes(self) -> tuple[int, int, int]:
        process = self._process
        if process is None or not (process.stdin and process.stdout and process.stderr):
            raise InternalError("a worker without a process has no pipes")
        return process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno()

    def _watch(self, selector: selectors.BaseSelector) -> None:
        stdin, stdout, stderr = self._pipes()
        selector.register(stdout, selectors.EVENT_READ, self._incoming)
        selector.register(stderr, selectors.EVENT_READ, self._stderr)
        if self._outgoing:
            selector.register(stdin, selectors.EVENT_WRITE, None)

    def _pump(self, selector: selectors.BaseSelector, wait_s: float) -> bool:
        """Move bytes for at most ``wait_s``; False once nothing more can come."""
        running = self.alive
        ready = selector.select(wait_s)
        for key, _ in ready:
            if key.data is None:
                self._write()
                if not self._outgoing:
                    selector.unregister(key.fileobj)
            elif not _read(key.fd, key.data):
                selector.unregister(key.fileobj)
            elif key.data is self._stderr:
                del self._stderr[:-_STDERR_KEPT_BYTES]
        _, stdout, _ = self._pipes()
        return stdout in selector.get_map() and (running or bool(ready))

    def _write(self) -> None:
        stdin = self._pipes()[0]
        while self._outgoing:
            try:
                written = os.write(stdin, self._outgoing[:_CHUNK_BYTES])
            except BlockingIOError:
                return
            except BrokenPipeError:  # it died: its end-of-file tells the rest
                self._outgoing = memoryview(b"")
                return
            self._outgoing = self._outgoing[written:]

    def _take_frame(self) -> bytes | Failure | None:
        if len(self._incoming) < _HEADER_BYTES:
            return None
        length = int.from_bytes(self._incoming[:_HEADER_BYTES], "big")
        if length > _MAX_FRAME_BYTES:
            what = f"The {self._name} process announced an answer of {length} bytes"
            return Failure(FailureKind.CRASH, f"{what}; {_MAX_FRAME_BYTES} is the limit.")
        end = _HEADER_BYTES + length
        if len(self._incoming) < end:
            return None
        frame = bytes(self._incoming[_HEADER_BYTES:end])
        del self._incoming[:end]
        return frame

    def _decode(self, frame: bytes) -> Reply | Failure:
        try:
            return self._decoder.decode(frame)
        except msgspec.MsgspecError as error:
            self._kill()
            what = f"The {self._name} process gave a malformed answer: {error}."
            return Failure(FailureKind.CRASH, what)

    def _post_mortem(self) -> Failure:
        """Say why a child that gave no answer ended."""
        process = self._process
        if process is None:
            raise InternalError("post-mortem of a process that never was")
        try:
            code = process.wait(_EXIT_GRACE_S)
        except subprocess.TimeoutExpired:
            self._kill()
            return Failure(FailureKind.CRASH, f"The {self._name} process closed its pipe.")
        _read(self._pipes()[2], self._stderr)
        self._kill()
        said = self._stderr.decode("utf-8", "replace")
        return explain_exit(self._name, code, said)

    def _kill(self) -> None:
        """Kill the child's whole group, reap it and close its pipes."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            # Also when the child itself is gone: what it started has the same group.
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def explain_exit(name: str, code: int, said: str) -> Failure:
    """Classify a child's death by its exit code (negative: signal) and what it wrote to stderr."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = f" Its last words: {lines[-1][:300]}" if lines else ""
    if any(sign in said for sign in _MEMORY_SIGNS):
        return Failure(FailureKind.MEMORY, f"The {name} process ran into its memory limit.")
    if code < 0:
        kind, why = _SIGNALS.get(-code, (FailureKind.CRASH, f"signal {-code} ended it"))
        return Failure(kind, f"The {name} process died: {why} (signal {-code}).{last}")
    return Failure(FailureKind.CRASH, f"The {name} process ended with exit code {code}.{last}")


def serve(handler: Callable[[Any], msgspec.Struct], request_type: Any) -> None:
    """Answer requests on stdin until it ends; the child's side of ``Worker``.

    An exception of ``handler`` is a bug: it ends the process, and the parent sees a ``Failure``.
    """
    serve_pipes(handler, request_type, *take_pipes())


def take_pipes() -> tuple[int, int]:
    """Move the real stdin and stdout away; return them. Whatever libraries print goes to stderr."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return requests, replies


def serve_pipes(
    handler: Callable[[Any], msgspec.Struct], request_type: Any, requests: int, replies: int
) -> None:
    """Answer requests read from one file descriptor on another until the first ends."""
    decoder = msgspec.msgpack.Decoder(request_type)
    encoder = msgspec.msgpack.Encoder()
    while header := _read_exactly(requests, _HEADER_BYTES):
        body = _read_exactly(requests, int.from_bytes(header, "big"))
        reply = encoder.encode(handler(decoder.decode(body)))
        _write_all(replies, len(reply).to_bytes(_HEADER_BYTES, "big") + reply)


def _read(pipe: int, into: bytearray) -> bool:
    """Read what is there; False at end-of-file."""
    try:
        chunk = os.read(pipe, _CHUNK_BYTES)
    except BlockingIOError:
        return True
    into += chunk
    return bool(chunk)


def _read_exactly(pipe: int, count: int) -> bytes:
    """Read ``count`` bytes, or nothing if the pipe ends first."""
    data = bytearray()
    while len(data) < count:
        chunk = os.read(pipe, min(count - len(data), _CHUNK_BYTES))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)


def _write_all(pipe: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(pipe, view[:_CHUNK_BYTES]) :]


def _child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Only what a child needs, and the folder of this very package if it is not installed."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    root = str(Path(__file__).resolve().parent.parent)
    if root not in site.getsitepackages():
        paths = [root, *filter(None, [environment.get("PYTHONPATH")])]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    return environment | _PINNED | dict(extra)
