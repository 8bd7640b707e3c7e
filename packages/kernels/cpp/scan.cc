// Running sums, products, maxima and minima along the rows of an array.
//
// A sum of one row is a chain in which each addition waits for the one before. Eight chains take turns, of as many rows or
// of as many parts of one row, so that the processor always has one to go on with. Chains of float32 are kept in double:
// no digits are lost along them, however long the rows are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

constexpr size_t kChains = 8;
// The least number of elements for which another thread is woken.
constexpr size_t kWorthIt = 1 << 16;

// Values of the attribute `operation`.
enum Operation : int64_t { kSum = 0, kProduct = 1, kMaximum = 2, kMinimum = 3 };

// Integers wrap around, so their sums and products are those of unsigned ones.
template <typename T>
struct Sum {
  using In = T;
  using Chain = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static constexpr Chain kStart = 0;
  static Chain next(Chain chain, Chain x) { return Chain(chain + x); }
};

template <typename T>
struct Product {
  using In = T;
  using Chain = std::conditional_t<std::is_same_v<T, float>, double, T>;
  static constexpr Chain kStart = 1;
  // 1u: products of 16 bits would be signed, and overflow.
  static Chain next(Chain chain, Chain x) { return Chain(1u * chain * x); }
};

// Once a nan, always a nan. Operators that do not branch, as the processor cannot guess what a chain does next.
template <typename T>
struct Maximum {
  using In = T;
  using Chain = T;
  static constexpr T kStart = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                   : std::numeric_limits<T>::lowest();
  static T next(T chain, T x) { return ((x > chain) | (x != x)) ? x : chain; }
};

template <typename T>
struct Minimum {
  using In = T;
  using Chain = T;
  static constexpr T kStart =
      std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
  static T next(T chain, T x) { return ((x < chain) | (x != x)) ? x : chain; }
};

// Elements of each chain are read and written a tile at a time: rows whose lengths are powers of two would push each other
// out of the processor's cache if one element of each was read in turn.
constexpr size_t kTile = 32;

// All chains have the same length. Reversed chains go from the last element to the first.
template <typename Op, bool kReverse, size_t kCount, typename T = typename Op::In, typename Chain = typename Op::Chain>
inline void run_tiles(const T* const* in, T* const* out, const Chain* chains, size_t length) {
  Chain c[kCount], tile[kCount][kTile];
  for (size_t k = 0; k < kCount; ++k) c[k] = chains[k];
  for (size_t done = 0; done < length; done += kTile) {
    const size_t width = std::min(kTile, length - done), at = kReverse ? length - done - width : done;
    for (size_t k = 0; k < kCount; ++k)
      for (size_t i = 0; i < width; ++i) tile[k][i] = Chain(in[k][at + i]);
    for (size_t i = 0; i < width; ++i)
      for (size_t k = 0; k < kCount; ++k) {
        Chain& x = tile[k][kReverse ? width - 1 - i : i];
        x = c[k] = Op::next(c[k], x);
      }
    for (size_t k = 0; k < kCount; ++k)
      for (size_t i = 0; i < width; ++i) out[k][at + i] = T(tile[k][i]);
  }
}

template <typename Op, bool kReverse, typename T = typename Op::In, typename Chain = typename Op::Chain>
PHLOX_KERNELS_CLONED void run_chains(const T* const* in, T* const* out, const Chain* chains, size_t length) {
  run_tiles<Op, kReverse, kChains>(in, out, chains, length);
}

template <typename Op, bool kReverse, typename T = typename Op::In, typename Chain = typename Op::Chain>
PHLOX_KERNELS_CLONED void run_chain(const T* in, T* out, Chain chain, size_t length) {
  run_tiles<Op, kReverse, 1>(&in, &out, &chain, length);
}

// What a chain over all elements comes to.
template <typename Op, typename T = typename Op::In, typename Chain = typename Op::Chain>
PHLOX_KERNELS_CLONED Chain total(const T* in, size_t length) {
  constexpr size_t kLanes = 32;
  Chain c[kLanes];
  std::fill_n(c, kLanes, Op::kStart);
  size_t i = 0;
  for (; i + kLanes <= length; i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) c[k] = Op::next(c[k], Chain(in[i + k]));
  Chain all = Op::kStart;
  for (; i < length; ++i) all = Op::next(all, Chain(in[i]));
  for (size_t k = 0; k < kLanes; ++k) all = Op::next(all, c[k]);
  return all;
}

