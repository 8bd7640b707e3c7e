// Running sums, products, maxima and minima along the rows of an array.
//
// A sum of one row is a chain in which each addition waits for the one before. Eight chains take turns, of as many rows or
// of as many parts of one row, so that the processor always has one to go on with. Chains of float32 are kept in double:
// no digits are lost along them, however long the rows are.
//
// Results do not depend on the division into chains: they are those of one chain of float32 from the first element to the
// last, but for the digits. That chain never returns from infinity, nor a product from zero, while those of double do. So
// a row that has such a result is computed again from there on, in float32.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// A double with an exponent of its own: fraction * 2^exponent. Products of parts of a row neither overflow nor vanish.
struct Scaled {
  double fraction;
  int64_t exponent;

  // Moves the exponent out of `fraction`. Zero, infinity and nan keep theirs.
  void normalize() {
    constexpr uint64_t kMask = 0x7FF, kBias = 1023;
    uint64_t bits;
    std::memcpy(&bits, &fraction, sizeof bits);
    const uint64_t power = (bits >> 52) & kMask;
    const bool number = power - 1 < kMask - 1;
    exponent += number ? int64_t(power - kBias) : 0;
    bits = number ? (bits & ~(kMask << 52)) | kBias << 52 : bits;
    std::memcpy(&fraction, &bits, sizeof bits);
  }
};

// Chains of float32 are of double.
template <typename T>
using ChainOf = std::conditional_t<std::is_same_v<T, float>, double, T>;

// An operation has the types of its elements (In), of its chains and of the totals of parts of a row; the neutral element;
// `load` and `store`, which make elements of chains of elements of the array, and results of them; `next`, which adds an
// element to a chain; `join`, which combines the totals of two neighbouring parts; and `chain`, which starts a chain after
// a part. kEnds: whether there are results, `ends`, of which the chain of float32 makes no other number.
template <typename T>
struct Sum {
  using In = T;
  using Chain = ChainOf<T>;
  using Total = Chain;
  // Not 0.0, which would make 0.0 of a sum of -0.0 only.
  static constexpr Chain kStart = std::is_floating_point_v<T> ? Chain(-0.0) : Chain(0);
  static constexpr bool kEnds = std::is_floating_point_v<T>;
  // Integers wrap around, so their sums and products are those of unsigned ones.
  template <typename C>
  static C next(C chain, C x) {
    return C(chain + x);
  }
  static Chain load(T x) { return x; }
  static T store(Chain chain) { return T(chain); }
  static bool ends(T result) { return !(std::abs(result) <= std::numeric_limits<T>::max()); }
  static Total join(Total a, Total b) { return next(a, b); }
  static Chain chain(Total total) { return total; }
};

template <typename T>
struct Product {
  using In = T;
  using Chain = ChainOf<T>;
  using Total = std::conditional_t<std::is_floating_point_v<T>, Scaled, T>;
  static constexpr Chain kStart = 1;
  static constexpr bool kEnds = std::is_floating_point_v<T>;
  // 1u: products of 16 bits would be signed, and overflow.
  template <typename C>
  static C next(C chain, C x) {
    return C(1u * chain * x);
  }
  static Chain load(T x) { return x; }
  static T store(Chain chain) { return T(chain); }
  static bool ends(T result) { return !(std::abs(result) <= std::numeric_limits<T>::max()) || result == 0; }
  static Total join(Total a, Total b) {
    if constexpr (!kEnds) {
      return next(a, b);
    } else {
      Scaled both{a.fraction * b.fraction, a.exponent + b.exponent};
      both.normalize();
      return both;
    }
  }
  static Chain chain(Total total) {
    if constexpr (!kEnds)
      return total;
    else  // beyond the range of doubles, where a result before is an end already
      return std::ldexp(total.fraction, int(std::clamp<int64_t>(total.exponent, -3000, 3000)));
  }
};

