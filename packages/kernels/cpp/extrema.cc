// The largest or smallest element of each row, or its position: of equal elements the first one. A nan is both the largest
// and the smallest element.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

// Elements are ranked by unsigned integers, nans highest: the first one of the highest rank is what is looked for.
// kTies: -0.0 and 0.0 have the same rank, which does not tell which of them it was.
template <typename Order, bool kTies, typename W = typename Order::Word>
struct Ranks {
  using Word = W;
  static constexpr bool kFloats = !std::is_same_v<Integer<W>, Order>;
  Order order;
  W flipped;  // the bits that make the order of integers that of the ranks
  W rank(W bits) const {
    const W ordered = W((kTies ? order.key(bits) : order.total(bits)) ^ flipped);
    return W(ordered | W(W(0) - W(order.nan(bits))));  // without a branch, or loops are not made vectors of
  }
  W value(W rank) const {
    const bool nan = order.nan(order.bits(W(~W(0)))) && rank == W(~W(0));
    return order.bits(nan ? rank : W(rank ^ flipped));
  }
  // Whether no other bits have the same rank.
  bool exact(W bits) const {
    if constexpr (kTies) return !order.nan(bits) && !order.zero(bits);
    return !order.nan(bits);
  }
};

// Calls `f(ranks)` with the ranks of elements of `type`.
template <bool kTies, typename F>
ffi::Error with_ranks(ffi::DataType type, bool largest, const F& f) {
  return with_order(type, [&](auto order) {
    using Order = decltype(order);
    using Word = typename Order::Word;
    constexpr bool ties = kTies && !std::is_same_v<Integer<Word>, Order>;
    f(Ranks<Order, ties>{order, largest ? Word(0) : Word(~Word(0))});
  });
}

// The highest rank of a row, and the start of the first block that has it.
template <typename Word>
struct Found {
  Word rank;
  size_t block;
};
// Of positions, the block that has it is searched for it.
constexpr size_t kBlock = 256;
constexpr size_t kWorthIt = 1 << 18;

// Lanes are what compilers make vectors of.
template <typename R, typename Word = typename R::Word>
PHLOX_KERNELS_CLONED Found<Word> highest_rank(R ranks, const Word* row, size_t begin, size_t end, size_t size) {
  constexpr size_t kLanes = 128 / sizeof(Word);
  Found<Word> found{0, begin};
  for (size_t block = begin; block < end; block += size) {
    const size_t stop = std::min(block + size, end);
    Word most[kLanes] = {};
    size_t i = block;
    for (; i + kLanes <= stop; i += kLanes)
      for (size_t k = 0; k < kLanes; ++k) most[k] = std::max(most[k], ranks.rank(row[i + k]));
    for (size_t k = 0; i + k < stop; ++k) most[k] = std::max(most[k], ranks.rank(row[i + k]));
    fold<kLanes>(most, [](Word a, Word b) { return std::max(a, b); });
    if (most[0] > found.rank) found = {most[0], block};
  }
  return found;
}

