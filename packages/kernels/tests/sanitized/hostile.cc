// Runs each kernel on hostile bytes, sizes and alignments; scripts/test-kernels-sanitized builds it with sanitizers.
//
// They stop it at the first access outside of memory and the first undefined operation. It looks at results by itself:
// positions are those of elements, each once; and running operations do not depend on how rows are divided.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "handlers.h"

namespace {

const Type kTypes[] = {
    {"bool", XLA_FFI_DataType_PRED, 1}, {"u8", XLA_FFI_DataType_U8, 1},     {"u16", XLA_FFI_DataType_U16, 2},
    {"u32", XLA_FFI_DataType_U32, 4},   {"u64", XLA_FFI_DataType_U64, 8},   {"s8", XLA_FFI_DataType_S8, 1},
    {"s16", XLA_FFI_DataType_S16, 2},   {"s32", XLA_FFI_DataType_S32, 4},   {"s64", XLA_FFI_DataType_S64, 8},
    {"f16", XLA_FFI_DataType_F16, 2},   {"bf16", XLA_FFI_DataType_BF16, 2}, {"f32", XLA_FFI_DataType_F32, 4},
    {"f64", XLA_FFI_DataType_F64, 8},
};
const Type kInt8{"s8", XLA_FFI_DataType_S8, 1}, kInt32{"s32", XLA_FFI_DataType_S32, 4}, kInt64{"s64", XLA_FFI_DataType_S64, 8};
const Type kUint32{"u32", XLA_FFI_DataType_U32, 4}, kFloat{"f32", XLA_FFI_DataType_F32, 4};
const Type kBool{"bool", XLA_FFI_DataType_PRED, 1};

// Lengths of rows around those of vectors, tiles, groups and blocks, and numbers of rows around that of chains and lanes.
const int64_t kLengths[] = {0,   1,   2,   7,   8,   9,    15,   16,   17,   31,   32,   33,   63,  64,
                            65,  127, 129, 255, 256, 257,  511,  512,  513,  1023, 1024, 1025, 4095, 4097};
const int64_t kRows[] = {1, 2, 7, 8, 9, 16, 17, 65};
// Beyond the least number of elements for which threads are woken: of most kernels, of sorts, and of extrema.
const int64_t kLong[] = {65'537, 131'073, 262'200};
constexpr int64_t kMost = 5'000;

enum Bytes { kRandom, kOnes, kHigh, kZeros, kClean, kMixed, kLast };

std::mt19937_64 generator(34);

void fill(Memory& x, Bytes bytes) {
  for (size_t i = 0; i < x.size(); ++i) {
    const uint8_t drawn = uint8_t(generator());
    const uint8_t of[kLast] = {drawn, 0xFF, 0x80, 0, uint8_t(drawn & 1), uint8_t(drawn < 250 ? 0 : drawn)};
    x.data()[i] = of[bytes];
  }
}

std::string where;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s: %s\n", where.c_str(), what);
  std::exit(1);
}

void accepted(const std::string& message) { require(message.empty(), message.c_str()); }

// Whether an element is in order behind another one, for types whose order is that of their numbers.
template <typename T>
void require_sorted(Memory& x, size_t rows, size_t length) {
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 1; i < length; ++i)
      require(x.at<T>(row * length + i - 1) <= x.at<T>(row * length + i), "not sorted");
}

void require_permutation(Memory& x, size_t rows, size_t length) {
  for (size_t row = 0; row < rows; ++row) {
    std::vector<bool> seen(length);
    for (size_t i = 0; i < length; ++i) {
      const uint32_t position = x.at<uint32_t>(row * length + i);
      require(position < length && !seen[position], "positions are not those of all elements");
      seen[position] = true;
    }
  }
}

void sorts(Type type, Memory& x, std::vector<int64_t> shape, size_t offset) {
  const size_t rows = size_t(shape[0]), length = size_t(shape[1]);
  for (int64_t dimension : {1, 0}) {
    Memory sorted(type, shape, offset), order(kUint32, shape, offset / type.bytes * 4);
    accepted(call(phlox_kernels_sort_1, x, {&sorted}, {{"dimension", dimension}}));
    accepted(call(phlox_kernels_argsort_1, x, {&order}, {{"dimension", dimension}}));
    if (dimension == 0) continue;
    require_permutation(order, rows, length);
    if (type.type == XLA_FFI_DataType_U8 || type.type == XLA_FFI_DataType_PRED)
      require_sorted<uint8_t>(sorted, rows, length);
    if (type.type == XLA_FFI_DataType_S32) require_sorted<int32_t>(sorted, rows, length);
    if (type.type == XLA_FFI_DataType_U64) require_sorted<uint64_t>(sorted, rows, length);
  }
}

