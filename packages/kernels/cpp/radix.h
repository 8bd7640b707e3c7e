// Sorts of one long row: from the lowest digit to the highest, elements are moved to the place that their digit has.
//
// The order is stable. Digits that are equal in all elements, as the high ones of small integers, cost one look.
#ifndef PHLOX_KERNELS_RADIX_H_
#define PHLOX_KERNELS_RADIX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "parallel.h"

namespace phlox_kernels {

// A key of 64 bits and its position; narrower keys share one integer with their position.
struct Keyed {
  uint64_t key;
  uint32_t position;
  friend bool operator<(const Keyed& a, const Keyed& b) {
    return a.key < b.key || (a.key == b.key && a.position < b.position);
  }
};

template <typename E>
uint64_t sorted_part(const E& x) {
  return x;
}
inline uint64_t sorted_part(const Keyed& x) { return x.key; }

// Below this length it takes longer to count digits than to compare elements.
constexpr size_t kLeastByDigits = 512;
constexpr int kDigit = 11;
constexpr size_t kBuckets = size_t(1) << kDigit;

template <typename E>
void count(const E* begin, const E* end, int shift, uint64_t mask, uint32_t* counts) {
  std::fill_n(counts, mask + 1, 0);
  for (; begin != end; ++begin) ++counts[(sorted_part(*begin) >> shift) & mask];
}

template <typename E>
void move(const E* begin, const E* end, int shift, uint64_t mask, uint32_t* places, E* out) {
  for (; begin != end; ++begin) out[places[(sorted_part(*begin) >> shift) & mask]++] = *begin;
}

// Sorts by the bits from `low` up to `high`, with `other` as scratch memory; returns which of both has the result.
// Each of `parts` parts of the row is counted and moved by a thread.
template <typename E>
E* radix_sort(Threads& threads, size_t parts, E* row, E* other, size_t length, int low, int high) {
  if (length < kLeastByDigits) {
    std::sort(row, row + length);
    return row;
  }
  using Counts = uint32_t[kBuckets];
  std::unique_ptr<Counts[]> places(new Counts[parts]);
  for (int shift = low; shift < high; shift += kDigit) {
    uint64_t mask = high - shift < kDigit ? (uint64_t(1) << (high - shift)) - 1 : kBuckets - 1;
    threads.run(parts, [&](size_t part) {
      count(row + length * part / parts, row + length * (part + 1) / parts, shift, mask, places[part]);
    });
    size_t first = (sorted_part(row[0]) >> shift) & mask, same = 0;
    for (size_t part = 0; part < parts; ++part) same += places[part][first];
    if (same == length) continue;
    uint32_t place = 0;
    for (size_t bucket = 0; bucket <= mask; ++bucket)
      for (size_t part = 0; part < parts; ++part) place += std::exchange(places[part][bucket], place);
    threads.run(parts, [&](size_t part) {
      move(row + length * part / parts, row + length * (part + 1) / parts, shift, mask, places[part], other);
    });
    std::swap(row, other);
  }
  return row;
}

}  // namespace phlox_kernels

#endif  // PHLOX_KERNELS_RADIX_H_
