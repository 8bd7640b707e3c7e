// Products of matrices of int8, summed in int32.
//
// Processors with VNNI multiply four neighbouring bytes, of which one factor is unsigned, and add them to a sum of 32 bits.
// The left factors are therefore taken as a + 128, and 128 times the sums of the right ones are subtracted at the end. Sums
// are computed modulo 2**32, as XLA's.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

#ifdef PHLOX_KERNELS_HAS_CLONES
#include <immintrin.h>
#endif

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

// A group of rows and a panel of columns are two vectors of sums for each row: with their factors, 32 registers.
constexpr size_t kRows = 12, kColumns = 32, kDepth = 4;
// Groups of rows in a turn, and about the number of products in it.
constexpr size_t kBand = 4, kTurn = 1 << 22;

struct Product {
  size_t rows, depth, columns;
  bool turned;  // the right matrix is (columns, depth)
  const int8_t *left, *right;
  int32_t* out;
  size_t groups() const { return (rows + kRows - 1) / kRows; }
  size_t panels() const { return (columns + kColumns - 1) / kColumns; }
  size_t steps() const { return (depth + kDepth - 1) / kDepth; }
};

// A group of rows as (step, row, byte of the step), as a + 128.
void pack_group(const Product& p, size_t group, uint8_t* to) {
  const size_t whole = p.depth / kDepth;
  for (size_t row = 0; row < kRows; ++row) {
    const int8_t* from = p.left + std::min(group * kRows + row, p.rows - 1) * p.depth;
    for (size_t step = 0; step < p.steps(); ++step) {
      uint32_t bytes = 0;
      if (step < whole)
        std::memcpy(&bytes, from + step * kDepth, kDepth);
      else
        std::memcpy(&bytes, from + step * kDepth, p.depth % kDepth);
      bytes ^= 0x80808080;
      std::memcpy(to + (step * kRows + row) * kDepth, &bytes, kDepth);
    }
  }
}

// A panel of columns as (step, column, byte of the step), with zeros beyond the matrix, and 128 times the sums of columns.
PHLOX_KERNELS_CLONED void pack_panel(const Product& p, size_t panel, int8_t* to, int32_t* sums) {
  const size_t first = panel * kColumns, used = std::min(kColumns, p.columns - first);
  uint32_t totals[kColumns] = {};
  for (size_t step = 0; step < p.steps(); ++step, to += kColumns * kDepth) {
    const size_t begin = step * kDepth, deep = std::min(kDepth, p.depth - begin);
    if (used < kColumns || deep < kDepth) std::memset(to, 0, kColumns * kDepth);
    if (p.turned) {
      for (size_t c = 0; c < used; ++c) {
        const int8_t* from = p.right + (first + c) * p.depth + begin;
        if (deep == kDepth)
          std::memcpy(to + c * kDepth, from, kDepth);
        else
          std::memcpy(to + c * kDepth, from, deep);
      }
    } else {
      int8_t rows[kDepth][kColumns] = {};
      for (size_t d = 0; d < deep; ++d) {
        const int8_t* from = p.right + (begin + d) * p.columns + first;
        if (used == kColumns)
          std::memcpy(rows[d], from, kColumns);
        else
          std::memcpy(rows[d], from, used);
      }
      for (size_t c = 0; c < kColumns; ++c) {
        to[c * kDepth] = rows[0][c];
        to[c * kDepth + 1] = rows[1][c];
        to[c * kDepth + 2] = rows[2][c];
        to[c * kDepth + 3] = rows[3][c];
      }
    }
    for (size_t c = 0; c < kColumns; ++c)
      totals[c] += uint32_t(to[c * kDepth] + to[c * kDepth + 1] + to[c * kDepth + 2] + to[c * kDepth + 3]);
  }
  for (size_t c = 0; c < kColumns; ++c) sums[c] = int32_t(totals[c] * 128);
}

// Sums of a group and a panel, less `sums`.
void multiply(size_t steps, const uint8_t* group, const int8_t* panel, const int32_t* sums, int32_t (*out)[kColumns]) {
  uint32_t totals[kRows][kColumns];
  for (size_t row = 0; row < kRows; ++row)
    for (size_t c = 0; c < kColumns; ++c) totals[row][c] = -uint32_t(sums[c]);
  for (size_t step = 0; step < steps; ++step, group += kRows * kDepth, panel += kColumns * kDepth)
    for (size_t row = 0; row < kRows; ++row)
      for (size_t c = 0; c < kColumns; ++c)
        for (size_t d = 0; d < kDepth; ++d)
          totals[row][c] += uint32_t(int32_t(group[row * kDepth + d]) * int32_t(panel[c * kDepth + d]));
  std::memcpy(out, totals, sizeof totals);
}

#ifdef PHLOX_KERNELS_HAS_CLONES
typedef int32_t Sums __attribute__((vector_size(64)));