void largest(Type type, Memory& x, std::vector<int64_t> shape, size_t offset) {
  const size_t rows = size_t(shape[0]), length = size_t(shape[1]);
  for (size_t k : std::set<size_t>{1, 2, 16, 17, 32, 33, length / 2, length}) {
    if (k > length || type.bytes > 4 || (length > size_t(kMost) && k != 16 && k != 33)) continue;
    Memory values(type, {shape[0], int64_t(k)}, offset), positions(kInt32, {shape[0], int64_t(k)}, offset / type.bytes * 4);
    accepted(call(phlox_kernels_top_k_1, x, {&values, &positions}));
    for (size_t row = 0; row < rows; ++row) {
      std::set<int32_t> seen;
      for (size_t i = row * k; i < (row + 1) * k; ++i) {
        const int32_t position = positions.at<int32_t>(i);
        require(position >= 0 && size_t(position) < length, "a position beyond the row");
        require(seen.insert(position).second, "a position twice");
      }
    }
  }
}

void extrema(Type type, Memory& x, std::vector<int64_t> shape, size_t offset) {
  const size_t rows = size_t(shape[0]), length = size_t(shape[1]);
  if (rows * length == 0) return;
  for (auto handler : {phlox_kernels_argmax_1, phlox_kernels_argmin_1})
    for (Type index : {kInt32, kInt64}) {
      Memory positions(index, {shape[0]}, offset / type.bytes * index.bytes);
      accepted(call(handler, x, {&positions}));
      for (size_t row = 0; row < rows; ++row) {
        const auto at = index.bytes == 4 ? positions.at<int32_t>(row) : positions.at<int64_t>(row);
        require(at >= 0 && size_t(at) < length, "a position beyond the row");
      }
    }
  for (auto handler : {phlox_kernels_max_1, phlox_kernels_min_1}) {
    Memory of_rows(type, {shape[0]}, offset), of_columns(type, {shape[1]}, offset), of_all(type, {}, offset);
    accepted(call(handler, x, {&of_rows}, {{"inner", 1}}));
    accepted(call(handler, x, {&of_columns}, {{"inner", shape[1]}}));
    accepted(call(handler, x, {&of_all}, {{"inner", 1}}));
  }
}

// Sums of rows, of columns and of all; refused of other types than float32 and float64.
void totals(Type type, Memory& x, std::vector<int64_t> shape, size_t offset) {
  if (shape[0] * shape[1] == 0) return;
  const bool floats = type.type == XLA_FFI_DataType_F32 || type.type == XLA_FFI_DataType_F64;
  Memory of_rows(type, {shape[0]}, offset), of_columns(type, {shape[1]}, offset), of_all(type, {}, offset);
  for (int64_t term : {0, 1, 2}) {
    const std::string errors[] = {call(phlox_kernels_sum_2, x, {&of_rows}, {{"inner", 1}, {"term", term}}),
                                  call(phlox_kernels_sum_2, x, {&of_columns}, {{"inner", shape[1]}, {"term", term}}),
                                  call(phlox_kernels_sum_2, x, {&of_all}, {{"inner", 1}, {"term", term}})};
    for (const std::string& error : errors) require(error.empty() == floats, "sums of floats alone");
  }
}

// Sines and cosines, of any bits: between -1 and 1, or nan. Tangents of any bits.
void waves(Type type, Memory& x, std::vector<int64_t> shape, size_t offset) {
  if (type.type != XLA_FFI_DataType_F32) return;
  Memory out(type, shape, offset);
  for (int64_t function : {2, 0, 1}) {
    accepted(call(phlox_kernels_sine_2, x, {&out}, {{"function", function}}));
    if (function == 2) continue;
    for (size_t i = 0; i < size_t(shape[0] * shape[1]); ++i) require(!(std::fabs(out.at<float>(i)) > 1), "a sine above 1");
  }
}

