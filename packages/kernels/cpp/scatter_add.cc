// Rows added to an array at the rows that indices name, or one number for all of them: histograms, sums of segments, gradients of lookups.
//
// Updates of a row are added in their order, so that sums of floats have the bits of one loop over all updates. Integers may
// be added in any order, and threads divide their updates.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

constexpr size_t kWorthIt = 1 << 17;

// Indices of 32 or 64 bits. Those that name no row are larger than all rows: negative ones, too.
struct Indices {
  const void* data;
  bool wide;
  size_t operator[](size_t i) const {
    return wide ? size_t(static_cast<const int64_t*>(data)[i]) : size_t(int64_t(static_cast<const int32_t*>(data)[i]));
  }
};

template <typename T>
PHLOX_KERNELS_CLONED void add_wide_rows(T* out, Indices indices, const T* updates, size_t rows, size_t width,
                                        size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const size_t row = indices[i];
    if (row >= rows) continue;
    T* to = out + row * width;
    const T* from = updates + i * width;
    for (size_t j = 0; j < width; ++j) to[j] = T(to[j] + from[j]);
  }
}

// Adds rows of one element; with kSame all updates are the first one. Four updates at equal indices are added in a
// register: to read what was just written takes longer than an addition, and indices are often sorted.
template <bool kSame, typename T, typename I>
void add_elements(T* out, const I* indices, const T* updates, size_t rows, size_t begin, size_t end) {
  auto update = [=](size_t i) { return updates[kSame ? 0 : i]; };
  auto add = [=](size_t row, size_t i) {
    if (row < rows) out[row] = T(out[row] + update(i));
  };
  size_t i = begin;
  for (; i + 4 <= end; i += 4) {
    const size_t a(indices[i]), b(indices[i + 1]), c(indices[i + 2]), d(indices[i + 3]);
    if (((a ^ b) | (b ^ c) | (c ^ d)) == 0) {
      if (a < rows) out[a] = T(T(T(T(out[a] + update(i)) + update(i + 1)) + update(i + 2)) + update(i + 3));
      continue;
    }
    add(a, i);
    add(b, i + 1);
    add(c, i + 2);
    add(d, i + 3);
  }
  for (; i < end; ++i) add(size_t(indices[i]), i);
}

// Elements that are integers are added in parts with sums of their own, if there are many for each row.
template <bool kSame, typename T, typename I>
void add_all_elements(Threads& threads, T* out, const I* indices, const T* updates, size_t rows, size_t count) {
  const size_t parts = std::is_integral_v<T> && rows * 8 <= count ? threads.count() : 1;
  if (parts == 1) return add_elements<kSame>(out, indices, updates, rows, 0, count);
  auto sums = memory<T>((parts - 1) * rows);
  threads.run(parts, [&](size_t part) {
    T* to = part == 0 ? out : sums.get() + (part - 1) * rows;
    if (part > 0) std::fill_n(to, rows, T(0));
    add_elements<kSame>(to, indices, updates, rows, count * part / parts, count * (part + 1) / parts);
  });
  for (size_t part = 0; part + 1 < parts; ++part)
    for (size_t i = 0; i < rows; ++i) out[i] = T(out[i] + sums[part * rows + i]);
}

template <typename T>
void add_rows(Threads& threads, void* out, Indices indices, const void* updates, size_t rows, size_t width, size_t count,
              bool same) {
  auto to = static_cast<T*>(out);
  auto from = static_cast<const T*>(updates);
  if (width == 1) {
    auto add = [&](auto* at) {
      if (same)
        add_all_elements<true>(threads, to, at, from, rows, count);
      else
        add_all_elements<false>(threads, to, at, from, rows, count);
    };
    return indices.wide ? add(static_cast<const int64_t*>(indices.data))
                        : add(static_cast<const int32_t*>(indices.data));
  }
  add_wide_rows(to, indices, from, rows, width, count);
}

ffi::Error scatter_add(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer indices, ffi::AnyBuffer updates,
                       ffi::Result<ffi::AnyBuffer> out) try {
  if (out->element_type() != x.element_type() || updates.element_type() != x.element_type() ||
      out->element_count() != x.element_count() || x.dimensions().size() == 0)
    return refused("sums have the type and the shape of the operand, and updates its type");
  if (indices.element_type() != ffi::S32 && indices.element_type() != ffi::S64)
    return refused("indices are int32 or int64");
  if (x.element_count() == 0) return ffi::Error::Success();
  const size_t rows = x.dimensions()[0], width = x.element_count() / rows, count = indices.element_count();
  const bool same = width == 1 && updates.element_count() == 1;
  if (!same && updates.element_count() != count * width) return refused("there is one index for each row of the updates");
  if (out->untyped_data() != x.untyped_data()) std::memcpy(out->untyped_data(), x.untyped_data(), x.size_bytes());
  Threads threads(pool, count * width, kWorthIt);
  const Indices at{indices.untyped_data(), indices.element_type() == ffi::S64};
  auto add = [&](auto zero) {
    add_rows<decltype(zero)>(threads, out->untyped_data(), at, updates.untyped_data(), rows, width, count, same);
    return ffi::Error::Success();
  };
  switch (x.element_type()) {
    case ffi::S32:
    case ffi::U32:
      return add(uint32_t(0));
    case ffi::S64:
    case ffi::U64:
      return add(uint64_t(0));
    case ffi::F32:
      return add(float(0));
    case ffi::F64:
      return add(double(0));
    default:
      return refused("sums at indices are of numbers of 32 or 64 bits");
  }
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_scatter_add_1, phlox_kernels::scatter_add,
                      .Arg<xla::ffi::AnyBuffer>()
                          .Arg<xla::ffi::AnyBuffer>()
                          .Arg<xla::ffi::AnyBuffer>()
                          .Ret<xla::ffi::AnyBuffer>());
