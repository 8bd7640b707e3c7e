// The k largest elements of each row, and their positions: of equal elements the first ones.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include "handler.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace phlox_kernels {
namespace {

namespace ffi = xla::ffi;

// So few elements are kept in order while they are found.
constexpr size_t kMostInOrder = 32;
// Longer rows are searched a vector at a time, shorter ones by groups.
constexpr size_t kLongest = 4096;
constexpr size_t kWorthIt = 1 << 16;

// Maxima of groups of elements; vectors hold one element of each group.
template <typename Order, size_t kGroups>
struct Groups {
  using Word = typename Order::Word;
  Word most[kGroups] = {};
  size_t grouped;

  Groups(Order order, const Word* row, size_t length) : grouped(length / kGroups * kGroups) {
    for (size_t i = 0; i < grouped; i += kGroups)
      for (size_t j = 0; j < kGroups; ++j) most[j] = std::max(most[j], order.total(row[i + j]));
  }

  // The k-th largest of the maxima: at least k elements are not below it. It is found by comparing all pairs, a vector at a
  // time, which is faster than std::nth_element here.
  Word bound(size_t k) const {
    Word place[kGroups] = {}, found = 0;
    for (size_t i = 0; i < kGroups; ++i)
      for (size_t j = 0; j < kGroups; ++j) place[j] = Word(place[j] + (most[i] >= most[j]));
    for (size_t j = 0; j < kGroups; ++j) found = std::max(found, place[j] >= k ? most[j] : Word(0));
    return found;
  }
};

// Compiled once: no vector instruction makes these faster.
PHLOX_KERNELS_NOT_INLINED void select_largest(uint64_t* found, size_t k, size_t count) {
  std::nth_element(found, found + k - 1, found + count, std::greater<uint64_t>());
}
PHLOX_KERNELS_NOT_INLINED void sort_descending(uint64_t* found, size_t count) {
  std::sort(found, found + count, std::greater<uint64_t>());
}

// Elements that may be among the largest are collected in a buffer for a few times k. When it is full, the k largest of them
// stay, and from then on only elements above the least of these are collected: few, which a vector at a time is searched for.
// If k is small, the buffer has room for k, and each element goes to its place there; of rows that are not too long, only
// groups are looked at that have one of the k largest maxima.
template <typename Order, typename Word = typename Order::Word>
PHLOX_KERNELS_CLONED void largest(Order order, const Word* row, size_t length, size_t k, Word* values, int32_t* positions) {
  constexpr size_t kBlock = 64 / sizeof(Word);
  const bool in_order = k <= kMostInOrder;
  const size_t room = in_order ? k : std::min(length, 2 * k);
  auto found = memory<uint64_t>(room);
  // Keys above positions counted from the end: larger is larger, and of equal elements the first.
  auto pack = [=](size_t i) { return uint64_t(order.total(row[i])) << 32 | uint32_t(length - i); };
  auto keep_largest = [&](size_t count) {
    select_largest(found.get(), k, count);
  };
  size_t count = 0, i = 0;
  Word least = 0;
  auto collect = [&](size_t i) {
    if (in_order) {
      const uint64_t added = pack(i);
      if (count == k && added < found[k - 1]) return;
      size_t place = count < k ? count++ : k - 1;
      for (; place > 0 && found[place - 1] < added; --place) found[place] = found[place - 1];
      found[place] = added;
      if (count == k) least = Word(found[k - 1] >> 32);
      return;
    }
    found[count++] = pack(i);
    if (count < room) return;
    keep_largest(count);
    count = k;
    least = Word(found[k - 1] >> 32);
  };
  // Of equal elements a later one may come first here.
  auto collect_from_groups = [&](auto groups) {
    constexpr size_t kGroups = sizeof(groups.most) / sizeof(Word);
    const Word bound = groups.bound(k);
    for (size_t j = 0; j < kGroups; ++j)
      if (groups.most[j] >= bound)
        for (size_t at = j; at < groups.grouped; at += kGroups)
          if (order.total(row[at]) >= bound) collect(at);
    i = groups.grouped;
  };
  if (k <= kMostInOrder / 2 && length >= 256 && length <= kLongest)
    collect_from_groups(Groups<Order, 64>(order, row, length));
  else if (in_order && length >= 512 && length <= kLongest)
    collect_from_groups(Groups<Order, 128>(order, row, length));
  if (i == 0)
    for (; i < room; ++i) collect(i);
  while (i < length) {
    const size_t end = std::min(i + kBlock, length);
    Word above = 0;
    for (size_t at = i; at < end; ++at) above |= Word(order.total(row[at]) > least);
    if (above)
      for (size_t at = i; at < end; ++at)
        if (order.total(row[at]) > least) collect(at);
    i = end;
  }
  if (count > k) keep_largest(count);
  if (!in_order) sort_descending(found.get(), k);
  for (size_t j = 0; j < k; ++j) {
    values[j] = order.bits(Word(found[j] >> 32));
    positions[j] = int32_t(length - uint32_t(found[j]));
  }
}

ffi::Error top_k(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> values,
                 ffi::Result<ffi::AnyBuffer> positions) {
  if (x.dimensions().size() == 0 || values->dimensions().size() == 0) return refused("top_k is along rows");
  const size_t length = x.dimensions().back(), k = values->dimensions().back();
  if (ffi::ByteWidth(x.element_type()) > 4) return refused("top_k is for elements of at most 32 bits");
  if (values->element_type() != x.element_type() || positions->element_type() != ffi::S32 ||
      positions->element_count() != values->element_count())
    return refused("top_k has as many int32 positions as elements of the type of the operand");
  if (values->element_count() == 0) return ffi::Error::Success();
  if (k > length || length > size_t(std::numeric_limits<int32_t>::max())) return refused("top_k of too many elements");
  const size_t rows = values->element_count() / k;
  if (x.element_count() != rows * length) return refused("top_k of a number of rows, and results of another");
  Threads threads(pool, x.element_count(), kWorthIt);
  return with_order(x.element_type(), [&](auto order) {
    using Order = decltype(order);
    using Word = typename Order::Word;
    if constexpr (sizeof(Word) <= 4) {
      const size_t turns = std::min(rows, threads.count() * 8);
      threads.run(turns, [&](size_t turn) {
        for (size_t row = rows * turn / turns; row < rows * (turn + 1) / turns; ++row)
          largest(order, reinterpret_cast<const Word*>(x.untyped_data()) + row * length, length, k,
                         reinterpret_cast<Word*>(values->untyped_data()) + row * k,
                         reinterpret_cast<int32_t*>(positions->untyped_data()) + row * k);
      });
    }
  });
}

}  // namespace
}  // namespace phlox_kernels

PHLOX_KERNELS_HANDLER(phlox_kernels_top_k_1, phlox_kernels::top_k,
                      .Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>());
