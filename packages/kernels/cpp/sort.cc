// The functions that compiled programs call: sorted elements, and positions of the elements in sorted order.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "handler.h"
#include "network.h"
#include "order.h"
#include "parallel.h"
#include "radix.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

// What is computed of each row; `Short` and `Long` are what is sorted in place of the elements of short and of long rows.
// kCounted: whether equal keys have equal results, so that keys may be counted. Values: the elements themselves.
template <typename Order>
struct Values {
  Order order;
  using Word = typename Order::Word;
  using Out = Word;
  using Short = Word;
  using Long = Word;
  static constexpr bool kInNetwork = true, kCounted = true;
  static constexpr int kLow = 0, kHigh = 8 * sizeof(Word);
  bool lossy(Word bits) const { return order.lossy(bits); }
  void restore(const Word* in, Word* out, size_t length, size_t stride) const {
    order.restore(in, out, length, stride);
  }
  Word pack(Word bits, size_t, Word) const { return order.key(bits); }
  Word unpack(Word key) const { return order.bits(key); }
};

// Positions: those of the elements, in stable order. A key and its position share an integer where they fit.
template <typename Order>
struct Positions {
  Order order;
  using Word = typename Order::Word;
  using Out = uint32_t;
  using Short = std::conditional_t<sizeof(Word) <= 2, uint32_t, uint64_t>;
  using Long = std::conditional_t<sizeof(Word) <= 4, uint64_t, Keyed>;
  static constexpr bool kInNetwork = sizeof(Word) <= 4, kCounted = false;
  static constexpr int kLow = kInNetwork ? 32 : 0, kHigh = kLow + 8 * sizeof(Word);
  static bool lossy(Word) { return false; }
  static void restore(const Word*, uint32_t*, size_t, size_t) {}
  template <typename E>
  E pack(Word bits, size_t i, E) const {
    return E(order.key(bits)) << 4 * sizeof(E) | E(i);
  }
  Keyed pack(Word bits, size_t i, Keyed) const { return {order.key(bits), uint32_t(i)}; }
  template <typename E>
  static uint32_t unpack(E x) {
    return x & ((E(1) << 4 * sizeof(E)) - 1);
  }
  static uint32_t unpack(Keyed x) { return x.position; }
};

// The rows of an array along one of its dimensions.
struct Rows {
  size_t length, stride = 1, count = 1;
  Rows(ffi::Span<const int64_t> shape, size_t dimension) : length(shape[dimension]) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (i != dimension) count *= shape[i];
      if (i > dimension) stride *= shape[i];
    }
  }
  size_t start(size_t row) const { return row / stride * stride * length + row % stride; }
};

// So many elements of each row are packed before those of the next row: their lines stay in the nearest cache.
constexpr size_t kPacked = 64;

// Sorts as many rows as a line has lanes, from row `first` on; where there are fewer, the last one fills the lanes.
template <typename Kind, typename Word = typename Kind::Word, typename Out = typename Kind::Out>
PHLOX_KERNELS_CLONED void sort_short(Kind kind, const Rows& rows, size_t first, const Word* in, Out* out) {
  using E = typename Kind::Short;
  constexpr size_t kCount = kLanes<E>;
  size_t used = std::min(kCount, rows.count - first), start[kCount];
  for (size_t lane = 0; lane < kCount; ++lane) start[lane] = rows.start(first + std::min(lane, used - 1));
  bool adjacent = used == kCount && start[kCount - 1] - start[0] == kCount - 1;
  auto lines = memory<Line<E>>(rows.length);
  bool lossy = false;
  auto load = [&](Word bits, size_t i, E& to) {
    lossy |= kind.lossy(bits);
    to = kind.pack(bits, i, E());
  };
  // f(lane, i) for all elements of the first `lanes` rows.
  auto each = [&](size_t lanes, auto f) {
    if (adjacent) {
      for (size_t i = 0; i < rows.length; ++i)
        for (size_t lane = 0; lane < kCount; ++lane) f(lane, i, start[0] + i * rows.stride + lane);
      return;
    }
    for (size_t begin = 0; begin < rows.length; begin += kPacked)
      for (size_t lane = 0; lane < lanes; ++lane)
        for (size_t i = begin; i < std::min(begin + kPacked, rows.length); ++i) f(lane, i, start[lane] + i * rows.stride);
  };
  each(kCount, [&](size_t lane, size_t i, size_t place) { load(in[place], i, lines[i].lanes[lane]); });
  sort_lanes(lines.get(), rows.length);
  each(used, [&](size_t lane, size_t i, size_t place) { out[place] = kind.unpack(lines[i].lanes[lane]); });
  if (lossy)
    for (size_t lane = 0; lane < used; ++lane)
      kind.restore(in + start[lane], out + start[lane], rows.length, rows.stride);
}

// Packs the elements of a row from `begin` to `end`; returns whether keys of some do not say which bits they came from.
template <typename Kind, typename Word, typename E>
PHLOX_KERNELS_CLONED bool pack_part(Kind kind, const Word* in, size_t stride, size_t begin, size_t end, E* to) {
  bool lossy = false;
  auto pack = [&](size_t i, Word bits) {
    lossy |= kind.lossy(bits);
    to[i] = kind.pack(bits, i, E());
  };
  if (stride == 1)
    for (size_t i = begin; i < end; ++i) pack(i, in[i]);
  else
    for (size_t i = begin; i < end; ++i) pack(i, in[i * stride]);
  return lossy;
}