// The same running operation of single rows, and of single columns as rows.
void running(Type type, Memory& x, std::vector<int64_t> shape, size_t offset) {
  const size_t columns = size_t(shape[1]);
  for (int64_t operation : {0, 1, 2, 3})
    for (int64_t axis : {0, 1})
      for (int64_t reverse : {0, 1}) {
        Memory out(type, shape, offset);
        const std::map<std::string, int64_t> attributes{{"axis", axis}, {"operation", operation}, {"reverse", reverse}};
        if (!call(phlox_kernels_scan_2, x, {&out}, attributes).empty() || x.size() == 0) continue;
        for (size_t line : {size_t(0), size_t(shape[1 - axis] - 1)}) {
          Memory one(type, {shape[axis]}), result(type, {shape[axis]});
          auto at = [=](size_t i) { return (axis ? line * columns + i : i * columns + line) * type.bytes; };
          for (size_t i = 0; i < size_t(shape[axis]); ++i)
            std::memcpy(one.data() + i * type.bytes, x.data() + at(i), type.bytes);
          accepted(call(phlox_kernels_scan_2, one, {&result}, {{"axis", 0}, {"operation", operation}, {"reverse", reverse}}));
          for (size_t i = 0; i < size_t(shape[axis]); ++i)
            if (axis == 0 && type.type == XLA_FFI_DataType_F32) {  // of sums and products the last digits may differ
              float a, b;
              std::memcpy(&a, out.data() + at(i), sizeof a);
              std::memcpy(&b, result.data() + i * sizeof b, sizeof b);
              require(std::isnan(a) == std::isnan(b) && std::isinf(a) == std::isinf(b), "lines differ in nan or infinity");
              require(std::isnan(a) || std::signbit(a) == std::signbit(b) || a != 0, "lines differ in the sign of zero");
            } else {
              require(!std::memcmp(out.data() + at(i), result.data() + i * type.bytes, type.bytes), "lines differ");
            }
        }
      }
}

void positions(Type type, Memory& x, std::vector<int64_t> shape, size_t offset) {
  const size_t rows = size_t(shape[0]), length = size_t(shape[1]);
  if (type.type != XLA_FFI_DataType_PRED || rows == 0) return;
  for (size_t size : std::set<size_t>{0, 1, length / 3, length, length + 40})
    for (Type index : {kInt32, kInt64}) {
      Memory out(index, {shape[0], int64_t(size)}, offset * index.bytes);
      accepted(call(phlox_kernels_places_1, x, {&out}));
      for (size_t row = 0; row < rows; ++row) {
        size_t count = 0;
        for (size_t i = 0; i < length && count < size; ++i) {
          if (!x.data()[row * length + i]) continue;
          const size_t at = row * size + count++;
          require((index.bytes == 4 ? out.at<int32_t>(at) : out.at<int64_t>(at)) == int64_t(i), "not the next position");
        }
        for (; count < size; ++count) {
          const size_t at = row * size + count;
          require((index.bytes == 4 ? out.at<int32_t>(at) : out.at<int64_t>(at)) == int64_t(length), "not the length");
        }
      }
    }
}

// Sums of the elements of `x` at indices of which many are beyond the operand, beside those of a plain loop. `width`: so many
// elements for each index.
void sums(Type type, Memory& x, size_t count, size_t width, size_t offset) {
  constexpr int64_t kSums = 7;
  for (Type index : {kInt32, kInt64}) {
    Memory indices(index, {int64_t(count), 1}, offset / type.bytes * index.bytes);
    for (size_t i = 0; i < count; ++i) {
      const int64_t far[] = {-1, kSums, index.bytes == 4 ? INT32_MIN : INT64_MIN, index.bytes == 4 ? INT32_MAX : INT64_MAX};
      const int64_t at = generator() % 8 ? int64_t(i / 5 + generator() % 3) % kSums : far[generator() % 4];
      const int32_t narrow = int32_t(at);
      std::memcpy(indices.data() + i * index.bytes, index.bytes == 4 ? (void*)&narrow : (void*)&at, index.bytes);
    }
    Memory operand(type, {kSums, int64_t(width)}, offset), out(type, {kSums, int64_t(width)}, offset);
    fill(operand, kZeros);
    accepted(call(phlox_kernels_scatter_add_1, {&operand, &indices, &x}, {&out}));
    if (type.type != XLA_FFI_DataType_U32) continue;
    std::vector<uint32_t> expected(kSums * width);
    for (size_t i = 0; i < count; ++i) {
      const int64_t at = index.bytes == 4 ? indices.at<int32_t>(i) : indices.at<int64_t>(i);
      if (at >= 0 && at < kSums)
        for (size_t j = 0; j < width; ++j) expected[at * width + j] += x.at<uint32_t>(i * width + j);
    }
    for (size_t i = 0; i < kSums * width; ++i) require(out.at<uint32_t>(i) == expected[i], "not the sum");
  }
}

