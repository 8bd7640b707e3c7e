// What the handlers share: the choice of a function by element type, and how they are stated.
#ifndef PHLOX_KERNELS_HANDLER_H_
#define PHLOX_KERNELS_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>

#include "order.h"
#include "xla/ffi/api/ffi.h"

// g++ compiles the function, with all that it calls, once for each of these kinds of vector instructions; the best one that
// the processor has is called. Other compilers use the vector instructions that all processors of a kind have.
// Sanitizers cannot run before the choice, and see one of the versions.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(PHLOX_KERNELS_PLAIN)
#define PHLOX_KERNELS_HAS_CLONES
#define PHLOX_KERNELS_CLONED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), flatten))
#else
#define PHLOX_KERNELS_CLONED
#endif

// What such a function calls without making it a part of each of its versions.
#define PHLOX_KERNELS_NOT_INLINED __attribute__((noinline))

// Before a short loop of constant length: g++ would unroll it first, and make no vectors of it then.
#if defined(__GNUC__) && !defined(__clang__)
#define PHLOX_KERNELS_NOT_UNROLLED _Pragma("GCC unroll 1")
#else
#define PHLOX_KERNELS_NOT_UNROLLED
#endif

#if defined(_WIN32)
#define PHLOX_KERNELS_EXPORTED __declspec(dllexport)
#else
#define PHLOX_KERNELS_EXPORTED __attribute__((visibility("default")))
#endif

// A handler is found by its name, which therefore changes with its operands, results or attributes.
#define PHLOX_KERNELS_HANDLER(name, function, signature)                    \
  extern "C" PHLOX_KERNELS_EXPORTED XLA_FFI_Error* name(XLA_FFI_CallFrame*); \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (function), xla::ffi::Ffi::Bind().Ctx<xla::ffi::ThreadPool>() signature)

namespace phlox_kernels {

// Whether the processor computes with vectors of 512 bits, so that those of the widest clones are whole ones.
inline bool has_wide_vectors() {
#if defined(PHLOX_KERNELS_HAS_CLONES)
  return __builtin_cpu_supports("x86-64-v4");
#elif defined(PHLOX_KERNELS_PLAIN)
  return true;  // sanitizers look at these too, whatever they are computed with
#else
  return false;
#endif
}

// Whether the processor rounds a product and a sum once, in one instruction, which the compiler then uses for std::fma.
inline bool has_fused_sums() {
#if defined(PHLOX_KERNELS_HAS_CLONES)
  return __builtin_cpu_supports("x86-64-v3");
#elif defined(__FMA__) || defined(__aarch64__) || defined(PHLOX_KERNELS_PLAIN)
  return true;
#else
  return false;
#endif
}

// Memory that is not set to zero.
template <typename T>
std::unique_ptr<T[]> memory(size_t count) {
  return std::unique_ptr<T[]>(new T[count]);
}

// Combines all lanes into the first one. The halves have constant lengths, so that they stay in registers.
template <size_t kCount, typename T, typename F>
inline void fold(T* lanes, const F& combine) {
  constexpr size_t kHalf = kCount / 2;
  PHLOX_KERNELS_NOT_UNROLLED
  for (size_t k = 0; k < kHalf; ++k) lanes[k] = combine(lanes[k], lanes[k + kHalf]);
  if constexpr (kHalf > 1) fold<kHalf>(lanes, combine);
}

// The error of a call whose operands, results or attributes do not fit each other. Handlers are public by their names: no
// shape, type or attribute is relied on before it is compared with the others.
inline xla::ffi::Error refused(const char* reason) {
  return xla::ffi::Error::InvalidArgument(std::string("phlox_kernels: ") + reason);
}

// Calls `f(order)` with the order of elements of `type`.
template <typename F>
xla::ffi::Error with_order(xla::ffi::DataType type, const F& f) try {
  switch (type) {
    case xla::ffi::PRED:
    case xla::ffi::U8:
    case xla::ffi::S8:
      f(Integer<uint8_t>{type == xla::ffi::S8 ? kTop<uint8_t> : uint8_t(0)});
      break;
    case xla::ffi::U16:
    case xla::ffi::S16:
      f(Integer<uint16_t>{type == xla::ffi::S16 ? kTop<uint16_t> : uint16_t(0)});
      break;
    case xla::ffi::U32:
    case xla::ffi::S32:
      f(Integer<uint32_t>{type == xla::ffi::S32 ? kTop<uint32_t> : uint32_t(0)});
      break;
    case xla::ffi::U64:
    case xla::ffi::S64:
      f(Integer<uint64_t>{type == xla::ffi::S64 ? kTop<uint64_t> : uint64_t(0)});
      break;
    case xla::ffi::F16:
    case xla::ffi::BF16:
      f(type == xla::ffi::F16 ? Float<uint16_t>{0x7C00, 1, 0} : Float<uint16_t>{0x7F80, 0x0080, 0x7FC0});
      break;
    case xla::ffi::F32:
      f(Float<uint32_t>{0x7F800000, 0x00800000, 0});
      break;
    case xla::ffi::F64:
      f(Float<uint64_t>{0x7FF0000000000000, 0x0010000000000000, 0});
      break;
    default:
      return refused("elements of this type have no order");
  }
  return xla::ffi::Error::Success();
} catch (const std::bad_alloc&) {
  return xla::ffi::Error(xla::ffi::ErrorCode::kResourceExhausted, "phlox_kernels: not enough memory");
}

}  // namespace phlox_kernels

#endif  // PHLOX_KERNELS_HANDLER_H_
