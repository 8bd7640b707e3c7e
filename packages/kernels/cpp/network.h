// Sorts of many short rows beside each other: a vector holds one element of each row, and Batcher's odd-even merge sort
// compares and exchanges whole vectors.
#ifndef PHLOX_KERNELS_NETWORK_H_
#define PHLOX_KERNELS_NETWORK_H_

#include <cstddef>

#include "handler.h"

namespace phlox_kernels {

constexpr size_t kVectorBytes = 64;

template <typename W>
constexpr size_t kLanes = kVectorBytes / sizeof(W);

template <typename W>
struct VectorOf {
  typedef W type __attribute__((vector_size(kVectorBytes)));
};

template <typename W>
using Vector = typename VectorOf<W>::type;

template <typename V>
inline void exchange(V* low, V* high, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    V a = low[i], b = high[i];
    low[i] = a < b ? a : b;
    high[i] = a < b ? b : a;
  }
}

// Merges the two sorted halves of the `size` rows from `start` on, in each lane. Rows from `length` on count as larger than
// all others: exchanges with them would change nothing.
template <typename V>
inline void merge_lanes(V* rows, size_t length, size_t start, size_t size) {
  for (size_t far = size / 2, first = 0; far > 0; far /= 2, first = far) {
    for (size_t low = start + first; low + far < start + size && low + far < length; low += 2 * far)
      exchange(rows + low, rows + low + far, low + 2 * far <= length ? far : length - low - far);
  }
}

// Sorts each lane. Parts are merged as soon as both are sorted, while they are in the processor's nearest cache.
template <typename V>
PHLOX_KERNELS_CLONED void sort_lanes(V* rows, size_t length) {
  size_t whole = 2;
  while (whole < length) whole *= 2;
  for (size_t end = 2; end <= whole; end += 2)
    for (size_t size = 2; size <= whole && end % size == 0; size *= 2) merge_lanes(rows, length, end - size, size);
}

}  // namespace phlox_kernels

#endif  // PHLOX_KERNELS_NETWORK_H_
