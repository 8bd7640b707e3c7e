// Sums of rows and of columns of floats, of their squares, and of their squared distances from the mean: eight numbers are
// added in the type of the elements, in pairs, and these sums in double precision. So the error of a sum of float32 does
// not grow with the number of its terms.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

// Columns are added a tile at a time, whose totals stay in the processor's nearest cache. A row is kLanes columns.
constexpr size_t kTile = 1024, kLanes = 8;
// Columns of which a tile is read twice have about so many elements in it, which stay in the second cache.
constexpr size_t kTwice = 1 << 16, kNarrow = 16;
// A turn has about so many elements, of which fewer take less time than to begin a turn. While a thread wakes, which takes
// as long as to add 200,000 elements, the caller takes the turns.
constexpr size_t kTurn = 1 << 16, kWorthIt = 1 << 19;
// The most parts of a column or of a long row, whose totals are added at the end. They do not depend on the threads.
constexpr size_t kMostParts = 64;

// What is added for the element `x` of a column.
struct Element {
  template <typename T>
  T operator()(T x, size_t) const {
    return x;
  }
};
struct Square {
  template <typename T>
  T operator()(T x, size_t) const {
    return x * x;
  }
};
// The squared distance from the middle of its column, or of the row.
template <typename T>
struct Distance {
  const T* __restrict middles;
  T operator()(T x, size_t column) const { return (x - middles[column]) * (x - middles[column]); }
};
template <typename T>
struct DistanceInRow {
  T middle;
  T operator()(T x, size_t) const { return (x - middle) * (x - middle); }
};

// Sets `totals` to the sums of `count` columns of `length` elements, `stride` elements from each other.
template <typename T, typename Term>
inline void add_columns(const T* __restrict in, size_t length, size_t stride, size_t count, Term term, double* __restrict totals) {
  std::fill_n(totals, count, 0.0);
  size_t i = 0;
  for (; i + 8 <= length; i += 8) {
    const T *a = in + i * stride, *b = a + 4 * stride;
    for (size_t j = 0; j < count; ++j) {
      const T first = (term(a[j], j) + term(a[stride + j], j)) + (term(a[2 * stride + j], j) + term(a[3 * stride + j], j));
      const T second = (term(b[j], j) + term(b[stride + j], j)) + (term(b[2 * stride + j], j) + term(b[3 * stride + j], j));
      totals[j] += first + second;
    }
  }
  for (; i < length; ++i)
    for (size_t j = 0; j < count; ++j) totals[j] += term(in[i * stride + j], j);
}

template <typename T, typename Term>
PHLOX_KERNELS_CLONED void add_tile(const T* in, size_t length, size_t stride, size_t count, Term term, double* totals) {
  add_columns(in, length, stride, count, term, totals);
}

// Sets `out` to the sums of `count` columns of at most eight elements, without a wider type.
template <typename T, typename Term>
PHLOX_KERNELS_CLONED void add_short_columns(const T* __restrict in, size_t length, size_t stride, size_t count, Term term,
                                            T* __restrict out) {
  for (size_t j = 0; j < count; ++j) out[j] = term(in[j], j) + T(0);  // 0 of a zero of either sign, as XLA's sum
  for (size_t i = 1; i < length; ++i)
    for (size_t j = 0; j < count; ++j) out[j] += term(in[i * stride + j], j);
}

// Sets `out` to the sums of `rows` rows of `length` elements.
template <typename T, typename Term, typename Out>
PHLOX_KERNELS_CLONED void add_whole_rows(const T* in, size_t rows, size_t length, Term term, Out* out) {
  for (size_t row = 0; row < rows; ++row, in += length) {
    double lanes[kLanes];
    add_columns(in, length / kLanes, kLanes, kLanes, term, lanes);
    for (size_t k = 0; k < length % kLanes; ++k) lanes[k] += term(in[length - length % kLanes + k], 0);
    fold<kLanes>(lanes, [](double a, double b) { return a + b; });
    out[row] = Out(lanes[0]);
  }
}

