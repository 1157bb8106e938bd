"""One block of memory in which every value of a plan lives between canaries.

A read is made exactly as the call says: element offsets times the size of the type the call
assumes, from the start of the operand, whatever the operand holds. Bytes outside the operand
read as poison (0xFF: NaN in every float type) and are reported; a write outside is reported and
not performed. The canaries are the second net: a broken one means that the model itself wrote
where it should not have.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rulecheck.backends.offsets import Ints, Offsets
from rulecheck.dtypes import Array, storage_dtype
from rulecheck.errors import InternalError
from rulecheck.records import DType, Plan, ReadEvent

Bytes = npt.NDArray[np.uint8]

POISON = 0xFF
_ZONE_BYTES = 64
_ALIGNMENT = 16


class Arena:
    """Memory for one run of one plan.

    Attributes:
        step: the step that is running, for events.
        events: reads and writes outside operands, so far.
    """

    def __init__(self, plan: Plan, inputs: tuple[bytes, ...]) -> None:
        """Allocate every value; inputs hold their bytes, everything else is poison.

        Raises:
            InternalError: the inputs do not fit the plan's leaves.
        """
        self.step = 0
        self.events: list[ReadEvent] = []
        self._sizes = [spec.count * spec.dtype.bytes for spec in plan.values]
        self._starts: list[int] = []
        place = _ZONE_BYTES
        for size in self._sizes:
            self._starts.append(place)
            place += -(-size // _ALIGNMENT) * _ALIGNMENT + _ZONE_BYTES
        self.memory: Bytes = np.full(place, POISON, np.uint8)
        self._canary = np.ones(place, np.bool_)
        for start, size in zip(self._starts, self._sizes, strict=True):
            self._canary[start : start + size] = False
        if len(inputs) != len(plan.inputs):
            raise InternalError(f"{len(inputs)} inputs for {len(plan.inputs)} leaves")
        for data, leaf in zip(inputs, plan.inputs, strict=True):
            size = self._sizes[leaf.value]
            if len(data) != size:
                raise InternalError(f"{leaf.label}: {len(data)} bytes given, {size} wanted")
            self.bytes_of(leaf.value)[:] = np.frombuffer(data, np.uint8)

    def bytes_of(self, value: int) -> Bytes:
        """Return a value's bytes (a view)."""
        start = self._starts[value]
        return self.memory[start : start + self._sizes[value]]

    def contents(self) -> tuple[bytes, ...]:
        """Return the bytes of every value."""
        block = self.memory.tobytes()
        return tuple(
            block[start : start + size]
            for start, size in zip(self._starts, self._sizes, strict=True)
        )

    def read(self, value: int, dtype: DType, offsets: Offsets, operand: str) -> Array:
        """Return elements of ``dtype`` at ``offsets`` (in elements) from a value's start."""
        size = dtype.bytes
        if offsets.low >= 0 and (offsets.high + 1) * size <= self._sizes[value]:
            stored = self._typed(value, dtype)
            if offsets.dense:
                return stored[: offsets.high + 1].reshape(offsets.array.shape)
            picked: Array = stored[offsets.array]
            return picked
        return self._read_outside(value, dtype, offsets, operand)

    def write(self, value: int, dtype: DType, offsets: Offsets, stored: Array) -> None:
        """Write elements of ``dtype`` at ``offsets``; those outside the value are only reported."""
        size = dtype.bytes
        if offsets.low >= 0 and (offsets.high + 1) * size <= self._sizes[value]:
            self._typed(value, dtype)[offsets.array] = stored.reshape(offsets.array.shape)
            return
        starts = offsets.array * size
        inside = (starts >= 0) & (starts + size <= self._sizes[value])
        target = self._typed(value, dtype)
        target[offsets.array[inside]] = stored.reshape(offsets.array.shape)[inside]
        self._report(starts[~inside], size, "D", "write", self._sizes[value])

    def check_canaries(self) -> None:
        """Compare the bytes around all values with what they were.

        Raises:
            InternalError: one changed, so the model wrote outside a value.
        """
        if np.any(self.memory[self._canary] != POISON):
            raise InternalError(f"step {self.step} broke a canary: the model wrote outside D")

    def _typed(self, value: int, dtype: DType) -> npt.NDArray[Any]:
        """View the whole elements of a value as ``dtype``."""
        start, size = self._starts[value], dtype.bytes
        whole = self._sizes[value] // size * size
        return self.memory[start : start + whole].view(storage_dtype(dtype))

    def _read_outside(self, value: int, dtype: DType, offsets: Offsets, operand: str) -> Array:
        size, held = dtype.bytes, self._sizes[value]
        starts = offsets.array * size
        outside = (starts < 0) | (starts + size > held)
        self._report(starts[outside], size, operand, "read", held)
        places = starts[..., None] + np.arange(size)
        valid = (places >= 0) & (places < held)
        block = np.full(places.shape, POISON, np.uint8)
        block[valid] = self.bytes_of(value)[places[valid]]
        return block.view(storage_dtype(dtype))[..., 0]

    def _report(
        self,
        starts: Ints,
        size: int,
        operand: str,
        access: Literal["read", "write"],
        held: int,
    ) -> None:
        """Record one event: the bytes outside, from the first to one past the last."""
        low, high = int(starts.min()), int(starts.max()) + size
        start = low if low < 0 else max(low, held)
        stop = high if high > held else min(high, 0)
        self.events.append(ReadEvent(self.step, operand, access, starts.size, start, stop))
