"""Buckets: the lengths that programs are compiled for, one for each range of true lengths.

The default buckets are 1, the powers of two from 32 to 1024, then 1536, 2048, 2560, 3072, 3584 and 4096: thirteen for
lengths up to 4096. Mean work is 1.11 times that of the exact lengths if it is proportional to a length up to 4096, and
1.19 times if it grows with the square. Powers of two, which are as many, cost 1.33 and 1.71.

A function begins with programs for all lengths up to a power of two, so that few serve its first calls. A bucket gets
its own program once `WIDE_CALLS` calls had lengths of that bucket, or earlier, if the padded work of these calls takes
as long as a compilation: attention over thousands of tokens has its own programs at once.

The length 1 has a bucket of its own, also beside a list of buckets: an axis of length 1 broadcasts, and many functions
treat it in another way. PyTorch's symbolic shapes do the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from ..._base.errors import OptionError
from ..._ops.control.padded_call import Ranges

#: The least bucket above 1: shorter arrays take no less time
_LEAST = 32
#: octaves that begin here are divided into four buckets, those from the other number on into two
_FOUR_BUCKETS, _TWO_BUCKETS = 2048, 1024
#: A name of which lengths are within this factor of those of the first name has buckets that grow with the first's.
_MAX_RATIO = 16
#: Calls with lengths of a bucket that a program for more lengths serves, at most
WIDE_CALLS = 32
#: Estimated time that these calls may take longer together than with a program of the bucket: 0.1 s, in ns. Programs of
#: ten to thirty operations compile in 0.1 to 0.3 s on a CPU.
MAX_WIDE_TIME = 1e8


class Buckets:
    """The lengths that programs are compiled for: a list for all names, lists for some, or the default ones.

    With `wide` the default ones are powers of two only, but those that follow another name's.
    """

    def __init__(self, buckets: Sequence[int] | Mapping[str, Sequence[int]] | None, *, wide: bool = False):
        self.wide = wide
        by_name = buckets if isinstance(buckets, Mapping) else {}
        self.by_name = {name: _rising(lengths) for name, lengths in by_name.items()}
        self.default = None if buckets is None or isinstance(buckets, Mapping) else _rising(buckets)

    def ranges(
        self, lengths: Mapping[str, int], multiples: Mapping[str, int], together: Collection[frozenset[str]] = ()
    ) -> Ranges:
        """The range of each name. Several names that vary have one range for each of the first name's, not for each
        pair, as long as their lengths are proportional.

        Args:
          lengths: the length of each name.
          multiples: numbers that must divide the buckets of some names.
          together: the names of the axes of one array, for each array. Their lengths are taken to be independent.
        """
        ranges: dict[str, tuple[int, int]] = {}
        first = ""
        for name, n in lengths.items():
            multiple = multiples.get(name, 1)
            # If both grow together, a pair of ranges for each pair of lengths would square the number of programs.
            if first and self._follows(n, lengths[first], frozenset((first, name)), together):
                ranges[name] = self._following(n, lengths[first], ranges[first], multiple)
            else:
                ranges[name] = self._range(name, n, multiple)
            first = first or name
        return tuple((name, *ranges[name]) for name in sorted(ranges))

    def _follows(self, n: int, other: int, pair: frozenset[str], together: Collection[frozenset[str]]) -> bool:
        """Whether the bucket of length `n` grows with that of length `other`; `pair` are the names of both."""
        is_default = self.default is None and not any(each in self.by_name for each in pair)
        # Lengths that are far apart have nothing to do with each other.
        is_proportional = n > 1 and max(n, other) <= _MAX_RATIO * min(n, other)
        return is_default and is_proportional and not any(pair <= names for names in together)

    def _following(self, n: int, first: int, first_range: tuple[int, int], multiple: int) -> tuple[int, int]:
        """The range for the length that `n` has at the end of the first name's range, if both are proportional."""
        low, high = first_range
        before, bucket = _around(None, -(-n * high // first), multiple, wide=False)
        return max(before * low // high + 1, _least(multiple)), bucket

    def _range(self, name: str, length: int, multiple: int) -> tuple[int, int]:
        if length < _least(multiple):
            return length, length
        lengths = self.by_name.get(name, self.default)
        if lengths is not None and length > lengths[-1]:  # above the last bucket each length is its own
            return length, -(-length // multiple) * multiple
        before, bucket = _around(lengths, length, multiple, self.wide)
        return max(before + 1, _least(multiple)), bucket

    def open(self, ranges: Ranges, multiples: Mapping[str, int]) -> Ranges:
        """The ranges with all shorter lengths, but 1. Those of listed buckets stay as they are."""
        opened = []
        for name, low, high in ranges:
            if self.default is None and name not in self.by_name and low > 1:
                low = _least(multiples.get(name, 1))
            opened.append((name, low, high))
        return tuple(opened)

    def narrow(self, ranges: Ranges, lengths: Mapping[str, int], multiples: Mapping[str, int]) -> Ranges:
        """The ranges cut to lengths between two powers of two, for decisions of the function that have one answer for
        these. Those of listed buckets stay as they are."""
        narrow = []
        for name, low, high in ranges:
            power = 1 << max(0, lengths[name] - 1).bit_length()
            if self.default is None and name not in self.by_name:
                multiple = multiples.get(name, 1)
                low, high = max(low, power // 2 + 1), min(high, -(-power // multiple) * multiple)
            narrow.append((name, low, high))
        return tuple(narrow)


def _around(lengths: Sequence[int] | None, length: int, multiple: int, wide: bool) -> tuple[int, int]:
    """(the bucket before, the bucket) of a length, as multiples of `multiple`. Without `lengths` the default ones."""

    def before(bucket: int) -> int:
        if lengths is None:
            return 0 if bucket <= _LEAST else bucket - _step(bucket, wide)
        at = bisect_left(lengths, bucket)
        return lengths[at - 1] if at else 0

    def rounded(bucket: int) -> int:
        return -(-bucket // multiple) * multiple

    bucket = _default(length, wide) if lengths is None else lengths[bisect_left(lengths, length)]
    # Rounding up may make two buckets equal, of which the first counts.
    while rounded(before(bucket)) >= length:  # a bucket that is rounded up serves lengths of the next ones too
        bucket = before(bucket)
    return rounded(before(bucket)), rounded(bucket)


def _step(length: int, wide: bool) -> int:
    """The distance of default buckets between the powers of two around `length`."""
    # The largest power of two below `length`. (Python shifts after it subtracts.)
    base = 1 << (length - 1).bit_length() - 1
    if wide or base < _TWO_BUCKETS:
        return base
    return base // (4 if base >= _FOUR_BUCKETS else 2)


def _default(length: int, wide: bool) -> int:
    """The least default bucket for a length."""
    return _LEAST if length <= _LEAST else -(-length // _step(length, wide)) * _step(length, wide)


def _least(multiple: int) -> int:
    """The least length in a bucket of several lengths. A length of 1 is padded only where devices share the axis."""
    return 2 if multiple == 1 else 1


def _rising(lengths: Sequence[int]) -> list[int]:
    try:
        numbers = [int(n) for n in lengths]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or numbers[0] < 1 or any(a >= b for a, b in pairwise(numbers)):
        raise OptionError(f"sizes: buckets are {lengths!r}", instead="positive lengths in rising order")
    return numbers