// The loops over rows are unrolled, so that the sums stay in registers.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) void multiply_by_vnni(
    size_t steps, const uint8_t* group, const int8_t* panel, const int32_t* sums, int32_t (*out)[kColumns]) {
  Sums totals[kRows][2] = {}, less[2];
  std::memcpy(less, sums, sizeof less);
  for (size_t step = 0; step < steps; ++step, group += kRows * kDepth, panel += kColumns * kDepth) {
    const __m512i low = _mm512_loadu_si512(panel), high = _mm512_loadu_si512(panel + 64);
    for (size_t row = 0; row < kRows; ++row) {
      int32_t bytes;
      std::memcpy(&bytes, group + row * kDepth, sizeof bytes);
      const __m512i factor = _mm512_set1_epi32(bytes);
      totals[row][0] = Sums(_mm512_dpbusd_epi32(__m512i(totals[row][0]), factor, low));
      totals[row][1] = Sums(_mm512_dpbusd_epi32(__m512i(totals[row][1]), factor, high));
    }
  }
  for (size_t row = 0; row < kRows; ++row)
    for (size_t half = 0; half < 2; ++half) {
      const Sums total = totals[row][half] - less[half];
      std::memcpy(out[row] + 16 * half, &total, sizeof total);
    }
}
#endif

auto best_multiply() {
#ifdef PHLOX_KERNELS_HAS_CLONES
  if (__builtin_cpu_supports("avx512vnni")) return multiply_by_vnni;
#endif
  return multiply;
}

void multiply_all(const Product& p, ffi::ThreadPool pool) {
  const size_t group = p.steps() * kRows * kDepth, panel = p.steps() * kColumns * kDepth;
  auto left = memory<uint8_t>(p.groups() * group);
  auto right = memory<int8_t>(p.panels() * panel);
  auto sums = memory<int32_t>(p.panels() * kColumns);
  Threads threads(pool, p.rows * p.depth * p.columns, kTurn);
  threads.run(p.groups() + p.panels(), [&](size_t i) {
    if (i < p.groups())
      pack_group(p, i, left.get() + i * group);
    else
      pack_panel(p, i - p.groups(), right.get() + (i - p.groups()) * panel, sums.get() + (i - p.groups()) * kColumns);
  });
  const size_t bands = (p.groups() + kBand - 1) / kBand;
  const size_t wide = std::max<size_t>(1, kTurn / (kBand * kRows * kColumns * p.depth));  // panels of a turn
  const size_t turns = (p.panels() + wide - 1) / wide;
  const auto product = best_multiply();
  threads.run(bands * turns, [&](size_t turn) {
    const size_t first_group = turn / turns * kBand, first_panel = turn % turns * wide;
    for (size_t j = first_panel; j < std::min(first_panel + wide, p.panels()); ++j)
      for (size_t i = first_group; i < std::min(first_group + kBand, p.groups()); ++i) {
        int32_t out[kRows][kColumns];
        product(p.steps(), left.get() + i * group, right.get() + j * panel, sums.get() + j * kColumns, out);
        const size_t used = std::min(kColumns, p.columns - j * kColumns);
        for (size_t row = 0; row < std::min(kRows, p.rows - i * kRows); ++row)
          std::memcpy(p.out + (i * kRows + row) * p.columns + j * kColumns, out[row], used * sizeof(int32_t));
      }
  });
}

// The left matrix is (rows, depth), the right one (depth, columns), or (columns, depth) if `turned`.
ffi::Error byte_products(ffi::ThreadPool pool, ffi::Buffer<ffi::S8> left, ffi::Buffer<ffi::S8> right,
                         ffi::Result<ffi::Buffer<ffi::S32>> out, int64_t turned) try {
  const auto a = left.dimensions(), b = right.dimensions(), to = out->dimensions();
  if (a.size() != 2 || b.size() != 2 || to.size() != 2) return refused("matrices have two axes");
  const Product p{size_t(a[0]), size_t(a[1]), size_t(b[turned ? 0 : 1]), turned != 0, left.typed_data(),
                  right.typed_data(), out->typed_data()};
  if (size_t(b[turned ? 1 : 0]) != p.depth || size_t(to[0]) != p.rows || size_t(to[1]) != p.columns)
    return refused("the axes of a product do not fit each other");
  if (p.rows == 0 || p.columns == 0) return ffi::Error::Success();
  if (p.depth == 0)
    std::fill_n(p.out, p.rows * p.columns, 0);
  else
    multiply_all(p, pool);
  return ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_byte_products_1, phlox_kernels::byte_products,
                      .Arg<xla::ffi::Buffer<xla::ffi::S8>>()
                          .Arg<xla::ffi::Buffer<xla::ffi::S8>>()
                          .Ret<xla::ffi::Buffer<xla::ffi::S32>>()
                          .Attr<int64_t>("turned"));