// Floats become integers that order alike, -0.0 below 0.0, and nan beyond all others: once a nan, always a nan. Integers
// need not be compared with themselves, and it does not matter which of two equal ones stays. Minima are the maxima of
// numbers whose bits are all flipped.
template <typename T>
struct Extremum {
  using In = T;
  using Chain = std::conditional_t<std::is_floating_point_v<T>, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>, T>;
  using Total = Chain;
  using Limits = std::numeric_limits<Chain>;
  static constexpr Chain kStart = Limits::min();
  static constexpr Chain kNan = Limits::max();
  static constexpr bool kEnds = false;
  Chain flipped;  // no bits for maxima, all bits for minima
  // Its own inverse: the bits of negative numbers but the sign change.
  static Chain mirrored(Chain bits) { return bits ^ (bits >> Limits::digits & Limits::max()); }
  Chain load(T x) const {
    if constexpr (!std::is_floating_point_v<T>) {
      return x ^ flipped;
    } else {
      Chain bits;
      std::memcpy(&bits, &x, sizeof bits);
      const Chain key = mirrored(bits) ^ flipped;
      return x != x ? kNan : key;
    }
  }
  T store(Chain key) const {
    if constexpr (!std::is_floating_point_v<T>) {
      return key ^ flipped;
    } else {
      const Chain bits = mirrored(key ^ flipped);
      T x;
      std::memcpy(&x, &bits, sizeof x);
      return key == kNan ? std::numeric_limits<T>::quiet_NaN() : x;
    }
  }
  static Chain next(Chain chain, Chain x) { return std::max(chain, x); }
  static Total join(Total a, Total b) { return next(a, b); }
  static Chain chain(Total total) { return total; }
};

// Elements of each chain are read and written a tile at a time: rows whose lengths are powers of two would push each other
// out of the processor's cache if one element of each was read in turn.
constexpr size_t kTile = 32;

// All chains have the same length. Reversed chains go from the last element to the first. Sets `ended` of each chain that
// has a result which is an end.
template <typename Op, typename T = typename Op::In, typename Chain = typename Op::Chain>
PHLOX_KERNELS_CLONED void run_chains(Op op, const T* const* in, T* const* out, const Chain* chains, size_t length,
                                     bool reverse, bool* ended) {
  Chain c[kChains], tile[kChains * kTile];
  for (size_t k = 0; k < kChains; ++k) c[k] = chains[k];
  for (size_t done = 0; done < length; done += kTile) {
    const size_t width = std::min(kTile, length - done), at = reverse ? length - done - width : done;
    for (size_t k = 0; k < kChains; ++k)
      for (size_t i = 0; i < width; ++i) tile[k * kTile + i] = op.load(in[k][at + i]);
    Chain* x = reverse ? tile + width - 1 : tile;
    for (size_t i = 0; i < width; ++i, x += reverse ? -1 : 1)
      for (size_t k = 0; k < kChains; ++k) x[k * kTile] = c[k] = Op::next(c[k], x[k * kTile]);
    for (size_t k = 0; k < kChains; ++k) {
      unsigned ends = 0;
      for (size_t i = 0; i < width; ++i) {
        const T result = out[k][at + i] = op.store(tile[k * kTile + i]);
        if constexpr (Op::kEnds) ends |= Op::ends(result);
      }
      if (ends) ended[k] = true;
    }
  }
}

// The few elements that are left of a row.
template <typename Op, typename T = typename Op::In, typename Chain = typename Op::Chain>
void run_chain(Op op, const T* in, T* out, Chain chain, size_t length, bool reverse, bool* ended) {
  for (size_t i = 0; i < length; ++i) {
    const size_t at = reverse ? length - 1 - i : i;
    chain = Op::next(chain, op.load(in[at]));
    const T result = out[at] = op.store(chain);
    if constexpr (Op::kEnds) *ended |= Op::ends(result);
  }
}

// Computes a row again after its first result that is an end, in the type of the elements.
template <typename Op, typename T = typename Op::In>
void run_from_end(const T* in, T* out, size_t length, bool reverse) {
  if constexpr (Op::kEnds) {
    auto at = [=](size_t i) { return reverse ? length - 1 - i : i; };
    size_t i = 0;
    while (i < length && !Op::ends(out[at(i)])) ++i;
    if (i == length) return;
    for (T state = out[at(i)]; ++i < length;) out[at(i)] = state = Op::next(state, in[at(i)]);
  }
}

