// The positions of the true elements of each row; as many as there is room for, then the length of the row.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

// The bytes of bools should be 0 and 1, but memory that is shared with other libraries may have any. Each one that is not 0
// is true, and counts once: positions in memory are sums of these.
inline bool is_true(uint8_t byte) { return byte != 0; }

constexpr size_t kWorthIt = 1 << 16;
// Bytes that are skipped together if none is true, and those whose positions are written together.
constexpr size_t kBlock = 32, kWord = 8;

// The positions of the bits of each byte, lowest first, then zeros.
struct Positions {
  uint32_t of[256][kWord] = {};
  constexpr Positions() {
    for (size_t bits = 0; bits < 256; ++bits)
      for (size_t bit = 0, count = 0; bit < kWord; ++bit)
        if (bits >> bit & 1) of[bits][count++] = uint32_t(bit);
  }
};
constexpr Positions kPositions;

// 1 in each byte that is not 0.
inline uint64_t true_bytes(uint64_t word) {
  constexpr uint64_t kLow = 0x7F7F7F7F7F7F7F7F;
  return (((word & kLow) + kLow) | word) >> 7 & 0x0101010101010101;
}

PHLOX_KERNELS_CLONED size_t count_true(const uint8_t* mask, size_t length) {
  size_t all = 0, i = 0;
  while (i < length) {
    // So many elements are counted in 16 bits, many to a vector.
    const size_t end = std::min(length, i + 32768);
    uint16_t some = 0;
    for (; i < end; ++i) some = uint16_t(some + is_true(mask[i]));
    all += some;
  }
  return all;
}

// Writes the positions of the true elements from `begin` to `end`, at most `room`; returns how many. All positions of a word
// are written, and the next word's behind those of its true elements: there is nothing to guess for the processor.
template <typename P>
PHLOX_KERNELS_CLONED size_t write_places(const uint8_t* mask, size_t begin, size_t end, P* out, size_t room) {
  size_t count = 0, i = begin;
  for (; i + kBlock <= end && count + kBlock <= room; i += kBlock) {
    uint64_t words[kBlock / kWord];
    std::memcpy(words, mask + i, kBlock);
    if ((words[0] | words[1] | words[2] | words[3]) == 0) continue;
    for (size_t k = 0; k < kBlock / kWord; ++k) {
      const uint64_t ones = true_bytes(words[k]);
      const uint32_t* positions = kPositions.of[ones * 0x0102040810204080 >> 56];  // a bit of each byte
      PHLOX_KERNELS_NOT_UNROLLED
      for (size_t j = 0; j < kWord; ++j) out[count + j] = P(i + k * kWord + positions[j]);
      count += ones * 0x0101010101010101 >> 56;  // the sum of the bytes
    }
  }
  for (; i < end && count < room; ++i)
    if (is_true(mask[i])) out[count++] = P(i);
  return count;
}

template <typename P>
void places_of(Threads& threads, const uint8_t* mask, P* out, size_t rows, size_t length, size_t size) {
  const size_t parts = rows >= threads.count() ? 1 : std::min(threads.count(), length / kWorthIt + 1);
  auto begin = [=](size_t part) { return length * part / parts; };
  auto row_of = [=](const size_t* starts, size_t row, size_t part) {
    const size_t start = std::min(starts ? starts[part] : 0, size);
    // A part has no room beyond its own elements, as the next one writes there at the same time.
    const size_t room = starts && part + 1 < parts ? std::min(starts[part + 1], size) - start : size - start;
    const size_t count =
        write_places(mask + row * length, begin(part), begin(part + 1), out + row * size + start, room);
    if (part + 1 == parts) std::fill(out + row * size + start + count, out + (row + 1) * size, P(length));
  };
  if (parts == 1) return threads.run(rows, [&](size_t row) { row_of(nullptr, row, 0); });
  auto starts = memory<size_t>(parts);
  for (size_t row = 0; row < rows; ++row) {
    threads.run(parts, [&](size_t part) {
      starts[part] = count_true(mask + row * length + begin(part), begin(part + 1) - begin(part));
    });
    size_t before = 0;
    for (size_t part = 0; part < parts; ++part) before += std::exchange(starts[part], before);
    threads.run(parts, [&](size_t part) { row_of(starts.get(), row, part); });
  }
}

ffi::Error places(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) try {
  if (out->element_count() == 0) return ffi::Error::Success();
  if (x.element_type() != ffi::PRED || (out->element_type() != ffi::S32 && out->element_type() != ffi::S64))
    return refused("positions are those of true elements, as int32 or int64");
  if (x.dimensions().size() == 0 || out->dimensions().size() == 0) return refused("positions are those in rows");
  const size_t length = x.dimensions().back(), size = out->dimensions().back(), rows = out->element_count() / size;
  if (x.element_count() != rows * length) return refused("positions of a number of rows, and results of another");
  Threads threads(pool, x.element_count(), kWorthIt);
  auto mask = reinterpret_cast<const uint8_t*>(x.untyped_data());
  if (out->element_type() == ffi::S32)
    places_of(threads, mask, reinterpret_cast<int32_t*>(out->untyped_data()), rows, length, size);
  else
    places_of(threads, mask, reinterpret_cast<int64_t*>(out->untyped_data()), rows, length, size);
  return ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_places_1, phlox_kernels::places,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>());