// Products of rows of small integers with `x` in both orders. Those of int8 are exact, and equal to a plain loop.
void products(Type type, Memory& x, std::vector<int64_t> shape, size_t offset) {
  if (type.type != XLA_FFI_DataType_F32 && type.type != XLA_FFI_DataType_BF16 && type.type != XLA_FFI_DataType_S8) return;
  for (int64_t contracted : {0, 1})
    for (int64_t count : {1, 6}) {
      const size_t length = size_t(shape[contracted]), width = size_t(shape[1 - contracted]);
      Memory rows(kFloat, {count, int64_t(length)}, offset / type.bytes * 4), out(kFloat, {count, int64_t(width)}, 4);
      for (size_t i = 0; i < count * length; ++i) {
        const float value = float(int(generator() % 5) - 2);
        std::memcpy(rows.data() + i * 4, &value, 4);
      }
      accepted(call(phlox_kernels_rows_times_matrix_1, {&rows, &x}, {&out}, {{"contracted", contracted}}));
      if (type.type != XLA_FFI_DataType_S8) continue;
      for (size_t r = 0; r < size_t(count); ++r)
        for (size_t j = 0; j < width; ++j) {
          float sum = 0;
          for (size_t i = 0; i < length; ++i)
            sum += rows.at<float>(r * length + i) * x.at<int8_t>(contracted ? j * length + i : i * width + j);
          require(out.at<float>(r * width + j) == sum, "not the product");
        }
    }
}

void run_all(Type type, std::vector<int64_t> shape, Bytes bytes, size_t offset) {
  where = std::string(type.name) + "[" + std::to_string(shape[0]) + "," + std::to_string(shape[1]) + "], bytes " +
          std::to_string(bytes) + ", offset " + std::to_string(offset);
  Memory x(type, shape, offset);
  fill(x, bytes);
  sorts(type, x, shape, offset);
  largest(type, x, shape, offset);
  extrema(type, x, shape, offset);
  totals(type, x, shape, offset);
  waves(type, x, shape, offset);
  running(type, x, shape, offset);
  positions(type, x, shape, offset);
  products(type, x, shape, offset);
  if (type.bytes < 4) return;
  sums(type, x, size_t(shape[0]), size_t(shape[1]), offset);
  sums(type, x, size_t(shape[0] * shape[1]), 1, offset);
}

// Running sums and products beside those of one chain of float32.
void numbers() {
  const float most = std::numeric_limits<float>::max(), infinity = std::numeric_limits<float>::infinity();
  const float special[] = {0, -0.0f, 1, -1, 1000, 1e-30f, 1e30f, most, -most, infinity, -infinity, std::nanf("")};
  for (int64_t rows : {1, 3, 11})
    for (int64_t length : {1, 40, 300, 2500})
      for (int kind = 0; kind < 40; ++kind)
        for (int64_t operation : {0, 1}) {
          const int64_t axis = kind / 12 % 2;
          auto at = [=](int64_t i, int64_t j) { return size_t(axis ? i * length + j : j * rows + i); };
          where = "running " + std::to_string(operation) + " of " + std::to_string(rows) + " rows of " + std::to_string(length);
          const std::vector<int64_t> shape{axis ? rows : length, axis ? length : rows};
          Memory x(kFloat, shape), out(kFloat, shape);
          const float often = special[kind % 12], rare = special[generator() % 12];
          for (int64_t i = 0; i < rows * length; ++i) {
            const float value = generator() % 97 == 0 || i % length == 0 ? rare : often;
            std::memcpy(x.data() + i * 4, &value, 4);
          }
          accepted(call(phlox_kernels_scan_2, x, {&out}, {{"axis", axis}, {"operation", operation}, {"reverse", 0}}));
          for (int64_t i = 0; i < rows; ++i) {
            double chain = operation == 0 ? -0.0 : 1;
            for (int64_t j = 0; j < length; ++j) {
              const float element = x.at<float>(at(i, j)), result = out.at<float>(at(i, j));
              chain = operation == 0 ? chain + element : chain * element;
              const float expected = float(chain);
              if (!std::isfinite(expected) || (operation == 1 && expected == 0)) chain = expected;
              const bool equal = std::isnan(expected) ? std::isnan(result)
                                 : std::isinf(expected) || expected == 0
                                     ? result == expected && std::signbit(result) == std::signbit(expected)
                                     : std::abs(result - expected) <= 1e-6f * std::abs(expected) + 1e24f * (operation == 0);
              require(equal, "not the result of one chain");
            }
          }
        }
}

