// Element types as unsigned integers ("keys") that order alike, so that all sorting is done on those.
//
// Keys of floats follow jax on CPUs: -0.0 equals 0.0, numbers so small that XLA's programs take them for zero equal zero,
// and all nans are equal and last. What that loses, `restore` puts back in the order of the input. `bits` is the inverse of
// `key`, and that of `total`, the order of jax's top_k.
#ifndef PHLOX_KERNELS_ORDER_H_
#define PHLOX_KERNELS_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <limits>

namespace phlox_kernels {

template <typename W>
constexpr W kTop = W(W(1) << (std::numeric_limits<W>::digits - 1));

// Integers: signed ones have the highest bit in `flipped`, unsigned ones no bit.
template <typename W>
struct Integer {
  using Word = W;
  W flipped;
  W key(W bits) const { return bits ^ flipped; }
  W bits(W key) const { return key ^ flipped; }
  W total(W bits) const { return key(bits); }
  static bool nan(W) { return false; }
  static bool lossy(W) { return false; }
  static void restore(const W*, W*, size_t, size_t) {}
};

// infinity: the bits of infinity. least: those of the smallest number that is not taken for zero. quiet_bits: bits of nans;
// if they are not 0, all nans of the result have these and their sign.
template <typename W>
struct Float {
  using Word = W;
  W infinity, least, quiet_bits;
  bool nan(W bits) const { return W(bits & ~kTop<W>) > infinity; }
  bool zero(W bits) const { return W(bits & ~kTop<W>) < least; }
  // Whether the key does not say which bits it came from.
  bool lossy(W bits) const { return int(nan(bits)) | int(zero(bits) && bits != 0); }
  W quiet(W bits) const { return quiet_bits ? W((bits & kTop<W>) | quiet_bits) : bits; }
  // The key in the total order of IEEE 754, in which -0.0 is below 0.0, and nans are above and below all numbers.
  W total(W bits) const {
    bits = nan(bits) ? quiet(bits) : bits;
    const W sign = W(W(0) - W(bits >> (std::numeric_limits<W>::digits - 1)));  // all bits, or none
    return W(bits ^ (sign | kTop<W>));
  }
  W key(W bits) const {
    W ordered = zero(bits) ? kTop<W> : total(bits);
    return nan(bits) ? W(~W(0)) : ordered;
  }
  static W bits(W key) { return key & kTop<W> ? W(key ^ kTop<W>) : W(~key); }

  // Writes the zeros and nans of a row to their places in the sorted row, in the order in which they are in `in`. No more
  // than the row has places for, as memory that is shared with the host may have changed since it was sorted.
  void restore(const W* in, W* out, size_t length, size_t stride) const {
    size_t below = 0, nans = 0;
    for (size_t i = 0; i < length; ++i) {
      W bits = in[i * stride];
      nans += nan(bits);
      below += !nan(bits) && !zero(bits) && (bits & kTop<W>);
    }
    size_t next_zero = below, next_nan = length - nans;
    for (size_t i = 0; i < length; ++i) {
      W bits = in[i * stride];
      if (nan(bits)) {
        if (next_nan < length) out[next_nan++ * stride] = quiet(bits);
      } else if (zero(bits)) {
        if (next_zero < length) out[next_zero++ * stride] = bits;
      }
    }
  }
};

}  // namespace phlox_kernels

#endif  // PHLOX_KERNELS_ORDER_H_