// The result of a chain over all elements.
template <typename Op, typename T = typename Op::In, typename Chain = typename Op::Chain>
PHLOX_KERNELS_CLONED Chain total_of_chain(Op op, const T* in, size_t length) {
  constexpr size_t kLanes = 32;
  Chain c[kLanes];
  std::fill_n(c, kLanes, Op::kStart);
  size_t i = 0;
  for (; i + kLanes <= length; i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) c[k] = Op::next(c[k], op.load(in[i + k]));
  Chain all = Op::kStart;
  for (; i < length; ++i) all = Op::next(all, op.load(in[i]));
  for (size_t k = 0; k < kLanes; ++k) all = Op::next(all, c[k]);
  return all;
}

// The product of all elements, which are float32.
inline PHLOX_KERNELS_CLONED Scaled scaled_product(const float* in, size_t length) {
  // So many factors, each between 2^-149 and 2^128, leave the range of doubles in no order.
  constexpr size_t kLanes = 32, kFactors = 6;
  double fractions[kLanes];
  int64_t exponents[kLanes] = {};
  std::fill_n(fractions, kLanes, 1.0);
  auto normalize = [&](size_t k) {
    Scaled lane{fractions[k], exponents[k]};
    lane.normalize();
    fractions[k] = lane.fraction;
    exponents[k] = lane.exponent;
  };
  size_t i = 0;
  for (; i + kLanes * kFactors <= length; i += kLanes * kFactors) {
    for (size_t j = 0; j < kFactors; ++j)
      for (size_t k = 0; k < kLanes; ++k) fractions[k] *= in[i + j * kLanes + k];
    for (size_t k = 0; k < kLanes; ++k) normalize(k);
  }
  for (; i < length; ++i) {
    fractions[0] *= in[i];
    normalize(0);
  }
  Scaled all{1, 0};
  for (size_t k = 0; k < kLanes; ++k) all = Product<float>::join(all, {fractions[k], exponents[k]});
  return all;
}

template <typename Op, typename T = typename Op::In>
typename Op::Total total(Op op, const T* in, size_t length) {
  if constexpr (std::is_same_v<typename Op::Total, Scaled>)
    return scaled_product(in, length);
  else
    return total_of_chain(op, in, length);
}

template <typename Op>
typename Op::Total nothing() {
  if constexpr (std::is_same_v<typename Op::Total, Scaled>)
    return {Op::kStart, 0};
  else
    return Op::kStart;
}

// One row, in parts beside each other: after their totals, each part has chains of its own.
template <typename Op, typename T = typename Op::In, typename Chain = typename Op::Chain>
void scan_row(Op op, Threads& threads, size_t parts, const T* in, T* out, size_t length, bool reverse) {
  using Total = typename Op::Total;
  const size_t chains = parts * kChains, step = length / chains, rest = length - chains * step;
  // In the direction of the scan the rest comes last.
  const size_t first = reverse ? rest : 0, last = reverse ? 0 : chains * step;
  auto start = [=](size_t i) { return first + (reverse ? chains - 1 - i : i) * step; };
  auto totals = memory<Total>(chains);
  threads.run(parts, [=, t = totals.get()](size_t part) {
    for (size_t i = part * kChains; i < (part + 1) * kChains; ++i) t[i] = total(op, in + start(i), step);
  });
  Total before = nothing<Op>();
  for (size_t i = 0; i < chains; ++i) before = Op::join(before, std::exchange(totals[i], before));
  auto ended = memory<bool>(chains + 1);
  std::fill_n(ended.get(), chains + 1, false);
  threads.run(parts, [=, t = totals.get(), ended = ended.get()](size_t part) {
    const T* from[kChains];
    T* to[kChains];
    Chain starts[kChains];
    for (size_t k = 0; k < kChains; ++k) {
      from[k] = in + start(part * kChains + k);
      to[k] = out + start(part * kChains + k);
      starts[k] = Op::chain(t[part * kChains + k]);
    }
    run_chains(op, from, to, starts, step, reverse, ended + part * kChains);
  });
  run_chain(op, in + last, out + last, Op::chain(before), rest, reverse, &ended[chains]);
  if (std::any_of(ended.get(), ended.get() + chains + 1, [](bool end) { return end; }))
    run_from_end<Op>(in, out, length, reverse);
}

