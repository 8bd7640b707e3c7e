// Sorts of one long row: from the lowest digit to the highest, elements are moved to the place that their digit has.
//
// The order is stable. Digits that are equal in all elements, as the high ones of small integers, cost one look. Keys that
// are close to each other, as numbers of classes, are counted instead, and written from the counts.
#ifndef PHLOX_KERNELS_RADIX_H_
#define PHLOX_KERNELS_RADIX_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "handler.h"
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

// Keys with a range below this are counted. The counts stay in the second cache.
constexpr size_t kMostCounted = 4096;
// Counters of each key, which take turns: an addition to the counter of the element before waits for it.
constexpr size_t kCounters = 4;

// The smallest and largest key of a row.
template <typename E>
struct Range {
  E low, high;
};

template <typename E>
PHLOX_KERNELS_CLONED Range<E> range_of(const E* row, size_t length) {
  E low = row[0], high = row[0];
  for (size_t i = 0; i < length; ++i) low = row[i] < low ? row[i] : low;
  for (size_t i = 0; i < length; ++i) high = row[i] > high ? row[i] : high;
  return {low, high};
}

template <typename E>
void count_keys(const E* begin, const E* end, E low, size_t keys, uint32_t* counts) {
  std::fill_n(counts, kCounters * keys, 0);
  for (; begin + kCounters <= end; begin += kCounters)
    for (size_t i = 0; i < kCounters; ++i) ++counts[i * keys + E(begin[i] - low)];
  for (; begin != end; ++begin) ++counts[E(*begin - low)];
}

// Calls `put(key, begin, end)` for runs of equal keys of the sorted row, which begins with `range.low`. Each of `parts` parts
// of the row is counted, and then written, by a thread.
template <typename E, typename Put>
void sort_by_counts(Threads& threads, size_t parts, const E* row, size_t length, Range<E> range, const Put& put) {
  const size_t keys = size_t(range.high - range.low) + 1;
  auto begin = [=](size_t part) { return length * part / parts; };
  auto counts = memory<uint32_t>(parts * kCounters * keys);
  threads.run(parts, [&](size_t part) {
    count_keys(row + begin(part), row + begin(part + 1), range.low, keys, counts.get() + part * kCounters * keys);
  });
  uint32_t place = 0;
  for (size_t key = 0; key < keys; ++key) {
    for (size_t i = 0; i < parts * kCounters; ++i) place += counts[i * keys + key];
    counts[key] = place;  // where the run of the key ends
  }
  threads.run(parts, [&](size_t part) {
    for (size_t key = 0, start = 0; key < keys; start = counts[key++]) {
      const size_t from = std::max(start, begin(part)), to = std::min<size_t>(counts[key], begin(part + 1));
      if (from < to) put(E(range.low + key), from, to);
    }
  });
}

}  // namespace phlox_kernels

#endif  // PHLOX_KERNELS_RADIX_H_