// Calls whose operands, results and attributes do not fit each other are refused, and write nothing.
void mistakes() {
  where = "a call that does not fit";
  Memory x(kFloat, {4, 8}), mask(kBool, {4, 8}), none(kFloat, {});
  Memory small(kFloat, {3}), few(kInt32, {3, 2}), narrow(kBool, {4, 8}), many(kFloat, {4, 9}), more(kInt32, {4, 9});
  fill(x, kRandom);
  const int64_t far = int64_t(1) << 40;
  auto refuses = [](const std::string& message) { require(!message.empty(), "was not refused"); };
  for (int64_t dimension : {int64_t(-1), int64_t(2), far}) {
    refuses(call(phlox_kernels_sort_1, x, {&x}, {{"dimension", dimension}}));
    refuses(call(phlox_kernels_argsort_1, x, {&x}, {{"dimension", dimension}}));
  }
  refuses(call(phlox_kernels_sort_1, x, {&small}, {{"dimension", 0}}));
  refuses(call(phlox_kernels_sort_1, x, {&narrow}, {{"dimension", 0}}));
  refuses(call(phlox_kernels_argsort_1, x, {&narrow}, {{"dimension", 0}}));
  refuses(call(phlox_kernels_top_k_1, x, {&many, &more}));
  refuses(call(phlox_kernels_top_k_1, x, {&small, &few}));
  refuses(call(phlox_kernels_top_k_1, none, {&none, &none}));
  refuses(call(phlox_kernels_argmax_1, x, {&few}));
  refuses(call(phlox_kernels_argmin_1, x, {&narrow}));
  for (int64_t inner : {int64_t(0), int64_t(-1), int64_t(5), far}) refuses(call(phlox_kernels_max_1, x, {&x}, {{"inner", inner}}));
  for (int64_t inner : {int64_t(0), int64_t(-1), int64_t(5), far})
    refuses(call(phlox_kernels_sum_2, x, {&x}, {{"inner", inner}, {"term", 0}}));
  for (int64_t term : {int64_t(-1), int64_t(3), far})
    refuses(call(phlox_kernels_sum_2, x, {&x}, {{"inner", 1}, {"term", term}}));
  refuses(call(phlox_kernels_min_1, x, {&small}, {{"inner", 1}}));
  refuses(call(phlox_kernels_sum_2, x, {&small}, {{"inner", 1}, {"term", 0}}));
  refuses(call(phlox_kernels_min_1, x, {&mask}, {{"inner", 1}}));
  refuses(call(phlox_kernels_sine_2, x, {&small}, {{"function", 0}}));
  refuses(call(phlox_kernels_sine_2, x, {&narrow}, {{"function", 0}}));
  refuses(call(phlox_kernels_sine_2, mask, {&x}, {{"function", 0}}));
  for (int64_t function : {int64_t(-1), int64_t(3), far}) refuses(call(phlox_kernels_sine_2, x, {&x}, {{"function", function}}));
  for (int64_t operation : {int64_t(-1), int64_t(4), far})
    refuses(call(phlox_kernels_scan_2, x, {&x}, {{"axis", 0}, {"operation", operation}, {"reverse", 0}}));
  for (int64_t axis : {int64_t(-1), int64_t(2), far})
    refuses(call(phlox_kernels_scan_2, x, {&x}, {{"axis", axis}, {"operation", 0}, {"reverse", 0}}));
  refuses(call(phlox_kernels_scan_2, x, {&small}, {{"axis", 0}, {"operation", 0}, {"reverse", 0}}));
  refuses(call(phlox_kernels_scan_2, x, {&narrow}, {{"axis", 0}, {"operation", 0}, {"reverse", 0}}));
  refuses(call(phlox_kernels_scan_2, none, {&none}, {{"axis", 0}, {"operation", 0}, {"reverse", 0}}));
  refuses(call(phlox_kernels_places_1, mask, {&few}));
  refuses(call(phlox_kernels_places_1, mask, {&narrow}));
  refuses(call(phlox_kernels_places_1, x, {&more}));
  Memory four(kInt32, {4}), wide(kInt64, {4});
  fill(four, kRandom);
  refuses(call(phlox_kernels_scatter_add_1, {&x, &four, &small}, {&x}));
  refuses(call(phlox_kernels_scatter_add_1, {&x, &four, &x}, {&many}));
  refuses(call(phlox_kernels_scatter_add_1, {&x, &x, &x}, {&x}));
  refuses(call(phlox_kernels_scatter_add_1, {&x, &four, &more}, {&x}));
  refuses(call(phlox_kernels_scatter_add_1, {&none, &four, &x}, {&none}));
  refuses(call(phlox_kernels_scatter_add_1, {&mask, &wide, &narrow}, {&mask}));
  Memory pair(kFloat, {2, 4}), sums(kFloat, {2, 8}), wrong(kInt32, {4, 8});
  fill(pair, kRandom);
  fill(wrong, kRandom);
  auto refuses_product = [&](Memory& rows, Memory& matrix, Memory& out, int64_t contracted) {
    refuses(call(phlox_kernels_rows_times_matrix_1, {&rows, &matrix}, {&out}, {{"contracted", contracted}}));
  };
  for (int64_t contracted : {int64_t(-1), int64_t(1), int64_t(2), far}) refuses_product(pair, x, sums, contracted);
  refuses_product(pair, many, sums, 0);
  refuses_product(pair, x, many, 0);
  refuses_product(pair, wrong, sums, 0);
  refuses_product(small, x, sums, 0);
  refuses_product(pair, none, sums, 0);
  refuses_product(pair, x, wrong, 0);
}

