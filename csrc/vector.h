// Short vectors in the compiler's own notation: 64 bytes, which it maps to whatever registers the target has.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

// Functions marked so are compiled for several generations of x86-64, and the best one is chosen when the library
// loads. Elsewhere, and with compilers that do not know this, they are compiled once, for the target.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define TORCH_GIC_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TORCH_GIC_CLONES
#endif
#define TORCH_GIC_INLINE inline __attribute__((always_inline))

namespace torch_gic {

template <typename T>
struct Vector;

template <>
struct Vector<float> {
  static constexpr int64_t kLanes = 16;
  typedef float Type __attribute__((vector_size(64)));
  typedef int32_t Int __attribute__((vector_size(64)));
};

template <>
struct Vector<double> {
  static constexpr int64_t kLanes = 8;
  typedef double Type __attribute__((vector_size(64)));
};

template <typename T>
using Vec = typename Vector<T>::Type;

template <typename T>
TORCH_GIC_INLINE Vec<T> load(const T* from) {
  Vec<T> v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

template <typename T>
TORCH_GIC_INLINE void store(T* to, Vec<T> v) {
  std::memcpy(to, &v, sizeof(v));
}

// exp(x) for x <= 0, relative error 1e-7: range reduction to [-ln 2 / 2, ln 2 / 2] and the polynomial of Cephes.
// Without branches and calls, so that it stays in vector registers whatever the target is.
TORCH_GIC_INLINE Vec<float> exp_negative(Vec<float> x) {
  using Int = Vector<float>::Int;
  x = x < -87.0f ? Vec<float>{} - 87.0f : x;
  const Int n = __builtin_convertvector(x * 1.44269504f - 0.5f, Int);  // rounds to nearest: x <= 0, and casts truncate
  const Vec<float> f = __builtin_convertvector(n, Vec<float>);
  const Vec<float> r = x - f * 0.693359375f + f * 2.12194440e-4f;
  Vec<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Int power = (n + 127) << 23;
  Vec<float> scale;
  std::memcpy(&scale, &power, sizeof(scale));
  return p * scale;
}

// float64 is for proofs, not for speed.
TORCH_GIC_INLINE Vec<double> exp_negative(Vec<double> x) {
  for (int64_t l = 0; l < Vector<double>::kLanes; ++l) x[l] = std::exp(x[l]);
  return x;
}

}  // namespace torch_gic
