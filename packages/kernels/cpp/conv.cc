// Convolutions of images of float32: sums of products of windows of the image with a kernel.
//
// A group of pixels of the result and a panel of its channels are summed in registers. The parts of the image that a turn
// reads are copied with their padding, so that windows need no checks.
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

// A group is two vectors of channels, a panel, for some pixels. Their sums and factors fill the registers of a processor.
template <size_t lanes, size_t pixels>
struct Group {
  static constexpr size_t kLanes = lanes, kVectors = 2, kPanel = lanes * kVectors, kPixels = pixels;
  typedef float Floats __attribute__((vector_size(4 * lanes)));
};
using Narrow = Group<8, 6>;   // 16 registers, as AVX2 has
using Wide = Group<16, 12>;  // 32 registers of twice the width, as AVX-512 has

// A turn has about so many products, or terms of the kernel to pack. Fewer take less time than to begin a turn.
constexpr size_t kTurn = 1 << 21, kPacked = 1 << 8, kGroups = 8;

// Along one of the two axes of images: lengths of the image, the kernel and the result, and how windows lie.
struct Axis {
  size_t length, window, out, stride, dilation, low;
  // The number of elements, with padding, that `count` results read.
  size_t reach(size_t count) const { return (count - 1) * stride + (window - 1) * dilation + 1; }
};

struct Shape {
  size_t images, channels, outs;
  Axis rows, columns;
  size_t panels(size_t channels_of_panel) const { return (outs + channels_of_panel - 1) / channels_of_panel; }
  size_t terms() const { return rows.window * columns.window * channels; }
  size_t pixels_in() const { return rows.length * columns.length; }
  size_t pixels_out() const { return rows.out * columns.out; }
  size_t width() const { return columns.reach(columns.out) * channels; }  // of a row of the padded image
};

// Terms of the kernel from `begin` to `end` as panels of kPanel channels of the result; channels beyond the last are zero.
template <typename G>
void pack(const Shape& shape, const float* kernel, size_t begin, size_t end, float* packed) {
  constexpr size_t kPanel = G::kPanel;
  for (size_t panel = 0; panel < shape.panels(kPanel); ++panel) {
    const size_t channel = panel * kPanel, used = std::min(kPanel, shape.outs - channel);
    for (size_t term = begin; term < end; ++term) {
      float* to = packed + (panel * shape.terms() + term) * kPanel;
      std::memcpy(to, kernel + term * shape.outs + channel, used * sizeof(float));
      std::fill_n(to + used, kPanel - used, 0.0f);
    }
  }
}

// Copies the rows that the results from row `begin` to `end` of an image read, with zeros as padding.
void copy_padded(const Shape& shape, const float* image, size_t begin, size_t end, float* to) {
  const Axis &rows = shape.rows, &columns = shape.columns;
  const size_t width = columns.reach(columns.out), channels = shape.channels;
  const size_t first = std::min(columns.low, width), last = std::min(columns.low + columns.length, width);
  for (size_t i = 0; i < rows.reach(end - begin); ++i, to += width * channels) {
    const size_t row = begin * rows.stride + i;  // counted with the padding
    if (row < rows.low || row - rows.low >= rows.length || first == last) {
      std::fill_n(to, width * channels, 0.0f);
      continue;
    }
    std::fill_n(to, first * channels, 0.0f);
    std::memcpy(to + first * channels, image + (row - rows.low) * columns.length * channels,
                (last - first) * channels * sizeof(float));
    std::fill_n(to + last * channels, (width - last) * channels, 0.0f);
  }
}

// Sums of kPixels pixels, whose windows begin at `pixels`, for the channels of a panel.
template <typename G>
inline void sum_windows(const Shape& shape, const float* const* pixels, const float* panel,
                        typename G::Floats (*out)[G::kVectors]) {
  constexpr size_t kLanes = G::kLanes, kVectors = G::kVectors, kPanel = G::kPanel, kPixels = G::kPixels;
  using Floats = typename G::Floats;
  Floats sums[kPixels][kVectors] = {};
  // Neighbours in a window that are not dilated are neighbours in memory.
  const bool joined = shape.columns.dilation == 1;
  const size_t run = joined ? shape.columns.window * shape.channels : shape.channels;
  const size_t runs = joined ? 1 : shape.columns.window;
  for (size_t i = 0; i < shape.rows.window; ++i)
    for (size_t j = 0; j < runs; ++j) {
      const size_t start = i * shape.rows.dilation * shape.width() + j * shape.columns.dilation * shape.channels;
      for (size_t k = start; k < start + run; ++k, panel += kPanel) {
        Floats factors[kVectors];
        for (size_t v = 0; v < kVectors; ++v) std::memcpy(&factors[v], panel + v * kLanes, sizeof factors[v]);
        for (size_t pixel = 0; pixel < kPixels; ++pixel)
          for (size_t v = 0; v < kVectors; ++v) sums[pixel][v] += pixels[pixel][k] * factors[v];
      }
    }
  for (size_t pixel = 0; pixel < kPixels; ++pixel)
    for (size_t v = 0; v < kVectors; ++v) out[pixel][v] = sums[pixel][v];
}

