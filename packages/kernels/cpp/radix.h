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

// The digits of the bits of a key from kLow up to kHigh.
template <int kLow, int kHigh>
struct Digits {
  static constexpr size_t kCount = (kHigh - kLow + kDigit - 1) / kDigit;
  static constexpr int shift(size_t digit) { return kLow + int(digit) * kDigit; }
  static constexpr uint64_t mask(size_t digit) {
    return (uint64_t(1) << (kHigh - shift(digit) < kDigit ? kHigh - shift(digit) : kDigit)) - 1;
  }
};

using Counts = uint32_t[kBuckets];

// How often each value of a digit occurs.
template <typename E>
void count(const E* begin, const E* end, int shift, uint64_t mask, uint32_t* counts) {
  std::fill_n(counts, mask + 1, 0);
  for (; begin != end; ++begin) ++counts[(sorted_part(*begin) >> shift) & mask];
}

// The same of all digits, in one pass.
template <typename D, typename E>
void count_all(const E* begin, const E* end, Counts* counts) {
  for (size_t digit = 0; digit < D::kCount; ++digit) std::fill_n(counts[digit], kBuckets, 0);
  for (; begin != end; ++begin)
    for (size_t digit = 0; digit < D::kCount; ++digit)
      ++counts[digit][(sorted_part(*begin) >> D::shift(digit)) & D::mask(digit)];
}

template <typename E>
void move(const E* begin, const E* end, int shift, uint64_t mask, uint32_t* places, E* out) {
  for (; begin != end; ++begin) out[places[(sorted_part(*begin) >> shift) & mask]++] = *begin;
}

// Sorts by the bits from kLow up to kHigh, with `other` as scratch memory; returns which of both has the result.
// Each of `parts` parts of the row is counted and moved by a thread. In one part all digits are counted at first.
template <int kLow, int kHigh, typename E>
E* radix_sort(Threads& threads, size_t parts, E* row, E* other, size_t length) {
  if (length < kLeastByDigits) {
    std::sort(row, row + length);
    return row;
  }
  using D = Digits<kLow, kHigh>;
  std::unique_ptr<Counts[]> places(new Counts[parts == 1 ? D::kCount : parts]);
  if (parts == 1) count_all<D>(row, row + length, places.get());
  for (size_t digit = 0; digit < D::kCount; ++digit) {
    const int shift = D::shift(digit);
    const uint64_t mask = D::mask(digit);
    Counts* counts = places.get() + (parts == 1 ? digit : 0);
    auto begin = [=](size_t part) { return length * part / parts; };
    if (parts > 1)
      threads.run(parts, [&](size_t part) {
        count(row + begin(part), row + begin(part + 1), shift, mask, counts[part]);
      });
    const size_t first = (sorted_part(row[0]) >> shift) & mask;
    size_t same = 0;
    for (size_t part = 0; part < parts; ++part) same += counts[part][first];
    if (same == length) continue;
    uint32_t place = 0;
    for (size_t bucket = 0; bucket <= mask; ++bucket)
      for (size_t part = 0; part < parts; ++part) place += std::exchange(counts[part][bucket], place);
    threads.run(parts, [&](size_t part) {
      move(row + begin(part), row + begin(part + 1), shift, mask, counts[part], other);
    });
    std::swap(row, other);
  }
  return row;
}

}  // namespace phlox_kernels

#endif  // PHLOX_KERNELS_RADIX_H_
