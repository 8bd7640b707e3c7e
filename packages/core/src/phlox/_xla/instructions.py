"""The instructions of a compiled program with the user's lines, and the buffers that are alive at its peak of memory.

XLA gives both as protocol buffers. Their wire format needs no library: a message is a list of numbered fields.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple


class Instruction(NamedTuple):
    """One instruction: its name, opcode, size of the result in bytes on one device, and place in the user's program.

    `file` is "" and `line` 0 if it has no location.
    """

    name: str
    opcode: str
    size: int
    file: str
    line: int


class PeakBuffer(NamedTuple):
    """A buffer that is alive at the peak of memory.

    `kind` is "argument", "result", "constant" or "temporary"; `number` is that of an argument, else -1.
    """

    kind: str
    size: int
    instruction: Instruction | None
    number: int


_Message = dict[int, list[Any]]
#: bits of an element by XLA's number of the type (xla_data.proto)
_BITS = {
    1: 8, 2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 16, 11: 32, 12: 64, 15: 64, 16: 16, 18: 128,
    19: 8, 20: 8, 21: 4, 22: 4, 23: 8, 24: 8, 25: 8,
}  # fmt: skip


def instructions(executable: Any) -> dict[int, Instruction]:
    """The instructions of all computations of a loaded executable, by XLA's identifiers."""
    # Numbers of fields, here and below, are those of hlo.proto: 3 computations, 17 stack frames of a module.
    module = _message(executable.hlo_modules()[0].as_serialized_hlo_module_proto())
    locations = _places(module)
    by_id: dict[int, Instruction] = {}
    for computation in map(_message, module[3]):
        # Instructions of a computation. Their fields: 1 name, 2 opcode, 3 shape, 7 metadata, 35 identifier.
        for fields in map(_message, computation[2]):
            metadata = _message(fields[7][0]) if fields[7] else defaultdict(list)
            # In the metadata: 3 source file, 4 source line, 15 number of the stack frame.
            frame = metadata[15][0] if metadata[15] else 0
            file, line = locations.get(frame, ("", 0))
            if not line and metadata[4]:  # without a table of frames the location is in the instruction itself
                file, line = _text(metadata[3]), metadata[4][0]
            name, opcode = _text(fields[1]), _text(fields[2])
            identifier = fields[35][0] if fields[35] else len(by_id)
            by_id[identifier] = Instruction(name, opcode, _size(fields[3][0]), file, line)
    return by_id


def peak_buffers(executable: Any) -> list[PeakBuffer]:
    """The buffers that are alive when the program needs most memory; empty if the backend does not report them."""
    stats = executable.get_compiled_memory_stats()
    serialized = getattr(stats, "serialized_buffer_assignment_proto", b"")
    if not serialized:
        return []
    by_id = instructions(executable)
    assignment = _message(serialized)
    defined_by: dict[int, tuple[int, Instruction | None]] = {}
    # A logical buffer: 1 identifier, 2 size, 3 where it is defined, there 4 the instruction.
    for buffer in map(_message, assignment[1]):
        defined = _message(buffer[3][0])
        defined_by[_number(buffer, 1)] = _number(buffer, 2), by_id.get(_number(defined, 4))
    at_peak = {_number(m, 1): _packed(m[2]) for m in map(_message, assignment[5])}
    return list(_allocations(assignment, defined_by, at_peak))


def _allocations(
    assignment: _Message, defined_by: dict[int, tuple[int, Instruction | None]], at_peak: dict[int, list[int]]
) -> Iterator[PeakBuffer]:
    for allocation in map(_message, assignment[3]):
        # An allocation: 1 index, 2 size, 3 local to a thread, 5 and 6 argument and its number, 7 result, 9 buffers, 12
        # constant.
        index, size = _number(allocation, 1), _number(allocation, 2)
        if _number(allocation, 3):  # local to a thread: a scalar
            continue
        assigned = [_number(_message(each), 1) for each in allocation[9]]
        # Buffers that are not alive at the same time share an allocation; without a record of the peak the first stands
        # for it.
        buffers = at_peak.get(index) or assigned[:1]
        if _number(allocation, 5):
            yield PeakBuffer("argument", size, None, _number(allocation, 6))
        elif _number(allocation, 7) or _number(allocation, 12):
            kind = "result" if _number(allocation, 7) else "constant"
            yield PeakBuffer(kind, size, defined_by[buffers[-1]][1] if buffers else None, -1)
        else:
            for buffer in buffers:
                yield PeakBuffer("temporary", *defined_by[buffer], -1)


def _places(module: _Message) -> dict[int, tuple[str, int]]:
    """File and line of each stack frame, by its number."""
    if not module[17]:
        return {}
    table = _message(module[17][0])
    files = [bytes(name).decode() for name in table[1]]
    locations = [_message(each) for each in table[3]]
    by_name = {}
    for number, frame in enumerate(map(_message, table[4]), 1):
        # Numbers of frames, locations and files count from 1, as 0 means none.
        location = locations[_number(frame, 1) - 1]
        by_name[number] = files[_number(location, 1) - 1], _number(location, 3)
    return by_name


def _size(shape: bytes) -> int:
    """Bytes of an array, or of all arrays of a tuple."""
    fields = _message(shape)
    if fields[4]:
        return sum(map(_size, fields[4]))
    return math.prod(_packed(fields[3])) * _BITS.get(_number(fields, 2), 32) // 8


# -- the wire format


def _message(data: bytes) -> _Message:
    """The fields of a message by number: integers, and bytes for texts and inner messages."""
    fields: _Message = defaultdict(list)
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        kind = key & 7
        value: Any
        if kind == 0:
            value, position = _varint(data, position)
        else:
            # Kinds 1 and 5 have fixed widths; kind 2 begins with its length.
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                length, position = _varint(data, position)
            value = data[position : position + length]
            position += length
        fields[key >> 3].append(value)
    return fields


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, position


def _packed(values: list[Any]) -> list[int]:
    """Repeated integers, which are packed into bytes or not."""
    numbers = []
    for value in values:
        if isinstance(value, int):
            numbers.append(value)
            continue
        position = 0
        while position < len(value):
            number, position = _varint(value, position)
            numbers.append(number)
    return numbers


def _number(fields: _Message, key: int) -> int:
    return int(fields[key][0]) if fields[key] else 0


def _text(values: list[Any]) -> str:
    return bytes(values[0]).decode() if values else ""