// Convolutions with strides, dilation and padding, of few channels and of many, beside sums of their terms.
void convolutions() {
  struct Case {
    int64_t images, rows, columns, channels, outs, row_window, column_window, row_out, column_out;
    std::map<std::string, int64_t> attributes;
  };
  auto attributes = [](int64_t stride, int64_t dilation, int64_t low) {
    return std::map<std::string, int64_t>{{"column_dilation", dilation}, {"column_low", low + 1}, {"column_stride", stride},
                                          {"row_dilation", 1},           {"row_low", low},        {"row_stride", stride + 1}};
  };
  // Of the last two, one crops the image, and all that the other reads is padding.
  const Case cases[] = {
      {2, 7, 9, 3, 5, 3, 2, 3, 9, attributes(1, 1, 1)},     {1, 1, 50, 16, 16, 1, 3, 1, 22, attributes(2, 3, 0)},
      {3, 20, 20, 1, 17, 5, 5, 8, 16, attributes(1, 1, 0)}, {70, 4, 4, 2, 33, 4, 4, 1, 1, attributes(3, 1, 0)},
      {1, 5, 5, 2, 8, 2, 2, 1, 2, attributes(1, 2, 0)},     {1, 3, 3, 2, 8, 2, 2, 9, 9, attributes(1, 1, 30)},
  };
  where = "convolutions";
  for (const Case& c : cases)
    for (size_t offset : {0, 4}) {
      Memory x(kFloat, {c.images, c.rows, c.columns, c.channels}, offset);
      Memory kernel(kFloat, {c.row_window, c.column_window, c.channels, c.outs}, offset);
      Memory out(kFloat, {c.images, c.row_out, c.column_out, c.outs}, offset);
      for (Memory* memory : {&x, &kernel})
        for (size_t i = 0; i < memory->size() / 4; ++i) {
          const float number = float(generator() % 9) - 4;  // sums are exact
          std::memcpy(memory->data() + 4 * i, &number, 4);
        }
      accepted(call(phlox_kernels_conv_1, {&x, &kernel}, {&out}, c.attributes));
      auto at = [&](const char* name) { return c.attributes.at(name); };
      for (int64_t place = 0; place < c.images * c.row_out * c.column_out * c.outs; ++place) {
        const int64_t o = place % c.outs, j = place / c.outs % c.column_out, i = place / c.outs / c.column_out % c.row_out;
        const int64_t n = place / c.outs / c.column_out / c.row_out;
        float sum = 0;
        for (int64_t k = 0; k < c.row_window; ++k)
          for (int64_t l = 0; l < c.column_window; ++l) {
            const int64_t row = i * at("row_stride") + k * at("row_dilation") - at("row_low");
            const int64_t column = j * at("column_stride") + l * at("column_dilation") - at("column_low");
            if (row < 0 || row >= c.rows || column < 0 || column >= c.columns) continue;
            for (int64_t channel = 0; channel < c.channels; ++channel)
              sum += x.at<float>(size_t(((n * c.rows + row) * c.columns + column) * c.channels + channel)) *
                     kernel.at<float>(size_t(((k * c.column_window + l) * c.channels + channel) * c.outs + o));
          }
        require(out.at<float>(size_t(place)) == sum, "not the convolution");
      }
    }
  Memory x(kFloat, {1, 4, 4, 4}), kernel(kFloat, {2, 2, 4, 8}), out(kFloat, {1, 3, 3, 8}), flat(kFloat, {64});
  Memory other(kInt32, {1, 4, 4, 4}), fewer(kFloat, {2, 2, 3, 8}), more(kFloat, {2, 3, 3, 8}), none(kFloat, {0, 2, 4, 8});
  fill(x, kZeros);
  fill(kernel, kZeros);
  const auto plain = attributes(1, 1, 0);
  auto refuses = [&](Memory& images, Memory& window, Memory& to, const std::map<std::string, int64_t>& with) {
    require(!call(phlox_kernels_conv_1, {&images, &window}, {&to}, with).empty(), "was not refused");
  };
  accepted(call(phlox_kernels_conv_1, {&x, &kernel}, {&out}, plain));
  refuses(other, kernel, out, plain);
  refuses(x, fewer, out, plain);
  refuses(x, kernel, more, plain);
  refuses(x, none, out, plain);
  refuses(flat, kernel, out, plain);
  refuses(x, kernel, flat, plain);
  for (const auto& [name, value] : plain)
    for (int64_t wrong : {std::numeric_limits<int64_t>::min(), int64_t(-1), int64_t(1) << 31, int64_t(1) << 62}) {
      auto with = plain;
      with[name] = wrong;
      refuses(x, kernel, out, with);
    }
  // A padded image of 2^62 elements.
  auto with = plain;
  with["row_dilation"] = with["column_dilation"] = (int64_t(1) << 30) - 2;
  refuses(x, kernel, out, with);
}