template <typename Op, typename T = typename Op::In, typename Chain = typename Op::Chain>
void scan_rows(Op op, Threads& threads, const T* in, T* out, size_t rows, size_t length, bool reverse) {
  if (length >= kWorthIt && rows < threads.count() * kChains) {
    const size_t parts = std::min(threads.count(), length / kWorthIt + 1);
    for (size_t row = 0; row < rows; ++row)
      scan_row(op, threads, parts, in + row * length, out + row * length, length, reverse);
    return;
  }
  const size_t groups = rows / kChains;
  threads.run(groups + rows % kChains, [&](size_t turn) {
    if (turn < groups) {
      const T* from[kChains];
      T* to[kChains];
      Chain chains[kChains];
      bool ended[kChains] = {};
      for (size_t k = 0; k < kChains; ++k) {
        from[k] = in + (turn * kChains + k) * length;
        to[k] = out + (turn * kChains + k) * length;
        chains[k] = Op::kStart;
      }
      run_chains(op, from, to, chains, length, reverse, ended);
      for (size_t k = 0; k < kChains; ++k)
        if (ended[k]) run_from_end<Op>(from[k], to[k], length, reverse);
      return;
    }
    const size_t row = groups * kChains + turn - groups;
    scan_row(op, threads, 1, in + row * length, out + row * length, length, reverse);
  });
}

// The operand and the result of a call.
struct Call {
  const void* in;
  void* out;
  size_t rows, length;
  bool reverse;
};

template <typename Op, typename T = typename Op::In>
bool scan_with(Op op, Threads& threads, const Call& call) {
  scan_rows(op, threads, static_cast<const T*>(call.in), static_cast<T*>(call.out), call.rows, call.length, call.reverse);
  return true;
}

// Sums and products: of float32, and of integers as unsigned ones. Returns whether there are such of `type`.
template <template <typename> class Op>
bool scan_numbers(ffi::DataType type, Threads& threads, const Call& call) {
  switch (type) {
    case ffi::S8:
    case ffi::U8:
      return scan_with(Op<uint8_t>(), threads, call);
    case ffi::S16:
    case ffi::U16:
      return scan_with(Op<uint16_t>(), threads, call);
    case ffi::S32:
    case ffi::U32:
      return scan_with(Op<uint32_t>(), threads, call);
    case ffi::S64:
    case ffi::U64:
      return scan_with(Op<uint64_t>(), threads, call);
    case ffi::F32:
      return scan_with(Op<float>(), threads, call);
    default:
      return false;
  }
}

bool scan_extrema(bool largest, ffi::DataType type, Threads& threads, const Call& call) {
  const int flipped = largest ? 0 : -1;
  switch (type) {
    case ffi::S32:
      return scan_with(Extremum<int32_t>{flipped}, threads, call);
    case ffi::S64:
      return scan_with(Extremum<int64_t>{flipped}, threads, call);
    case ffi::F32:
      return scan_with(Extremum<float>{flipped}, threads, call);
    case ffi::F64:
      return scan_with(Extremum<double>{flipped}, threads, call);
    default:
      return false;
  }
}

ffi::Error scan(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out, int64_t operation,
                int64_t reverse) try {
  if (x.dimensions().size() == 0 || out->element_count() != x.element_count() || out->element_type() != x.element_type())
    return refused("running operations are along rows, with results of the type of the operand");
  if (x.element_count() == 0) return ffi::Error::Success();
  Threads threads(pool, x.element_count(), kWorthIt);
  const size_t length = x.dimensions().back(), rows = x.element_count() / length;
  const Call call{x.untyped_data(), out->untyped_data(), rows, length, reverse != 0};
  bool done = false;
  switch (operation) {
    case kSum:
      done = scan_numbers<Sum>(x.element_type(), threads, call);
      break;
    case kProduct:
      done = scan_numbers<Product>(x.element_type(), threads, call);
      break;
    case kMaximum:
    case kMinimum:
      done = scan_extrema(operation == kMaximum, x.element_type(), threads, call);
      break;
  }
  if (done) return ffi::Error::Success();
  return refused("no running operation of this number for elements of this type");
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
