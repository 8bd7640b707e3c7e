// Products of a few rows of float32 with a matrix of float32, bfloat16 or int8, which become float32 in registers.
//
// What limits them is memory. The order of the sums does not depend on the number of threads.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

constexpr size_t kWorthIt = 1 << 16;
constexpr size_t kLanes = 8;
// Columns whose sums stay in the first cache.
constexpr size_t kMostBlock = 4096;
// Turns that threads can divide evenly, and the least number of rows in one of them.
constexpr size_t kTurns = 16, kLeastPart = 64;
// Rows of the matrix that are read side by side.
constexpr size_t kSide = 8;

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Integers __attribute__((vector_size(4 * kLanes)));

// Numbers of bfloat16, by their bits.
struct Brain {
  uint16_t bits;
};

inline Floats load(const float* from) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

// Loops instead of __builtin_convertvector, of which g++ 12 makes scalar instructions.
inline Floats load(const int8_t* from) {
  int32_t numbers[kLanes];
  for (size_t i = 0; i < kLanes; ++i) numbers[i] = from[i];
  Integers x;
  std::memcpy(&x, numbers, sizeof x);
  return __builtin_convertvector(x, Floats);
}

inline Floats load(const Brain* from) {
  uint32_t words[kLanes];
  for (size_t i = 0; i < kLanes; ++i) words[i] = uint32_t(from[i].bits) << 16;
  Floats x;
  std::memcpy(&x, words, sizeof x);
  return x;
}

template <typename T>
inline float number(T x) {
  return float(x);
}