// Products of int8 beside plain loops, for rows, depths and columns around those of groups, steps and panels.
void byte_products() {
  where = "products of bytes";
  for (int64_t rows : {1, 11, 12, 25})
    for (int64_t depth : {1, 3, 4, 41})
      for (int64_t columns : {1, 31, 32, 65})
        for (int64_t turned : {0, 1}) {
          Memory left(kInt8, {rows, depth}, 1), out(kInt32, {rows, columns}, 4);
          Memory right(kInt8, turned ? std::vector<int64_t>{columns, depth} : std::vector<int64_t>{depth, columns}, 3);
          fill(left, kRandom);
          fill(right, kRandom);
          accepted(call(phlox_kernels_byte_products_1, {&left, &right}, {&out}, {{"turned", turned}}));
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j) {
              int32_t sum = 0;
              for (int64_t k = 0; k < depth; ++k)
                sum += left.at<int8_t>(i * depth + k) * right.at<int8_t>(turned ? j * depth + k : k * columns + j);
              require(out.at<int32_t>(i * columns + j) == sum, "not the product");
            }
        }
  Memory left(kInt8, {12, 8}), right(kInt8, {8, 32}), out(kInt32, {12, 32}), narrow(kInt32, {12, 31}), none(kInt8, {0, 8});
  fill(left, kRandom);
  fill(right, kRandom);
  auto refuses = [&](Memory& a, Memory& b, Memory& to, int64_t turned) {
    require(!call(phlox_kernels_byte_products_1, {&a, &b}, {&to}, {{"turned", turned}}).empty(), "was not refused");
  };
  refuses(left, right, out, 1);
  refuses(left, left, out, 0);
  refuses(left, right, narrow, 0);
  refuses(left, right, right, 0);
  refuses(out, right, out, 0);
  refuses(none, right, out, 0);
}

