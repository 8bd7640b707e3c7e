// Which of the versions of the kernels runs on this processor.
#include "handler.h"

// The name of the instruction set, for people.
extern "C" PHLOX_KERNELS_EXPORTED const char* phlox_kernels_instructions() {
#ifdef PHLOX_KERNELS_HAS_CLONES
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4 (AVX-512)";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3 (AVX2)";
#endif
  return "the base instructions of this kind of processor";
}