// Rows of `length` elements, or columns: those of `blocks` blocks, each with `length` rows of `stride` elements.
template <typename T>
struct Array {
  const T* in;
  size_t blocks, length, stride;

  size_t count() const { return blocks * stride; }
};

// `terms(row)` is what is added for the elements of a row.
template <typename T, typename Terms>
void add_rows(Threads& threads, Array<T> x, const Terms& terms, T* out) {
  const size_t rows = x.count(), parts = std::min(kMostParts, x.length / kTurn);
  if (parts > 1) {
    auto totals = memory<double>(rows * parts);
    threads.run(rows * parts, [&](size_t turn) {
      const size_t part = turn % parts, begin = x.length * part / parts, end = x.length * (part + 1) / parts;
      add_whole_rows(x.in + turn / parts * x.length + begin, 1, end - begin, terms(turn / parts), totals.get() + turn);
    });
    for (size_t row = 0; row < rows; ++row) {
      double total = 0;
      for (size_t part = 0; part < parts; ++part) total += totals[row * parts + part];
      out[row] = T(total);
    }
    return;
  }
  const size_t step = std::max<size_t>(1, kTurn / x.length);
  threads.run((rows + step - 1) / step, [&](size_t turn) {
    const size_t row = turn * step;
    add_whole_rows(x.in + row * x.length, std::min(step, rows - row), x.length, terms(row), out + row);
  });
}

// `terms(column)` is what is added for the elements of the columns from this one on.
template <typename T, typename Terms>
void add_blocks(Threads& threads, Array<T> x, const Terms& terms, T* out) {
  const size_t width = std::min(x.stride, kTile), tiles = (x.stride + kTile - 1) / kTile;
  const size_t parts = std::max<size_t>(1, std::min(kMostParts / (x.blocks * tiles), x.length * width / kTurn));
  const size_t turns = x.blocks * tiles * parts, count = x.count();
  const size_t step = parts > 1 ? 1 : std::max<size_t>(1, kTurn / (x.length * width));
  const bool is_short = x.length <= 8;
  auto totals = memory<double>(is_short ? 0 : parts * count);
  auto add = [&](size_t turn) {
    const size_t part = turn % parts, block = turn / parts / tiles, column = turn / parts % tiles * kTile;
    const size_t begin = x.length * part / parts & ~size_t(7);  // eight rows at a time, but for the last ones
    const size_t end = part + 1 < parts ? x.length * (part + 1) / parts & ~size_t(7) : x.length;
    const size_t first = block * x.stride + column, columns = std::min(kTile, x.stride - column);
    const T* in = x.in + (block * x.length + begin) * x.stride + column;
    if (is_short) return add_short_columns(in, x.length, x.stride, columns, terms(first), out + first);
    add_tile(in, end - begin, x.stride, columns, terms(first), totals.get() + part * count + first);
  };
  threads.run((turns + step - 1) / step, [&](size_t group) {
    for (size_t turn = group * step; turn < std::min(turns, (group + 1) * step); ++turn) add(turn);
  });
  if (is_short) return;
  for (size_t part = 1; part < parts; ++part)
    for (size_t i = 0; i < count; ++i) totals[i] += totals[part * count + i];
  for (size_t i = 0; i < count; ++i) out[i] = T(totals[i]);
}

// Sums of squared distances from the means of rows, each of which is in the cache when it is read again.
template <typename T>
void add_distances_in_rows(Threads& threads, Array<T> x, T* out) {
  const size_t rows = x.count(), step = std::max<size_t>(1, kTurn / x.length);
  threads.run((rows + step - 1) / step, [&](size_t turn) {
    for (size_t row = turn * step; row < std::min(rows, (turn + 1) * step); ++row) {
      const T* in = x.in + row * x.length;
      double total;
      add_whole_rows(in, 1, x.length, Element(), &total);
      add_whole_rows(in, 1, x.length, DistanceInRow<T>{T(total / double(x.length))}, out + row);
    }
  });
}

