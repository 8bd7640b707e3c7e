// Products of many small matrices of float32, in pairs: rows of a product are sums of rows of the right matrix in registers.
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

constexpr size_t kMost = 16;
// A turn has about so many multiplications; to wake a thread takes as long as more of them.
constexpr size_t kTurn = 1 << 17, kWorthIt = 1 << 20;

struct Sizes {
  size_t rows, depth, columns;
};

// `kRows` rows of a product, computed with `kWidth` columns: those beyond the matrices are read and written, too.
template <size_t kRows, size_t kWidth>
inline void multiply_rows(const float* left, const float* right, Sizes n, size_t stride, float* out) {
  float sums[kRows][kWidth] = {};
  for (size_t k = 0; k < n.depth; ++k)
    for (size_t i = 0; i < kRows; ++i) {
      const float factor = left[i * n.depth + k];
      PHLOX_KERNELS_NOT_UNROLLED
      for (size_t j = 0; j < kWidth; ++j) sums[i][j] += factor * right[k * stride + j];
    }
  for (size_t i = 0; i < kRows; ++i) std::memcpy(out + i * n.columns, sums[i], sizeof sums[i]);
}

// One product: four rows at a time, whose sums do not wait for each other.
template <size_t kWidth>
inline void multiply(const float* left, const float* right, Sizes n, size_t stride, float* out) {
  size_t i = 0;
  for (; i + 4 <= n.rows; i += 4) multiply_rows<4, kWidth>(left + i * n.depth, right, n, stride, out + i * n.columns);
  for (; i < n.rows; ++i) multiply_rows<1, kWidth>(left + i * n.depth, right, n, stride, out + i * n.columns);
}

// The rows that a product writes beyond are those of the next one, which is computed later. The last one has room.
template <size_t kWidth>
PHLOX_KERNELS_CLONED void multiply_all(const float* left, const float* right, Sizes n, size_t count, float* out) {
  const size_t steps[] = {n.rows * n.depth, n.depth * n.columns, n.rows * n.columns};
  for (size_t i = 0; i + 1 < count; ++i, left += steps[0], right += steps[1], out += steps[2])
    multiply<kWidth>(left, right, n, n.columns, out);
  float factors[kMost * kWidth] = {}, product[kMost * kMost + kWidth];
  for (size_t k = 0; k < n.depth; ++k) std::copy_n(right + k * n.columns, n.columns, factors + k * kWidth);
  multiply<kWidth>(left, factors, n, kWidth, product);
  std::copy_n(product, steps[2], out);
}

ffi::Error small_products(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> left, ffi::Buffer<ffi::F32> right,
                          ffi::Result<ffi::Buffer<ffi::F32>> out) try {
  const auto l = left.dimensions(), r = right.dimensions(), o = out->dimensions();
  const size_t rank = l.size();
  if (rank < 2 || r.size() != rank || o.size() != rank) return refused("arrays of matrices");
  for (size_t i = 0; i + 2 < rank; ++i)
    if (l[i] != r[i] || l[i] != o[i]) return refused("as many left matrices as right ones and products");
  const Sizes n{size_t(l[rank - 2]), size_t(l[rank - 1]), size_t(r[rank - 1])};
  if (size_t(r[rank - 2]) != n.depth || size_t(o[rank - 2]) != n.rows || size_t(o[rank - 1]) != n.columns)
    return refused("matrices that can be multiplied");
  if (std::max({n.rows, n.depth, n.columns}) > kMost || std::min(n.rows, n.depth) * n.columns < kMost)
    return refused("small matrices, which have as many elements as the widest row");
  const size_t size = n.rows * n.columns, count = out->element_count() / size;
  const size_t step = std::max<size_t>(1, kTurn / (size * n.depth));
  Threads threads(pool, count * size * n.depth, kWorthIt);
  const float *a = left.typed_data(), *b = right.typed_data();
  float* to = out->typed_data();
  threads.run((count + step - 1) / step, [=](size_t turn) {
    const size_t begin = turn * step, some = std::min(step, count - begin);
    (n.columns <= 4 ? multiply_all<4> : n.columns <= 8 ? multiply_all<8> : multiply_all<kMost>)(
        a + begin * n.rows * n.depth, b + begin * n.depth * n.columns, n, some, to + begin * size);
  });
  return ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_small_products_1, phlox_kernels::small_products,
                      .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                          .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                          .Ret<xla::ffi::Buffer<xla::ffi::F32>>());
