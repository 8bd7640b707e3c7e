// Sums of rows and of columns of floats: eight numbers are added in the type of the elements, in pairs, and these sums in
// double precision. So the error of a sum of float32 does not grow with the number of its terms.
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
// A turn has about so many elements, of which fewer take less time than to begin a turn. While a thread wakes, which takes
// as long as to add 200,000 elements, the caller takes the turns.
constexpr size_t kTurn = 1 << 16, kWorthIt = 1 << 18;
// The most parts of a column or of a long row, whose totals are added at the end. They do not depend on the threads.
constexpr size_t kMostParts = 64;

// Sets `totals` to the sums of `count` columns of `length` elements, `stride` elements from each other.
template <typename T>
inline void add_columns(const T* __restrict in, size_t length, size_t stride, size_t count, double* __restrict totals) {
  std::fill_n(totals, count, 0.0);
  size_t i = 0;
  for (; i + 8 <= length; i += 8) {
    const T *a = in + i * stride, *b = a + 4 * stride;
    for (size_t j = 0; j < count; ++j) {
      const T first = (a[j] + a[stride + j]) + (a[2 * stride + j] + a[3 * stride + j]);
      const T second = (b[j] + b[stride + j]) + (b[2 * stride + j] + b[3 * stride + j]);
      totals[j] += first + second;
    }
  }
  for (; i < length; ++i)
    for (size_t j = 0; j < count; ++j) totals[j] += in[i * stride + j];
}

template <typename T>
PHLOX_KERNELS_CLONED void add_tile(const T* in, size_t length, size_t stride, size_t count, double* totals) {
  add_columns(in, length, stride, count, totals);
}

// Sets `out` to the sums of `rows` rows of `length` elements.
template <typename T, typename Out>
PHLOX_KERNELS_CLONED void add_whole_rows(const T* in, size_t rows, size_t length, Out* out) {
  for (size_t row = 0; row < rows; ++row, in += length) {
    double lanes[kLanes];
    add_columns(in, length / kLanes, kLanes, kLanes, lanes);
    for (size_t k = 0; k < length % kLanes; ++k) lanes[k] += in[length - length % kLanes + k];
    fold<kLanes>(lanes, [](double a, double b) { return a + b; });
    out[row] = Out(lanes[0]);
  }
}

template <typename T>
void add_rows(Threads& threads, const T* in, size_t rows, size_t length, T* out) {
  const size_t parts = std::min(kMostParts, length / kTurn);
  if (parts > 1) {
    auto totals = memory<double>(rows * parts);
    threads.run(rows * parts, [&](size_t turn) {
      const size_t part = turn % parts, begin = length * part / parts, end = length * (part + 1) / parts;
      add_whole_rows(in + turn / parts * length + begin, 1, end - begin, totals.get() + turn);
    });
    for (size_t row = 0; row < rows; ++row) {
      double total = 0;
      for (size_t part = 0; part < parts; ++part) total += totals[row * parts + part];
      out[row] = T(total);
    }
    return;
  }
  const size_t step = std::max<size_t>(1, kTurn / length);
  threads.run((rows + step - 1) / step, [&](size_t turn) {
    const size_t row = turn * step;
    add_whole_rows(in + row * length, std::min(step, rows - row), length, out + row);
  });
}

// Columns of `blocks` blocks, each with `length` rows of `stride` elements.
template <typename T>
void add_blocks(Threads& threads, const T* in, size_t blocks, size_t length, size_t stride, T* out) {
  const size_t width = std::min(stride, kTile), tiles = (stride + kTile - 1) / kTile;
  const size_t parts = std::max<size_t>(1, std::min(kMostParts / (blocks * tiles), length * width / kTurn));
  const size_t turns = blocks * tiles * parts, count = blocks * stride;
  const size_t step = parts > 1 ? 1 : std::max<size_t>(1, kTurn / (length * width));
  auto totals = memory<double>(parts * count);
  auto add = [&](size_t turn) {
    const size_t part = turn % parts, block = turn / parts / tiles, column = turn / parts % tiles * kTile;
    const size_t begin = length * part / parts & ~size_t(7);  // eight rows at a time, but for the last ones
    const size_t end = part + 1 < parts ? length * (part + 1) / parts & ~size_t(7) : length;
    add_tile(in + (block * length + begin) * stride + column, end - begin, stride, std::min(kTile, stride - column),
             totals.get() + part * count + block * stride + column);
  };
  threads.run((turns + step - 1) / step, [&](size_t group) {
    for (size_t turn = group * step; turn < std::min(turns, (group + 1) * step); ++turn) add(turn);
  });
  for (size_t part = 1; part < parts; ++part)
    for (size_t i = 0; i < count; ++i) totals[i] += totals[part * count + i];
  for (size_t i = 0; i < count; ++i) out[i] = T(totals[i]);
}

// `inner`: how many elements of the result come from neighbours, element for element.
ffi::Error sum(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out, int64_t inner) try {
  if (out->element_count() == 0) return ffi::Error::Success();
  const size_t count = out->element_count(), length = x.element_count() / count, stride = inner;
  if (x.element_count() != count * length || length == 0 || inner <= 0 || count % stride != 0)
    return refused("sums of rows or columns, of which each has elements");
  if (out->element_type() != x.element_type()) return refused("sums have the type of the operand");
  Threads threads(pool, x.element_count(), kWorthIt);
  auto add = [&](auto* in) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(in)>>;
    T* to = static_cast<T*>(out->untyped_data());
    if (stride == 1) return add_rows(threads, in, count, length, to);
    add_blocks(threads, in, count / stride, length, stride, to);
  };
  if (x.element_type() == ffi::F32)
    add(static_cast<const float*>(x.untyped_data()));
  else if (x.element_type() == ffi::F64)
    add(static_cast<const double*>(x.untyped_data()));
  else
    return refused("sums of float32 and float64");
  return ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_sum_1, phlox_kernels::sum,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>().Attr<int64_t>("inner"));