// Results of the rows from `begin` to `end` of an image, of which `image` is the padded copy.
template <typename G>
PHLOX_KERNELS_CLONED void convolve(const Shape& shape, const float* image, const float* packed, size_t begin, size_t end,
                                   float* out) {
  constexpr size_t kPanel = G::kPanel, kPixels = G::kPixels;
  const size_t width = shape.columns.out, count = (end - begin) * width;
  const size_t step = shape.columns.stride * shape.channels, line = shape.rows.stride * shape.width();
  for (size_t panel = 0; panel < shape.panels(kPanel); ++panel) {
    const size_t channel = panel * kPanel, used = std::min(kPanel, shape.outs - channel);
    const float* row = image;
    size_t column = 0;
    for (size_t first = 0; first < count; first += kPixels) {
      const float* pixels[kPixels];
      for (size_t i = 0; i < kPixels; ++i) {
        pixels[i] = row + column * step;
        if (first + i + 1 >= count) continue;  // the last one again where there are none
        if (++column == width) column = 0, row += line;
      }
      typename G::Floats sums[kPixels][G::kVectors];
      sum_windows<G>(shape, pixels, packed + panel * shape.terms() * kPanel, sums);
      float* to = out + (begin * width + first) * shape.outs + channel;
      if (used == kPanel && count - first >= kPixels)  // without a call for each
        for (size_t i = 0; i < kPixels; ++i) std::memcpy(to + i * shape.outs, sums[i], sizeof sums[i]);
      else
        for (size_t i = 0; i < std::min(kPixels, count - first); ++i)
          std::memcpy(to + i * shape.outs, sums[i], used * sizeof(float));
    }
  }
}

// The bounds of numbers that come from attributes, and of the elements of a padded image: no product overflows.
constexpr size_t kMost = size_t(1) << 31, kMostElements = size_t(1) << 40;

bool fits(const Axis& axis) {
  for (size_t x : {axis.length, axis.window, axis.out, axis.stride, axis.dilation, axis.low + 1})
    if (x == 0 || x >= kMost) return false;
  return axis.reach(axis.out) < kMost;
}

bool fits(const Shape& shape) {
  if (shape.channels == 0 || !fits(shape.rows) || !fits(shape.columns)) return false;
  return shape.channels <= kMostElements / (shape.rows.reach(shape.rows.out) * shape.columns.reach(shape.columns.out));
}

template <typename G>
void convolve_all(const Shape& shape, ffi::ThreadPool pool, const float* x, const float* kernel, float* out) {
  const size_t products = shape.columns.out * shape.outs * shape.terms();  // of a row of results
  // A band also has many groups of pixels, the last of which may not be full.
  const size_t least = (kGroups * G::kPixels + shape.columns.out - 1) / shape.columns.out;
  const size_t band = std::min(shape.rows.out, std::max(least, kTurn / std::max<size_t>(1, products)));
  const size_t bands = (shape.rows.out + band - 1) / band;
  auto packed = memory<float>(shape.panels(G::kPanel) * shape.terms() * G::kPanel);
  Threads threads(pool, shape.images * bands, 2);
  threads.run((shape.terms() + kPacked - 1) / kPacked, [&](size_t turn) {
    pack<G>(shape, kernel, turn * kPacked, std::min((turn + 1) * kPacked, shape.terms()), packed.get());
  });
  threads.run(shape.images * bands, [&](size_t turn) {
    const size_t image = turn / bands, begin = turn % bands * band, end = std::min(begin + band, shape.rows.out);
    auto padded = memory<float>(shape.rows.reach(end - begin) * shape.width());
    copy_padded(shape, x + shape.pixels_in() * shape.channels * image, begin, end, padded.get());
    convolve<G>(shape, padded.get(), packed.get(), begin, end, out + shape.pixels_out() * shape.outs * image);
  });
}

// Images are (image, row, column, channel), kernels (row, column, channel, channel of the result). `low`: the zeros before
// the first row and column; how many are behind the last ones follows from the shapes.
ffi::Error conv(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer kernel, ffi::Result<ffi::AnyBuffer> out,
                int64_t column_dilation, int64_t column_low, int64_t column_stride, int64_t row_dilation, int64_t row_low,
                int64_t row_stride) try {
  for (ffi::DataType type : {x.element_type(), kernel.element_type(), out->element_type()})
    if (type != ffi::F32) return refused("convolutions are of float32");
  const auto from = x.dimensions(), window = kernel.dimensions(), to = out->dimensions();
  if (from.size() != 4 || window.size() != 4 || to.size() != 4) return refused("images and kernels have four axes");
  if (out->element_count() == 0) return ffi::Error::Success();
  auto axis = [&](size_t i, int64_t stride, int64_t dilation, int64_t low) {
    return Axis{size_t(from[i]), size_t(window[i - 1]), size_t(to[i]), size_t(stride), size_t(dilation), size_t(low)};
  };
  const Shape shape{size_t(from[0]), size_t(from[3]), size_t(to[3]), axis(1, row_stride, row_dilation, row_low),
                    axis(2, column_stride, column_dilation, column_low)};
  if (size_t(to[0]) != shape.images || size_t(window[2]) != shape.channels || size_t(window[3]) != shape.outs)
    return refused("the axes of a convolution do not fit each other");
  if (!fits(shape)) return refused("windows have elements, positive strides, and padding that fits into memory");
  auto run = has_wide_vectors() && shape.outs > Narrow::kPanel ? convolve_all<Wide> : convolve_all<Narrow>;
  run(shape, pool, static_cast<const float*>(x.untyped_data()), static_cast<const float*>(kernel.untyped_data()),
      static_cast<float*>(out->untyped_data()));
  return ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_conv_1, phlox_kernels::conv,
                      .Arg<xla::ffi::AnyBuffer>()
                          .Arg<xla::ffi::AnyBuffer>()
                          .Ret<xla::ffi::AnyBuffer>()
                          .Attr<int64_t>("column_dilation")
                          .Attr<int64_t>("column_low")
                          .Attr<int64_t>("column_stride")
                          .Attr<int64_t>("row_dilation")
                          .Attr<int64_t>("row_low")
                          .Attr<int64_t>("row_stride"));
