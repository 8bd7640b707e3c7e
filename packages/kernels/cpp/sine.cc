// Sines and cosines of float32, computed in double precision: what is left of the error is that of the last rounding.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

// A block whose numbers are all below this is computed by vectors; in others the C library takes the larger ones.
constexpr float kLimit = 1 << 27;
constexpr size_t kBlock = 256, kTurn = 1 << 14, kWorthIt = 1 << 15;

// π in three parts. The products of the first two, of 26 bits, with whole numbers below 2^27 are exact.
constexpr double kPi[] = {0x1.921fb5p+1, 0x1.110b46p-25, 0x1.1a62633145c07p-53};
// The sum of this and of a whole number has that number in its lowest bits, and rounds others.
constexpr double kShift = 0x1.8p+52;
// sin(r) / r by powers of r², up to r = π/2, with a relative error of 2e-11
constexpr double kSine[] = {0.9999999999788497,     -0.16666666608825606,   0.008333330720547047,
                            -0.00019840832822741133, 2.7523971076462564e-06, -2.386834686717583e-08};

constexpr uint32_t kMagnitude = 0x7FFFFFFF;

inline uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// sin(x) or cos(x) where |x| is below kLimit: by the distance of x to the nearest zero of the function.
template <bool kCosine>
inline float wave(float x) {
  const double wide = x, shifted = wide * (1 / 3.141592653589793) + (kCosine ? 0.5 : 0.0) + kShift;
  const double zero = (shifted - kShift) - (kCosine ? 0.5 : 0.0);
  const double rest = ((wide - zero * kPi[0]) - zero * kPi[1]) - zero * kPi[2], square = rest * rest;
  double out = kSine[5];
  for (int i = 4; i >= 0; --i) out = out * square + kSine[i];
  out *= rest;
  // The sign changes with each zero.
  uint64_t sign, result;
  std::memcpy(&sign, &shifted, sizeof sign);
  std::memcpy(&result, &out, sizeof result);
  result ^= sign << 63;
  std::memcpy(&out, &result, sizeof out);
  if constexpr (kCosine) return out;
  // sin(x) is x for small numbers, also for those that count as zero. Bits are selected: g++ makes no vectors of a choice
  // between floats, one of which is computed with operations that may trap.
  const float rounded = out;
  const uint32_t small = -uint32_t((bits_of(x) & kMagnitude) < bits_of(0x1p-13f));
  return float_of((bits_of(x) & small) | (bits_of(rounded) & ~small));
}

template <bool kCosine>
PHLOX_KERNELS_CLONED void waves(const float* __restrict in, size_t count, float* __restrict out) {
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, count);
    uint32_t largest = 0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, bits_of(in[i]) & kMagnitude);
    for (size_t i = begin; i < end; ++i) out[i] = wave<kCosine>(in[i]);
    if (largest < bits_of(kLimit)) continue;
    for (size_t i = begin; i < end; ++i)  // also infinities and nan
      if (!(std::fabs(in[i]) < kLimit)) out[i] = kCosine ? std::cos(double(in[i])) : std::sin(double(in[i]));
  }
}

ffi::Error sine(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x, ffi::Result<ffi::Buffer<ffi::F32>> out, int64_t cosine) {
  const size_t count = x.element_count();
  if (out->element_count() != count) return refused("sines are as many as the operand's elements");
  Threads threads(pool, count, kWorthIt);
  const float* in = x.typed_data();
  float* to = out->typed_data();
  threads.run((count + kTurn - 1) / kTurn, [=](size_t turn) {
    const size_t begin = turn * kTurn;
    (cosine ? waves<true> : waves<false>)(in + begin, std::min(kTurn, count - begin), to + begin);
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_sine_1, phlox_kernels::sine,
                      .Arg<xla::ffi::Buffer<xla::ffi::F32>>().Ret<xla::ffi::Buffer<xla::ffi::F32>>().Attr<int64_t>("cosine"));