// Ranks take four times the instructions of the processor's comparisons of floats, which give the same result if there is
// no nan, and the largest number is not one of those that may count as zero. Minima are found with the sign flipped.
template <typename Word>
struct Numbers {
  using T = std::conditional_t<sizeof(Word) == 4, float, double>;
  static constexpr T kLeast = -std::numeric_limits<T>::infinity();
  Word sign;
  Float<Word> order;
  T number(Word bits) const {
    bits ^= sign;
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
  Word bits(T x) const {
    Word bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits ^ sign;
  }
  static T larger(T a, T b) { return a > b ? a : b; }
  // All bits if one of them is nan, else none: two elements take one comparison.
  static Word any_nan(T a, T b) { return Word(0) - Word(__builtin_isunordered(a, b) != 0); }
};

// The largest number of a row, and the start of the first block that has it. Returns whether it is the highest rank.
template <typename Word>
PHLOX_KERNELS_CLONED bool largest_number(Numbers<Word> numbers, const Word* row, size_t begin, size_t end,
                                         size_t size, Found<Word>* found) {
  using T = typename Numbers<Word>::T;
  constexpr size_t kLanes = 64 / sizeof(Word), kStep = 2 * kLanes;
  if (end - begin < kStep) return false;
  T best = numbers.kLeast;
  size_t best_block = begin;
  Word nans[kLanes] = {};
  for (size_t block = begin; block < end; block += size) {
    const size_t stop = std::min(block + size, end);
    T most[kLanes];
    std::fill_n(most, kLanes, numbers.kLeast);
    auto look = [&](size_t i) {
      PHLOX_KERNELS_NOT_UNROLLED
      for (size_t k = 0; k < kLanes; ++k) {
        const T a = numbers.number(row[i + k]), b = numbers.number(row[i + kLanes + k]);
        nans[k] |= numbers.any_nan(a, b);
        most[k] = numbers.larger(numbers.larger(a, b), most[k]);
      }
    };
    size_t i = block;
    for (; i + kStep <= stop; i += kStep) look(i);
    if (i < stop) look(stop - kStep);  // some a second time, which does not matter
    fold<kLanes>(most, [](T a, T b) { return a > b ? a : b; });
    if (most[0] > best) {
      best = most[0];
      best_block = block;
    }
  }
  fold<kLanes>(nans, [](Word a, Word b) { return Word(a | b); });
  const Word bits = numbers.bits(best);
  *found = {bits, best_block};
  return !nans[0] && !numbers.order.zero(bits);
}

template <typename R, typename Word = typename R::Word>
Found<Word> highest(R ranks, const Word* row, size_t begin, size_t end, size_t size) {
  if constexpr (R::kFloats && sizeof(Word) >= 4) {
    Found<Word> found;
    const Numbers<Word> numbers{Word(ranks.flipped & kTop<Word>), ranks.order};
    if (largest_number(numbers, row, begin, end, size, &found)) return {ranks.rank(found.rank), found.block};
  }
  return highest_rank(ranks, row, begin, end, size);
}

// The position of the first element with these bits, which is not before `begin`; `end - 1` if there is none.
template <typename Word>
PHLOX_KERNELS_CLONED size_t first_equal(const Word* row, Word bits, size_t begin, size_t end) {
  constexpr size_t kStep = std::min<size_t>(128, 256 / sizeof(Word));
  if (end - begin < kStep) {
    while (begin + 1 < end && row[begin] != bits) ++begin;
    return begin;
  }
  for (size_t i = begin;; i = std::min(i + kStep, end - kStep)) {
    Word any = 0;
    for (size_t j = 0; j < kStep; ++j) any |= Word(row[i + j] == bits);
    if (!any && i + kStep < end) continue;
    Word first = kStep - 1;
    for (size_t j = 0; j < kStep; ++j) first = std::min(first, row[i + j] == bits ? Word(j) : Word(kStep - 1));
    return i + first;
  }
}

template <typename R, typename Word = typename R::Word>
size_t first(R ranks, const Word* row, Found<Word> found, size_t end) {
  const Word bits = ranks.value(found.rank);
  if (ranks.exact(bits)) return first_equal(row, bits, found.block, end);
  size_t i = found.block;
  while (i + 1 < end && ranks.rank(row[i]) != found.rank) ++i;
  return i;
}

// Calls `put(row, found)` with what is found of each row, in blocks of `size` elements; one long row is divided among the
// threads.
template <typename R, typename Word = typename R::Word, typename Put>
void rows_of(Threads& threads, R ranks, const Word* in, size_t rows, size_t length, size_t size, const Put& put) {
  if (rows >= threads.count()) {
    const size_t turns = std::min(rows, threads.count() * 8);
    return threads.run(turns, [&](size_t turn) {
      for (size_t row = rows * turn / turns; row < rows * (turn + 1) / turns; ++row)
        put(row, highest(ranks, in + row * length, 0, length, size));
    });
  }
  const size_t parts = std::min(threads.count(), length / kBlock + 1);
  auto found = memory<Found<Word>>(parts);
  for (size_t row = 0; row < rows; ++row) {
    threads.run(parts, [&](size_t part) {
      found[part] = highest(ranks, in + row * length, length * part / parts, length * (part + 1) / parts, size);
    });
    Found<Word> best = found[0];
    for (size_t part = 1; part < parts; ++part)
      if (found[part].rank > best.rank) best = found[part];
    put(row, best);
  }
}

// The highest ranks of columns: of a tile of columns at a time, row after row. A turn has about kTurn elements.
constexpr size_t kTile = 1024, kTurn = 1 << 15;

template <typename R, typename Word = typename R::Word>
PHLOX_KERNELS_CLONED void highest_ranks(R ranks, const Word* in, size_t length, size_t stride, size_t count,
                                        Word* highest) {
  Word best[kTile] = {};
  for (size_t i = 0; i < length; ++i)
    for (size_t j = 0; j < count; ++j) best[j] = std::max(best[j], ranks.rank(in[i * stride + j]));
  std::copy_n(best, count, highest);
}

// The ranks of the largest numbers of columns, four rows at a time. Returns whether they are the highest ranks.
template <typename R, typename Word = typename R::Word>
PHLOX_KERNELS_CLONED bool largest_numbers(R ranks, Numbers<Word> numbers, const Word* in, size_t length, size_t stride,
                                          size_t count, Word* highest) {
  using T = typename Numbers<Word>::T;
  T best[kTile];
  Word nans = 0, zeros = 0;
  std::fill_n(best, count, numbers.kLeast);
  size_t i = 0;
  for (; i + 4 <= length; i += 4) {
    const Word* row = in + i * stride;
    for (size_t j = 0; j < count; ++j) {
      const T a = numbers.number(row[j]), b = numbers.number(row[stride + j]);
      const T c = numbers.number(row[2 * stride + j]), d = numbers.number(row[3 * stride + j]);
      nans |= numbers.any_nan(a, b) | numbers.any_nan(c, d);
      best[j] = numbers.larger(numbers.larger(numbers.larger(a, b), numbers.larger(c, d)), best[j]);
    }
  }
  for (; i < length; ++i)
    for (size_t j = 0; j < count; ++j) {
      const T x = numbers.number(in[i * stride + j]);
      nans |= numbers.any_nan(x, x);
      best[j] = numbers.larger(x, best[j]);
    }
  for (size_t j = 0; j < count; ++j) {
    const Word bits = numbers.bits(best[j]);
    zeros |= Word(numbers.order.zero(bits));
    highest[j] = ranks.rank(bits);
  }
  return !nans && !zeros;
}

template <typename R, typename Word = typename R::Word>
void columns(R ranks, const Word* in, size_t length, size_t stride, size_t count, Word* highest) {
  if constexpr (R::kFloats && sizeof(Word) >= 4) {
    const Numbers<Word> numbers{Word(ranks.flipped & kTop<Word>), ranks.order};
    if (largest_numbers(ranks, numbers, in, length, stride, count, highest)) return;
  }
  highest_ranks(ranks, in, length, stride, count, highest);
}

// Sets `out` to the elements of the highest ranks among those of all parts.
template <typename R, typename Word = typename R::Word>
PHLOX_KERNELS_CLONED void combine_parts(R ranks, Word* found, size_t parts, size_t count, Word* out) {
  for (size_t part = 1; part < parts; ++part)
    for (size_t i = 0; i < count; ++i) found[i] = std::max(found[i], found[part * count + i]);
  for (size_t i = 0; i < count; ++i) out[i] = ranks.value(found[i]);
}

// Results from columns: `blocks` blocks, each with `length` rows of `stride` elements. If there are few tiles, rows are
// divided, too, in so many turns that the caller goes on while another thread wakes.
template <typename R, typename Word = typename R::Word>
void columns_of(Threads& threads, R ranks, const Word* in, size_t blocks, size_t length, size_t stride, Word* out) {
  const size_t tiles = (stride + kTile - 1) / kTile, turns = blocks * tiles;
  const size_t most = std::max<size_t>(1, 8 * threads.count() / turns), count = blocks * stride;
  const size_t parts = std::max<size_t>(1, std::min(most, length * std::min(stride, kTile) / kTurn));
  auto found = memory<Word>(parts * count);
  threads.run(turns * parts, [&](size_t turn) {
    const size_t part = turn % parts, block = turn / parts / tiles, column = turn / parts % tiles * kTile;
    const size_t begin = length * part / parts, end = length * (part + 1) / parts;
    columns(ranks, in + (block * length + begin) * stride + column, end - begin, stride, std::min(kTile, stride - column),
            found.get() + part * count + block * stride + column);
  });
  combine_parts(ranks, found.get(), parts, count, out);
}

ffi::Error position(bool largest, ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const size_t rows = out->element_count(), length = x.element_count() / rows;
  const size_t bytes = ffi::ByteWidth(out->element_type());
  if (bytes != 4 && bytes != 8) return refused("positions are integers of 32 or 64 bits");
  if (length == 0 || x.element_count() != rows * length) return refused("positions in rows, of which each has elements");
  Threads threads(pool, x.element_count(), kWorthIt);
  return with_ranks<true>(x.element_type(), largest, [&](auto ranks) {
    using Word = typename decltype(ranks)::Word;
    auto in = reinterpret_cast<const Word*>(x.untyped_data());
    rows_of(threads, ranks, in, rows, length, kBlock, [&](size_t row, Found<Word> found) {
      const size_t place = first(ranks, in + row * length, found, length);
      if (bytes == 4)
        reinterpret_cast<uint32_t*>(out->untyped_data())[row] = uint32_t(place);
      else
        reinterpret_cast<uint64_t*>(out->untyped_data())[row] = place;
    });
  });
}

// `inner`: how many elements of the result come from neighbours, element for element.
ffi::Error extremum(bool largest, ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                    int64_t inner) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const size_t count = out->element_count(), length = x.element_count() / count, stride = inner;
  if (length == 0 || x.element_count() != count * length || inner <= 0 || count % stride != 0)
    return refused("extrema of rows or columns, of which each has elements");
  if (out->element_type() != x.element_type()) return refused("extrema have the type of the operand");
  Threads threads(pool, x.element_count(), kWorthIt);
  return with_ranks<false>(x.element_type(), largest, [&](auto ranks) {
    using Word = typename decltype(ranks)::Word;
    auto in = reinterpret_cast<const Word*>(x.untyped_data());
    auto to = reinterpret_cast<Word*>(out->untyped_data());
    if (stride == 1)
      return rows_of(threads, ranks, in, count, length, length,
                     [&](size_t row, Found<Word> found) { to[row] = ranks.value(found.rank); });
    columns_of(threads, ranks, in, count / stride, length, stride, to);
  });
}

template <bool kLargest>
ffi::Error position_of(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  return position(kLargest, pool, x, out);
}

template <bool kLargest>
ffi::Error extremum_of(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out, int64_t inner) {
  return extremum(kLargest, pool, x, out, inner);
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_argmax_1, phlox_kernels::position_of<true>,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>());
PHLOX_KERNELS_HANDLER(phlox_kernels_argmin_1, phlox_kernels::position_of<false>,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>());
PHLOX_KERNELS_HANDLER(phlox_kernels_max_1, phlox_kernels::extremum_of<true>,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>().Attr<int64_t>("inner"));
PHLOX_KERNELS_HANDLER(phlox_kernels_min_1, phlox_kernels::extremum_of<false>,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>().Attr<int64_t>("inner"));