// The same of columns, in tiles that stay in the cache.
template <typename T>
void add_distances_in_columns(Threads& threads, Array<T> x, T* out) {
  const size_t width = std::clamp(kTwice / x.length, kNarrow, kTile) / kNarrow * kNarrow;
  const size_t tiles = (x.stride + width - 1) / width;
  threads.run(x.blocks * tiles, [&](size_t turn) {
    const size_t block = turn / tiles, column = turn % tiles * width, columns = std::min(width, x.stride - column);
    const T* in = x.in + block * x.length * x.stride + column;
    double totals[kTile];
    T middles[kTile];
    add_tile(in, x.length, x.stride, columns, Element(), totals);
    for (size_t j = 0; j < columns; ++j) middles[j] = T(totals[j] / double(x.length));
    add_tile(in, x.length, x.stride, columns, Distance<T>{middles}, totals);
    for (size_t j = 0; j < columns; ++j) out[block * x.stride + column + j] = T(totals[j]);
  });
}

// The same of few long rows or columns, of which the threads take parts: first all means, then all distances.
template <typename T>
void add_distances_in_parts(Threads& threads, Array<T> x, T* out) {
  auto middles = memory<T>(x.count());
  auto element = [](size_t) { return Element(); };
  x.stride == 1 ? add_rows(threads, x, element, middles.get()) : add_blocks(threads, x, element, middles.get());
  for (size_t i = 0; i < x.count(); ++i) middles[i] /= T(x.length);
  if (x.stride == 1) return add_rows(threads, x, [&](size_t row) { return DistanceInRow<T>{middles[row]}; }, out);
  add_blocks(threads, x, [&](size_t column) { return Distance<T>{middles.get() + column}; }, out);
}

template <typename T>
void add_distances(Threads& threads, Array<T> x, T* out) {
  const size_t width = std::min(x.stride, kTile);
  if (x.length * width >= 2 * kTurn && x.count() < kMostParts) return add_distances_in_parts(threads, x, out);
  x.stride == 1 ? add_distances_in_rows(threads, x, out) : add_distances_in_columns(threads, x, out);
}

template <typename T>
void add(Threads& threads, Array<T> x, int64_t term, T* out) {
  auto of = [&](auto one) {
    auto terms = [=](size_t) { return one; };
    x.stride == 1 ? add_rows(threads, x, terms, out) : add_blocks(threads, x, terms, out);
  };
  if (term == 0) return of(Element());
  if (term == 1) return of(Square());
  add_distances(threads, x, out);
}

// `inner`: how many elements of the result come from neighbours, element for element. `term`: what is added, 0 for the
// elements, 1 for their squares, 2 for their squared distances from the mean.
ffi::Error sum(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out, int64_t inner, int64_t term) try {
  if (out->element_count() == 0) return ffi::Error::Success();
  const size_t count = out->element_count(), length = x.element_count() / count, stride = inner;
  if (x.element_count() != count * length || length == 0 || inner <= 0 || count % stride != 0)
    return refused("sums of rows or columns, of which each has elements");
  if (out->element_type() != x.element_type()) return refused("sums have the type of the operand");
  if (term < 0 || term > 2) return refused("sums of elements, squares or squared distances");
  Threads threads(pool, x.element_count(), kWorthIt);
  auto of = [&](auto* in) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(in)>>;
    add(threads, Array<T>{in, count / stride, length, stride}, term, static_cast<T*>(out->untyped_data()));
  };
  if (x.element_type() == ffi::F32)
    of(static_cast<const float*>(x.untyped_data()));
  else if (x.element_type() == ffi::F64)
    of(static_cast<const double*>(x.untyped_data()));
  else
    return refused("sums of float32 and float64");
  return ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_sum_2, phlox_kernels::sum,
                      .Arg<xla::ffi::AnyBuffer>()
                          .Ret<xla::ffi::AnyBuffer>()
                          .Attr<int64_t>("inner")
                          .Attr<int64_t>("term"));
