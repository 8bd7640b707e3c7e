"""The scalars of TensorBoard's event files, read as its format says: records of protobuf messages."""

import struct
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event


def scalars(folder):
    """``{name: [(step, value), ...]}`` of all files in a folder."""
    found = {}
    for file in sorted(Path(folder).iterdir()):
        data, at = file.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + length])
            at += 12 + length + 4
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found
