// Sines, cosines and tangents of float32, computed in double precision: what is left of the error is that of the last
// rounding.
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
constexpr size_t kBlock = 1024, kTurn = 1 << 14, kWorthIt = 1 << 15;

// π in two parts, for sums that are rounded once: the difference of a number and of the nearest multiple of the first part
// is exact. And in three, of which the products of the first two, of 26 bits, with whole numbers below 2^27 are exact.
constexpr double kTwo[] = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};
constexpr double kThree[] = {0x1.921fb5p+1, 0x1.110b46p-25, 0x1.1a62633145c07p-53};
// The sum of this and of a whole number has that number in its lowest bits, and rounds others.
constexpr double kShift = 0x1.8p+52;
// sin(r) / r by powers of r², up to r = π/2, with a relative error of 2e-11
constexpr double kSine[] = {0.9999999999788497,     -0.16666666608825606,   0.008333330720547047,
                            -0.00019840832822741133, 2.7523971076462564e-06, -2.386834686717583e-08};
// sin(r) / r and cos(r) by powers of r², up to r = π/4, with relative errors of 5e-12 and 6e-11
constexpr double kShortSine[] = {0.9999999999954481, -0.16666666630431592, 0.008333328688752828, -0.00019839177936637124,
                                 2.717148955680554e-06};
constexpr double kShortCosine[] = {0.9999999999439083, -0.49999999571380743, 0.041666613217091246, -0.0013886528667113444,
                                   2.4372635780330085e-05};

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

inline uint64_t bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline double double_of(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <size_t kCount>
inline double polynomial(double x, const double (&coefficients)[kCount]) {
  double total = coefficients[kCount - 1];
  for (size_t i = kCount - 1; i-- > 0;) total = total * x + coefficients[i];
  return total;
}

// x less so many times π, or half of it
template <bool kFused>
inline double rest_of(double x, double count, double scale) {
  if constexpr (kFused) return std::fma(count, -scale * kTwo[1], std::fma(count, -scale * kTwo[0], x));
  return ((x - count * (scale * kThree[0])) - count * (scale * kThree[1])) - count * (scale * kThree[2]);
}

// sin(x) or cos(x) where |x| is below kLimit: by the distance of x to the nearest zero of the function.
template <bool kCosine, bool kFused>
inline double wave(double x) {
  constexpr double kPart = 1 / 3.141592653589793;
  double shifted, zero;
  if constexpr (kCosine) {
    shifted = (x * kPart + 0.5) + kShift;
    zero = (shifted - kShift) - 0.5;
  } else {
    shifted = x * kPart + kShift;
    zero = shifted - kShift;
  }
  const double rest = rest_of<kFused>(x, zero, 1);
  // The sign changes with each zero.
  return double_of(bits_of(rest * polynomial(rest * rest, kSine)) ^ bits_of(shifted) << 63);
}

// tan(x) there: the tangent of the distance to the nearest multiple of π/2, or its negative inverse
template <bool kFused>
inline double tangent(double x) {
  const double shifted = x * (2 / 3.141592653589793) + kShift, rest = rest_of<kFused>(x, shifted - kShift, 0.5);
  const uint64_t sine = bits_of(rest * polynomial(rest * rest, kShortSine));
  const uint64_t cosine = bits_of(polynomial(rest * rest, kShortCosine));
  const uint64_t odd = -(bits_of(shifted) & 1);
  const uint64_t swapped = (sine ^ cosine) & odd;
  return double_of(sine ^ swapped ^ (odd & uint64_t(1) << 63)) / double_of(cosine ^ swapped);
}

enum Function : int64_t { kSineOf, kCosineOf, kTangentOf, kFunctions };

template <Function kFunction, bool kFused>
inline float value(float x) {
  if constexpr (kFunction == kCosineOf) return float(wave<true, kFused>(x));
  float rounded;
  if constexpr (kFunction == kSineOf)
    rounded = float(wave<false, kFused>(x));
  else
    rounded = float(tangent<kFused>(x));
  // sin(x) and tan(x) are x for small numbers, also for those that count as zero. Bits are selected: g++ makes no vectors
  // of a choice between floats, one of which is computed with operations that may trap.
  const uint32_t small = -uint32_t((bits_of(x) & kMagnitude) < bits_of(0x1p-13f));
  return float_of((bits_of(x) & small) | (bits_of(rounded) & ~small));
}

template <Function kFunction>
double exact_value(double x) {
  return kFunction == kSineOf ? std::sin(x) : kFunction == kCosineOf ? std::cos(x) : std::tan(x);
}

template <Function kFunction, bool kFused>
PHLOX_KERNELS_CLONED void values(const float* __restrict in, size_t count, float* __restrict out) {
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, count);
    uint32_t largest = 0;
    for (size_t i = begin; i < end; ++i) {
      largest = std::max(largest, bits_of(in[i]) & kMagnitude);
      out[i] = value<kFunction, kFused>(in[i]);
    }
    if (largest < bits_of(kLimit)) continue;
    for (size_t i = begin; i < end; ++i)  // also infinities and nan
      if (!(std::fabs(in[i]) < kLimit)) out[i] = float(exact_value<kFunction>(in[i]));
  }
}

using Values = void (*)(const float* in, size_t count, float* out);

template <bool kFused>
Values values_of(int64_t function) {
  const Values of[kFunctions] = {values<kSineOf, kFused>, values<kCosineOf, kFused>, values<kTangentOf, kFused>};
  return of[function];
}

// `function`: 0 for sines, 1 for cosines, 2 for tangents
ffi::Error sine(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x, ffi::Result<ffi::Buffer<ffi::F32>> out, int64_t function) {
  const size_t count = x.element_count();
  if (out->element_count() != count) return refused("sines are as many as the operand's elements");
  if (function < 0 || function >= kFunctions) return refused("sines, cosines or tangents");
  Threads threads(pool, count, kWorthIt);
  const float* in = x.typed_data();
  float* to = out->typed_data();
  const Values compute = has_fused_sums() ? values_of<true>(function) : values_of<false>(function);
  threads.run((count + kTurn - 1) / kTurn, [=](size_t turn) {
    const size_t begin = turn * kTurn;
    compute(in + begin, std::min(kTurn, count - begin), to + begin);
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_sine_2, phlox_kernels::sine,
                      .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                          .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                          .Attr<int64_t>("function"));