inline float number(Brain x) {
  const uint32_t word = uint32_t(x.bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// Four rows share the conversion of a matrix of such numbers.
template <typename T>
constexpr bool kNarrow = sizeof(T) < sizeof(float);

// The operands and the result of a product.
template <typename T>
struct Product {
  float* out;
  const float* x;
  const T* matrix;
  size_t rows, length, width;
};

// Adds x[r, i] * matrix[i, j] to out[r, j], for kRows rows r, kSide rows i of the matrix, and the columns j from `begin` on.
template <size_t kRows, size_t kSide, typename T>
inline void add(const Product<T>& p, size_t r, size_t i, size_t begin, size_t end) {
  const T* matrix = p.matrix + i * p.width;
  const float* x = p.x + r * p.length + i;
  float* out = p.out + r * p.width;
  size_t j = begin;
  for (; j + kLanes <= end; j += kLanes) {
    Floats numbers[kSide];
    for (size_t side = 0; side < kSide; ++side) numbers[side] = load(matrix + side * p.width + j);
    for (size_t row = 0; row < kRows; ++row) {
      Floats sum = load(out + row * p.width + j);
      for (size_t side = 0; side < kSide; ++side) sum += x[row * p.length + side] * numbers[side];
      std::memcpy(out + row * p.width + j, &sum, sizeof sum);
    }
  }
  for (; j < end; ++j)
    for (size_t row = 0; row < kRows; ++row)
      for (size_t side = 0; side < kSide; ++side)
        out[row * p.width + j] += x[row * p.length + side] * number(matrix[side * p.width + j]);
}

template <size_t kSide, typename T>
inline void add_rows(const Product<T>& p, size_t i, size_t begin, size_t end) {
  size_t r = 0;
  if constexpr (kNarrow<T>)
    for (; r + 4 <= p.rows; r += 4) add<4, kSide>(p, r, i, begin, end);
  for (; r < p.rows; ++r) add<1, kSide>(p, r, i, begin, end);
}

// Columns of a product with a matrix whose rows belong to the elements of `x`, of which those from `first` to `last` count.
template <typename T>
PHLOX_KERNELS_CLONED void sum_rows(const Product<T>& p, size_t first, size_t last, size_t begin, size_t end) {
  for (size_t r = 0; r < p.rows; ++r) std::fill(p.out + r * p.width + begin, p.out + r * p.width + end, 0.0f);
  size_t i = first;
  for (; i + kSide <= last; i += kSide) add_rows<kSide>(p, i, begin, end);
  for (; i < last; ++i) add_rows<1>(p, i, begin, end);
}

// Threads read whole rows, as far as their sums stay in the first cache: memory is slow if it is read in pieces. Their sums
// are added in an order that depends on the shape alone.
template <typename T>
void multiply_by_columns(Threads& threads, const Product<T>& p) {
  const size_t blocks = (p.width + kMostBlock - 1) / kMostBlock, size = p.rows * p.width;
  const size_t parts = std::max<size_t>(std::min((kTurns + blocks - 1) / blocks, p.length / kLeastPart), 1);
  auto sums = memory<float>((parts - 1) * size);
  threads.run(parts * blocks, [&](size_t turn) {
    const size_t part = turn / blocks, begin = turn % blocks * kMostBlock;
    Product<T> partial = p;
    if (part > 0) partial.out = sums.get() + (part - 1) * size;
    sum_rows(partial, p.length * part / parts, p.length * (part + 1) / parts, begin, std::min(begin + kMostBlock, p.width));
  });
  for (size_t part = 0; part + 1 < parts; ++part)
    for (size_t i = 0; i < size; ++i) p.out[i] += sums[part * size + i];
}

// out[r, j] = the sum of x[r, i] * matrix[j, i], for kRows rows r, and kDots rows j of the matrix.
template <size_t kRows, size_t kDots, typename T>
inline void dot(const Product<T>& p, size_t r, size_t j) {
  const T* matrix = p.matrix + j * p.length;
  const float* x = p.x + r * p.length;
  Floats sums[kRows][kDots] = {};
  size_t i = 0;
  for (; i + kLanes <= p.length; i += kLanes) {
    Floats factors[kRows];
    for (size_t row = 0; row < kRows; ++row) factors[row] = load(x + row * p.length + i);
    for (size_t side = 0; side < kDots; ++side) {
      const Floats numbers = load(matrix + side * p.length + i);
      for (size_t row = 0; row < kRows; ++row) sums[row][side] += factors[row] * numbers;
    }
  }
  for (size_t row = 0; row < kRows; ++row)
    for (size_t side = 0; side < kDots; ++side) {
      float sum = 0;
      for (size_t lane = 0; lane < kLanes; ++lane) sum += sums[row][side][lane];
      for (size_t k = i; k < p.length; ++k) sum += x[row * p.length + k] * number(matrix[side * p.length + k]);
      p.out[(r + row) * p.width + j + side] = sum;
    }
}

// Eight sums at a time, which do not wait for each other.
template <size_t kRows, typename T>
inline void dots(const Product<T>& p, size_t r, size_t begin, size_t end) {
  constexpr size_t kDots = kSide / kRows;
  size_t j = begin;
  for (; j + kDots <= end; j += kDots) dot<kRows, kDots>(p, r, j);
  for (; j < end; ++j) dot<kRows, 1>(p, r, j);
}

// Columns of a product with a matrix whose rows belong to the elements of the result.
template <typename T>
PHLOX_KERNELS_CLONED void dot_rows(const Product<T>& p, size_t begin, size_t end) {
  for (size_t j = begin; j < end; j += kSide) {
    const size_t next = std::min(j + kSide, end);
    size_t r = 0;
    if constexpr (kNarrow<T>)
      for (; r + 4 <= p.rows; r += 4) dots<4>(p, r, j, next);
    for (; r < p.rows; ++r) dots<1>(p, r, j, next);
  }
}

template <typename T>
void multiply_by_rows(Threads& threads, const Product<T>& p) {
  const size_t block = std::max(p.width / (threads.count() * 4) / kSide * kSide, kSide);
  threads.run((p.width + block - 1) / block,
              [&](size_t turn) { dot_rows(p, turn * block, std::min((turn + 1) * block, p.width)); });
}

ffi::Error rows_times_matrix(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer matrix, ffi::Result<ffi::AnyBuffer> out,
                             int64_t contracted) try {
  if (x.element_type() != ffi::F32 || out->element_type() != ffi::F32) return refused("rows and their products are float32");
  if (x.dimensions().size() != 2 || matrix.dimensions().size() != 2 || out->dimensions().size() != 2)
    return refused("rows, a matrix and their products have two axes");
  if (contracted != 0 && contracted != 1) return refused("the contracted axis of a matrix is 0 or 1");
  const size_t rows = x.dimensions()[0], length = x.dimensions()[1], width = out->dimensions()[1];
  if (size_t(out->dimensions()[0]) != rows || size_t(matrix.dimensions()[contracted]) != length ||
      size_t(matrix.dimensions()[1 - contracted]) != width)
    return refused("the axes of a product do not fit each other");
  if (rows * width == 0) return ffi::Error::Success();
  Threads threads(pool, length * width, kWorthIt);
  auto call = [&](auto number) {
    using T = decltype(number);
    const Product<T> product{static_cast<float*>(out->untyped_data()), static_cast<const float*>(x.untyped_data()),
                             static_cast<const T*>(matrix.untyped_data()), rows, length, width};
    contracted == 1 ? multiply_by_rows(threads, product) : multiply_by_columns(threads, product);
    return ffi::Error::Success();
  };
  switch (matrix.element_type()) {
    case ffi::F32:
      return call(float());
    case ffi::BF16:
      return call(Brain());
    case ffi::S8:
      return call(int8_t());
    default:
      return refused("a matrix is of float32, bfloat16 or int8");
  }
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_rows_times_matrix_1, phlox_kernels::rows_times_matrix,
                      .Arg<xla::ffi::AnyBuffer>()
                          .Arg<xla::ffi::AnyBuffer>()
                          .Ret<xla::ffi::AnyBuffer>()
                          .Attr<int64_t>("contracted"));
