// Running sums, products, maxima and minima along an axis of an array.
//
// A sum of one row is a chain in which each addition waits for the one before. So a row has as many chains as a vector has
// lanes: each result is the one kLanes elements before it, combined with the elements since then. Columns have a chain
// each. Chains of float32 are kept in double: no digits are lost along them, however long they are.
//
// Results are those of one chain of float32 from the first element to the last, but for the digits. That chain never
// returns from infinity, nor a product from zero, while those of double do. So a chain goes on from such a result itself.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

// The least number of elements for which another thread is woken, and that a turn has.
constexpr size_t kWorthIt = 1 << 16, kTurn = 1 << 13;

// Values of the attribute `operation`.
enum Operation : int64_t { kSum = 0, kProduct = 1, kMaximum = 2, kMinimum = 3 };

// Chains of float32 are of double. Integers wrap around: those of 8 and 16 bits are the low bits of 32.
template <typename T>
using ChainOf = std::conditional_t<std::is_same_v<T, float>, double, std::conditional_t<sizeof(T) < 4, uint32_t, T>>;

// An operation has the types of its elements (In) and of its chains; the neutral element; `load` and `store`, which make
// elements of chains of elements of the array, and results of them; and `next`, which combines two of them, or two vectors
// of them. kEnds: whether there are results, `ends`, of which the chain of float32 makes no other number.
template <typename T>
struct Sum {
  using In = T;
  using Chain = ChainOf<T>;
  // Not 0.0, which would make 0.0 of a sum of -0.0 only.
  static constexpr Chain kStart = std::is_floating_point_v<T> ? Chain(-0.0) : Chain(0);
  static constexpr bool kEnds = std::is_floating_point_v<T>;
  static Chain load(T x) { return x; }
  static T store(Chain chain) { return T(chain); }
  static bool ends(T result) { return !(std::abs(result) <= std::numeric_limits<T>::max()); }
  template <typename C>
  static C next(C a, C b) {
    return a + b;
  }
};

template <typename T>
struct Product {
  using In = T;
  using Chain = ChainOf<T>;
  static constexpr Chain kStart = 1;
  static constexpr bool kEnds = std::is_floating_point_v<T>;
  static Chain load(T x) { return x; }
  static T store(Chain chain) { return T(chain); }
  static bool ends(T result) { return !(std::abs(result) <= std::numeric_limits<T>::max()) || result == 0; }
  template <typename C>
  static C next(C a, C b) {
    return a * b;
  }
};

// Floats become integers that order alike, -0.0 below 0.0, and nan beyond all others: once a nan, always a nan. Integers
// need not be compared with themselves, and it does not matter which of two equal ones stays. Minima are the maxima of
// numbers whose bits are all flipped.
template <typename T>
struct Extremum {
  using In = T;
  using Chain = std::conditional_t<std::is_floating_point_v<T>, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>, T>;
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
  template <typename C>
  static C next(C a, C b) {
    return a > b ? a : b;
  }
};

// Computes a chain again after its first result that is an end, in the type of the elements. Returns whether there is one.
template <typename Op, typename T = typename Op::In>
bool run_from_end(const T* in, T* out, ptrdiff_t length, ptrdiff_t stride) {
  ptrdiff_t i = 0;
  while (i < length && !Op::ends(out[i * stride])) ++i;
  if (i == length) return false;
  for (T state = out[i * stride]; ++i < length;) out[i * stride] = state = Op::next(state, in[i * stride]);
  return true;
}

// Rows are computed a tile at a time, which stays in the processor's nearest cache.
constexpr size_t kTile = 64, kVectorBytes = 32;

template <typename Op>
class Row {
  using T = typename Op::In;
  using Chain = typename Op::Chain;
  static constexpr size_t kLanes = kVectorBytes / sizeof(Chain);
  typedef Chain Vector __attribute__((vector_size(kVectorBytes)));

 public:
  explicit Row(Op op) : op_(op) { go_on_from(Op::kStart); }

  // The next kTile results.
  void run(const T* in, T* __restrict out) {
    for (size_t i = 0; i < kTile; ++i) elements_[kLanes + i] = op_.load(in[i]);
    Chain results[kTile];
    for (size_t i = 0; i < kTile; ++i) {
      const Chain* since = elements_ + i + 1;
      Chain combined = since[0];
      for (size_t k = 1; k < kLanes; ++k) combined = Op::next(combined, since[k]);
      results[i] = combined;
    }
    for (size_t i = 0; i < kTile; i += kLanes) {
      Vector combined;
      std::memcpy(&combined, results + i, sizeof combined);
      chains_ = Op::next(chains_, combined);
      std::memcpy(results + i, &chains_, sizeof chains_);
    }
    unsigned ends = 0;
    for (size_t i = 0; i < kTile; ++i) {
      const T result = out[i] = op_.store(results[i]);
      if constexpr (Op::kEnds) ends |= Op::ends(result);
    }
    std::copy_n(elements_ + kTile, kLanes, elements_);
    if constexpr (Op::kEnds)
      if (ends && !ended_ && run_from_end<Op>(in, out, kTile, 1)) {
        ended_ = true;
        go_on_from(op_.load(out[kTile - 1]));
      }
  }

 private:
  void go_on_from(Chain state) {
    std::fill_n(elements_, kLanes, Op::kStart);
    for (size_t k = 0; k < kLanes; ++k) chains_[k] = state;
  }