// One row, in parts beside each other: after their totals, each part has chains of its own.
template <typename Op, bool kReverse, typename T = typename Op::In, typename Chain = typename Op::Chain>
void scan_row(Threads& threads, size_t parts, const T* in, T* out, size_t length) {
  const size_t chains = parts * kChains, step = length / chains, rest = length - chains * step;
  // In the direction of the scan the rest comes last.
  const size_t first = kReverse ? rest : 0, last = kReverse ? 0 : chains * step;
  auto start = [=](size_t i) { return first + (kReverse ? chains - 1 - i : i) * step; };
  auto totals = memory<Chain>(chains);
  threads.run(parts, [=, t = totals.get()](size_t part) {
    for (size_t i = part * kChains; i < (part + 1) * kChains; ++i) t[i] = total<Op>(in + start(i), step);
  });
  Chain before = Op::kStart;
  for (size_t i = 0; i < chains; ++i) before = Op::next(std::exchange(totals[i], before), before);
  threads.run(parts, [=, t = totals.get()](size_t part) {
    const T* from[kChains];
    T* to[kChains];
    for (size_t k = 0; k < kChains; ++k) {
      from[k] = in + start(part * kChains + k);
      to[k] = out + start(part * kChains + k);
    }
    run_chains<Op, kReverse>(from, to, t + part * kChains, step);
  });
  run_chain<Op, kReverse>(in + last, out + last, before, rest);
}

template <typename Op, bool kReverse, typename T = typename Op::In, typename Chain = typename Op::Chain>
void scan_rows(Threads& threads, const T* in, T* out, size_t rows, size_t length) {
  if (length >= kWorthIt && rows < threads.count() * kChains) {
    const size_t parts = std::min(threads.count(), length / kWorthIt + 1);
    for (size_t row = 0; row < rows; ++row)
      scan_row<Op, kReverse>(threads, parts, in + row * length, out + row * length, length);
    return;
  }
  const size_t groups = rows / kChains;
  threads.run(groups + rows % kChains, [&](size_t turn) {
    if (turn < groups) {
      const T* from[kChains];
      T* to[kChains];
      Chain chains[kChains];
      for (size_t k = 0; k < kChains; ++k) {
        from[k] = in + (turn * kChains + k) * length;
        to[k] = out + (turn * kChains + k) * length;
        chains[k] = Op::kStart;
      }
      return run_chains<Op, kReverse>(from, to, chains, length);
    }
    const size_t row = groups * kChains + turn - groups;
    scan_row<Op, kReverse>(threads, 1, in + row * length, out + row * length, length);
  });
}

template <template <typename> class Op, typename T>
void scan_typed(Threads& threads, ffi::AnyBuffer x, ffi::AnyBuffer out, size_t rows, size_t length, bool reverse) {
  auto from = reinterpret_cast<const T*>(x.untyped_data());
  auto to = reinterpret_cast<T*>(out.untyped_data());
  if (reverse)
    scan_rows<Op<T>, true>(threads, from, to, rows, length);
  else
    scan_rows<Op<T>, false>(threads, from, to, rows, length);
}

// Sums and products: of float32, and of integers as unsigned ones.
template <template <typename> class Op, typename... Args>
bool scan_numbers(ffi::DataType type, Args&&... args) {
  switch (type) {
    case ffi::S8:
    case ffi::U8:
      scan_typed<Op, uint8_t>(args...);
      return true;
    case ffi::S16:
    case ffi::U16:
      scan_typed<Op, uint16_t>(args...);
      return true;
    case ffi::S32:
    case ffi::U32:
      scan_typed<Op, uint32_t>(args...);
      return true;
    case ffi::S64:
    case ffi::U64:
      scan_typed<Op, uint64_t>(args...);
      return true;
    case ffi::F32:
      scan_typed<Op, float>(args...);
      return true;
    default:
      return false;
  }
}

template <template <typename> class Op, typename... Args>
bool scan_extrema(ffi::DataType type, Args&&... args) {
  switch (type) {
    case ffi::S32:
      scan_typed<Op, int32_t>(args...);
      return true;
    case ffi::S64:
      scan_typed<Op, int64_t>(args...);
      return true;
    case ffi::F32:
      scan_typed<Op, float>(args...);
      return true;
    case ffi::F64:
      scan_typed<Op, double>(args...);
      return true;
    default:
      return false;
  }
}

ffi::Error scan(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out, int64_t operation,
                int64_t reverse) try {
  if (x.element_count() == 0) return ffi::Error::Success();
  Threads threads(pool, x.element_count(), kWorthIt);
  const size_t length = x.dimensions().back(), rows = x.element_count() / length;
  auto with = [&](auto&& scanned) { return scanned(x.element_type(), threads, x, *out, rows, length, reverse); };
  bool done = false;
  switch (operation) {
    case kSum:
      done = with([](auto&&... args) { return scan_numbers<Sum>(args...); });
      break;
    case kProduct:
      done = with([](auto&&... args) { return scan_numbers<Product>(args...); });
      break;
    case kMaximum:
      done = with([](auto&&... args) { return scan_extrema<Maximum>(args...); });
      break;
    case kMinimum:
      done = with([](auto&&... args) { return scan_extrema<Minimum>(args...); });
      break;
  }
  if (done) return ffi::Error::Success();
  return ffi::Error::InvalidArgument("phlox_kernels: no running operation of this name for elements of this type");
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_scan_1, phlox_kernels::scan,
                      .Arg<xla::ffi::AnyBuffer>()
                          .Ret<xla::ffi::AnyBuffer>()
                          .Attr<int64_t>("operation")
                          .Attr<int64_t>("reverse"));