// Writes the sorted row if its keys are close to each other; returns whether it did.
template <typename Kind, typename E, typename Out>
bool sorted_by_counts(Kind kind, Threads& threads, size_t parts, const E* keys, size_t length, size_t stride, Out* out) {
  if constexpr (!Kind::kCounted) {
    return false;
  } else {
    const Range<E> range = range_of(keys, length);
    if (size_t(range.high - range.low) >= std::min(kMostCounted, length)) return false;
    sort_by_counts(threads, parts, keys, length, range, [=](E key, size_t begin, size_t end) {
      const Out value = kind.unpack(key);
      if (stride == 1)
        std::fill(out + begin, out + end, value);
      else
        for (size_t i = begin; i < end; ++i) out[i * stride] = value;
    });
    return true;
  }
}

// Sorts one row, in `parts` parts beside each other.
template <typename Kind, typename Word = typename Kind::Word, typename Out = typename Kind::Out>
void sort_long(Kind kind, Threads& threads, size_t parts, const Rows& rows, size_t row, const Word* in, Out* out) {
  using E = typename Kind::Long;
  in += rows.start(row);
  out += rows.start(row);
  size_t length = rows.length, stride = rows.stride;
  auto packed = memory<E>(2 * length);  // one block: the C library keeps it, while it returns two to the system
  std::atomic<bool> any_lossy{false};
  threads.run(parts, [=, to = packed.get(), &any_lossy](size_t part) {
    if (pack_part(kind, in, stride, length * part / parts, length * (part + 1) / parts, to)) any_lossy = true;
  });
  if (!sorted_by_counts(kind, threads, parts, packed.get(), length, stride, out)) {
    E* sorted = radix_sort<Kind::kLow, Kind::kHigh>(threads, parts, packed.get(), packed.get() + length, length);
    threads.run(parts, [=](size_t part) {
      for (size_t i = length * part / parts; i < length * (part + 1) / parts; ++i)
        out[i * stride] = kind.unpack(sorted[i]);
    });
  }
  if (any_lossy) kind.restore(in, out, length, stride);
}

// In longer rows digits are faster than the network, whose work for each element grows; so are they if most lanes are unused.
constexpr size_t kLongestInNetwork = 4096;
// Two threads take 0.9 of the time of one for a row of 33,000 elements and 0.7 for one of 100,000; half of this part
// gains nothing more.
constexpr size_t kLeastPart = 1 << 15;
constexpr size_t kWorthIt = 1 << 14;

template <typename Kind, typename Word = typename Kind::Word, typename Out = typename Kind::Out>
void sort_rows(Kind kind, Threads& threads, const Rows& rows, const Word* in, Out* out) {
  constexpr size_t kCount = kLanes<typename Kind::Short>;
  if constexpr (Kind::kInNetwork) {
    if (rows.length <= kLongestInNetwork && rows.count > kCount / 4) {
      size_t groups = (rows.count + kCount - 1) / kCount;
      return threads.run(groups, [&](size_t i) { sort_short(kind, rows, i * kCount, in, out); });
    }
  }
  if (rows.count >= threads.count())
    return threads.run(rows.count, [&](size_t i) { sort_long(kind, threads, 1, rows, i, in, out); });
  size_t parts = std::min(threads.count(), rows.length / kLeastPart + 1);
  for (size_t i = 0; i < rows.count; ++i) sort_long(kind, threads, parts, rows, i, in, out);
}

// --- handlers ----------------------------------------------------------------------------------------------

template <template <typename> class Kind>
ffi::Error sorted(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out, int64_t dimension) {
  if (dimension < 0 || size_t(dimension) >= x.dimensions().size() || out->element_count() != x.element_count())
    return refused("sorting is along a dimension of the operand, with as many results");
  if (x.element_count() == 0) return ffi::Error::Success();
  Threads threads(pool, x.element_count(), kWorthIt);
  Rows rows(x.dimensions(), dimension);
  // Positions, and the counts of digits, have 32 bits.
  if (rows.length > std::numeric_limits<uint32_t>::max()) return refused("rows have fewer than 2^32 elements");
  bool fits = true;
  auto error = with_order(x.element_type(), [&](auto order) {
    using K = Kind<decltype(order)>;
    fits = ffi::ByteWidth(out->element_type()) == sizeof(typename K::Out);
    if (!fits) return;
    auto in = reinterpret_cast<const typename K::Word*>(x.untyped_data());
    sort_rows(K{order}, threads, rows, in, reinterpret_cast<typename K::Out*>(out->untyped_data()));
  });
  return fits ? error : refused("sorted elements are as wide as the operand's, and positions have 32 bits");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_sort_1, phlox_kernels::sorted<phlox_kernels::Values>,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>().Attr<int64_t>("dimension"));
PHLOX_KERNELS_HANDLER(phlox_kernels_argsort_1, phlox_kernels::sorted<phlox_kernels::Positions>,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>().Attr<int64_t>("dimension"));