  Op op_;
  Vector chains_;                    // the last results
  Chain elements_[kLanes + kTile];  // those of the tile, behind the last ones of the tile before
  bool ended_ = false;
};

// A reversed row goes from the last element to the first.
template <typename Op, typename T = typename Op::In>
PHLOX_KERNELS_CLONED void scan_row(Op op, const T* in, T* out, size_t length, bool reverse) {
  Row<Op> row(op);
  T elements[kTile] = {}, results[kTile];
  size_t done = 0;
  for (; done + kTile <= length; done += kTile) {
    if (!reverse) {
      row.run(in + done, out + done);
      continue;
    }
    const size_t begin = length - kTile - done;
    for (size_t i = 0; i < kTile; ++i) elements[i] = in[begin + kTile - 1 - i];
    row.run(elements, results);
    for (size_t i = 0; i < kTile; ++i) out[begin + i] = results[kTile - 1 - i];
  }
  const size_t rest = length - done;
  for (size_t i = 0; i < rest; ++i) elements[i] = in[reverse ? rest - 1 - i : done + i];
  if (rest) row.run(elements, results);
  for (size_t i = 0; i < rest; ++i) out[reverse ? rest - 1 - i : done + i] = results[i];
}

// So many columns are computed side by side, of a few elements of each at a time.
constexpr size_t kMostColumns = 512, kLeastColumns = 64;
constexpr ptrdiff_t kStep = 16;

// `count` columns of `length` elements, `stride` elements from each other; a negative one goes from the last row to the
// first.
template <typename Op, typename T = typename Op::In, typename Chain = typename Op::Chain>
PHLOX_KERNELS_CLONED void scan_columns(Op op, const T* in, T* out, ptrdiff_t length, ptrdiff_t stride, size_t count) {
  Chain chains[kMostColumns];
  bool ended[kMostColumns] = {};
  std::fill_n(chains, count, Op::kStart);
  for (ptrdiff_t begin = 0; begin < length; begin += kStep) {
    const ptrdiff_t end = std::min(begin + kStep, length);
    unsigned ends = 0;
    for (ptrdiff_t i = begin; i < end; ++i) {
      const T* __restrict x = in + i * stride;
      T* __restrict y = out + i * stride;
      for (size_t j = 0; j < count; ++j) {
        chains[j] = Op::next(chains[j], op.load(x[j]));
        const T result = y[j] = op.store(chains[j]);
        if constexpr (Op::kEnds) ends |= Op::ends(result);
      }
    }
    if constexpr (Op::kEnds)
      for (size_t j = 0; ends && j < count; ++j)
        if (!ended[j] && run_from_end<Op>(in + begin * stride + j, out + begin * stride + j, end - begin, stride)) {
          ended[j] = true;
          chains[j] = op.load(out[(end - 1) * stride + j]);
        }
  }
}

// The operand and the result of a call: `blocks` blocks, each with `length` rows of `stride` elements.
struct Call {
  const void* in;
  void* out;
  size_t blocks, length, stride;
  bool reverse;
};

template <typename Op, typename T = typename Op::In>
bool scan_with(Op op, Threads& threads, const Call& call) {
  const T* in = static_cast<const T*>(call.in);
  T* out = static_cast<T*>(call.out);
  const size_t blocks = call.blocks, length = call.length, stride = call.stride;
  const bool reverse = call.reverse;
  if (stride == 1) {
    const size_t rows = std::max<size_t>(1, kTurn / length);
    threads.run((blocks + rows - 1) / rows, [=](size_t turn) {
      const size_t begin = turn * rows, end = std::min(blocks, begin + rows);
      for (size_t i = begin; i < end; ++i) {
        // The processor fetches memory ahead in the direction of the elements.
        const size_t row = reverse ? begin + end - 1 - i : i;
        scan_row(op, in + row * length, out + row * length, length, reverse);
      }
    });
    return true;
  }
  const size_t width = std::clamp(stride / threads.count(), kLeastColumns, kMostColumns);
  const size_t tiles = (stride + width - 1) / width, first = reverse ? (length - 1) * stride : 0;
  threads.run(blocks * tiles, [=](size_t turn) {
    const size_t column = turn % tiles * width, start = turn / tiles * length * stride + first + column;
    const ptrdiff_t step = reverse ? -ptrdiff_t(stride) : ptrdiff_t(stride);
    scan_columns(op, in + start, out + start, length, step, std::min(width, stride - column));
  });
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

ffi::Error scan(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out, int64_t axis,
                int64_t operation, int64_t reverse) {
  const auto shape = x.dimensions();
  if (axis < 0 || size_t(axis) >= shape.size()) return refused("running operations are along an axis of the operand");
  if (out->element_count() != x.element_count() || out->element_type() != x.element_type())
    return refused("running operations have results of the type of the operand");
  if (x.element_count() == 0) return ffi::Error::Success();
  Threads threads(pool, x.element_count(), kWorthIt);
  const size_t length = shape[axis];
  size_t stride = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) stride *= shape[i];
  const size_t blocks = x.element_count() / (length * stride);
  const Call call{x.untyped_data(), out->untyped_data(), blocks, length, stride, reverse != 0};
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
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_scan_2, phlox_kernels::scan,
                      .Arg<xla::ffi::AnyBuffer>()
                          .Ret<xla::ffi::AnyBuffer>()
                          .Attr<int64_t>("axis")
                          .Attr<int64_t>("operation")
                          .Attr<int64_t>("reverse"));