// Pairs of small matrices of small whole numbers, beside plain loops.
void small_products() {
  where = "small products";
  for (int64_t count : {1, 2, 5})
    for (int64_t rows : {1, 3, 4, 9, 16})
      for (int64_t depth : {1, 4, 16})
        for (int64_t columns : {1, 3, 4, 5, 8, 11, 16}) {
          if (std::min(rows, depth) * columns < 16) continue;
          Memory left(kFloat, {count, rows, depth}, 4), right(kFloat, {count, depth, columns}, 8);
          Memory out(kFloat, {count, rows, columns}, 12);
          for (Memory* x : {&left, &right})
            for (size_t i = 0; i < x->size() / 4; ++i) {
              const float number = float(generator() % 9) - 4;
              std::memcpy(x->data() + i * 4, &number, 4);
            }
          accepted(call(phlox_kernels_small_products_1, {&left, &right}, {&out}));
          for (int64_t i = 0; i < count * rows; ++i)
            for (int64_t j = 0; j < columns; ++j) {
              float sum = 0;
              for (int64_t k = 0; k < depth; ++k)
                sum += left.at<float>(size_t(i * depth + k)) *
                       right.at<float>(size_t((i / rows * depth + k) * columns + j));
              require(out.at<float>(size_t(i * columns + j)) == sum, "not the product");
            }
        }
  Memory left(kFloat, {3, 4, 8}), right(kFloat, {3, 8, 5}), out(kFloat, {3, 4, 5}), fewer(kFloat, {2, 8, 5});
  Memory flat(kFloat, {8, 5}), wide(kFloat, {3, 8, 17}), wide_out(kFloat, {3, 4, 17}), thin(kFloat, {3, 8, 1});
  Memory thin_out(kFloat, {3, 4, 1}), whole(kInt32, {3, 8, 5}), none(kFloat, {0, 8, 5});
  for (Memory* x : {&left, &right, &fewer, &flat, &wide, &thin}) fill(*x, kZeros);
  auto refuses = [](Memory& a, Memory& b, Memory& to) {
    require(!call(phlox_kernels_small_products_1, {&a, &b}, {&to}).empty(), "was not refused");
  };
  refuses(left, left, out);
  refuses(left, right, right);
  refuses(left, fewer, out);
  refuses(left, flat, out);
  refuses(left, wide, wide_out);
  refuses(left, thin, thin_out);
  refuses(left, whole, out);
  refuses(left, none, out);
}

}  // namespace

int main() {
  mistakes();
  numbers();
  convolutions();
  byte_products();
  small_products();
  size_t count = 0;
  for (const Type& type : kTypes) {
    for (int64_t rows : kRows)
      for (int64_t length : kLengths)
        if (rows * length <= kMost) {
          // One kind of bytes in turn; the offset goes through all multiples of the width of elements within a vector.
          run_all(type, {rows, length}, Bytes(count % kLast), type.bytes * (count * 5 % (64 / type.bytes)));
          ++count;
        }
    // One of them for each type, and all of them for two types.
    const bool all = type.type == XLA_FFI_DataType_PRED || type.type == XLA_FFI_DataType_F32;
    for (size_t i = 0; i < std::size(kLong); ++i)
      if (all || size_t(&type - kTypes) % std::size(kLong) == i) {
        run_all(type, {1, kLong[i]}, Bytes(count % kLast), type.bytes);
        ++count;
      }
  }
  // Columns that are divided among threads.
  for (const Type& type : kTypes)
    for (Bytes bytes : {kRandom, kClean}) {
      const std::vector<int64_t> shape{1003, 150};
      where = std::string(type.name) + ", divided columns, bytes " + std::to_string(bytes);
      Memory x(type, shape, type.bytes);
      fill(x, bytes);
      extrema(type, x, shape, type.bytes);
      totals(type, x, shape, type.bytes);
      positions(type, x, shape, type.bytes);
    }
  std::printf("%zu arrays, %zu element types\n", count, std::size(kTypes));
}
