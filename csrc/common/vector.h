// Short vectors in the compiler's own notation, as wide as the registers of each target, and the choice of the target.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define TORCH_GIC_INLINE inline __attribute__((always_inline))
#define TORCH_GIC_LAMBDA __attribute__((always_inline))

// On x86-64 the same loops are compiled for three generations of processors, and the one at hand is chosen at run time.
// Elsewhere they are compiled once, for the target of the compiler.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TORCH_GIC_X86 1
#define TORCH_GIC_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define TORCH_GIC_AVX2 __attribute__((target("avx2,fma")))
// The variant of a function for the processor at hand: name_any, name_avx2 or name_avx512.
#define TORCH_GIC_CHOOSE(Function, name) torch_gic::choose<Function>(name##_any, name##_avx2, name##_avx512)
#else
#define TORCH_GIC_X86 0
#define TORCH_GIC_CHOOSE(Function, name) (name##_any)
#endif

namespace torch_gic {

#if TORCH_GIC_X86
template <typename Function>
Function* choose(Function* any, Function* avx2, Function* avx512) {
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2 : any;
}
#endif

template <typename T, int64_t kBytes>
struct Simd {
  using Scalar = T;
  typedef T Vec __attribute__((vector_size(kBytes)));
  typedef int32_t Int __attribute__((vector_size(kBytes)));
  static constexpr int64_t kLanes = kBytes / sizeof(T);
  // Exponents below this give zero. exp of it is far above the subnormal numbers (below 1e-38 in float32), which some
  // processors multiply far more slowly.
  static constexpr T kNegligible = -64;

  static TORCH_GIC_INLINE Vec load(const T* from) {
    Vec v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }

  static TORCH_GIC_INLINE void store(T* to, Vec v) { std::memcpy(to, &v, sizeof(v)); }

  // Stores the first 'count' lanes, or adds them to memory.
  static TORCH_GIC_INLINE void write(T* to, Vec v, int64_t count, bool add) {
    if (count == kLanes) {
      store(to, add ? load(to) + v : v);
    } else {
      T lanes[kLanes];
      store(lanes, v);
      for (int64_t l = 0; l < count; ++l) to[l] = add ? to[l] + lanes[l] : lanes[l];
    }
  }

  // The sum of n numbers, which are padded with zeros to whole vectors.
  static TORCH_GIC_INLINE T sum(const T* from, int64_t n) {
    Vec total = {};
    for (int64_t l = 0; l < n; l += kLanes) total += load(from + l);
    T result = 0;
    for (int64_t l = 0; l < kLanes; ++l) result += total[l];
    return result;
  }

  static TORCH_GIC_INLINE bool all_zero(Vec v) {
    uint64_t bits[kBytes / 8], any = 0;
    std::memcpy(bits, &v, sizeof(v));
    for (const uint64_t word : bits) any |= word;
    return any == 0;
  }

  // exp(x) for x <= 0, and zero for x below kNegligible. In float32 it has a relative error of 1e-7: range reduction to
  // [-ln 2 / 2, ln 2 / 2] and the polynomial of Cephes. Without branches and calls, it stays in vector registers.
  // float64 is for tests.
  static TORCH_GIC_INLINE Vec exp_negative(Vec x) {
    const auto negligible = x < kNegligible;
    x = negligible ? Vec{} : x;
    if constexpr (sizeof(T) == 4) {
      const Int n = __builtin_convertvector(x * 1.44269504f - 0.5f, Int);  // to nearest: casts truncate, and x <= 0
      const Vec f = __builtin_convertvector(n, Vec);
      const Vec r = x - f * 0.693359375f + f * 2.12194440e-4f;
      Vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
      p = p * r + 8.3334519073e-3f;
      p = p * r + 4.1665795894e-2f;
      p = p * r + 1.6666665459e-1f;
      p = p * r + 5.0000001201e-1f;
      p = p * r * r + r + 1.0f;
      const Int power = (n + 127) << 23;
      Vec scale;
      std::memcpy(&scale, &power, sizeof(scale));
      return negligible ? Vec{} : p * scale;
    } else {
      for (int64_t l = 0; l < kLanes; ++l) x[l] = std::exp(x[l]);
      return negligible ? Vec{} : x;
    }
  }
};

}  // namespace torch_gic
