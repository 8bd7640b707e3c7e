// Sorts of many short rows beside each other: a line of memory holds one element of each row, and Batcher's odd-even merge
// sort compares and exchanges whole lines.
#ifndef PHLOX_KERNELS_NETWORK_H_
#define PHLOX_KERNELS_NETWORK_H_

#include <cstddef>

#include "handler.h"

namespace phlox_kernels {

constexpr size_t kLineBytes = 64;

template <typename W>
constexpr size_t kLanes = kLineBytes / sizeof(W);

template <typename W>
struct alignas(kLineBytes) Line {
  W lanes[kLanes<W>];
};

// A loop of single elements, of which the compiler makes vectors of the processor's size. Of vectors of 64 bytes, g++ 12
// makes code for AVX2 that takes three times as long.
template <typename W>
inline void exchange(W* __restrict low, W* __restrict high, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const W a = low[i], b = high[i];
    low[i] = a < b ? a : b;
    high[i] = a < b ? b : a;
  }
}

// Merges the two sorted halves of the `size` lines from `start` on, in each lane. Lines from `length` on count as larger
// than all others: exchanges with them would change nothing.
template <typename W>
inline void merge_lanes(Line<W>* lines, size_t length, size_t start, size_t size) {
  for (size_t far = size / 2, first = 0; far > 0; far /= 2, first = far) {
    for (size_t low = start + first; low + far < start + size && low + far < length; low += 2 * far) {
      const size_t count = low + 2 * far <= length ? far : length - low - far;
      exchange(lines[low].lanes, lines[low + far].lanes, count * kLanes<W>);
    }
  }
}

// Sorts each lane. Parts are merged as soon as both are sorted, while they are in the processor's nearest cache.
template <typename W>
PHLOX_KERNELS_CLONED void sort_lanes(Line<W>* lines, size_t length) {
  size_t whole = 2;
  while (whole < length) whole *= 2;
  for (size_t end = 2; end <= whole; end += 2)
    for (size_t size = 2; size <= whole && end % size == 0; size *= 2) merge_lanes(lines, length, end - size, size);
}

}  // namespace phlox_kernels

#endif  // PHLOX_KERNELS_NETWORK_H_
