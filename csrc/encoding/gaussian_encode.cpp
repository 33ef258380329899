#include "encoding/gaussian_encode.h"

#include <algorithm>

#include "encoding/piece.h"

namespace torch_gic {
namespace {

// One vector of channels of the moments of x, and of x^2 d numbers further on, for kRows rows, of which 'rows' exist.
template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void moment_tile(const T* x, int64_t width, const T* p, int64_t n, T* out, int64_t d, int64_t rows,
                                  int64_t channels, bool add) {
  using Vec = typename S::Vec;
  constexpr int64_t lanes = S::kLanes;
  Vec one[kRows], two[kRows];
  for (int64_t r = 0; r < kRows; ++r) one[r] = two[r] = Vec{};
  for (int64_t j = 0; j < n; ++j) {
    const Vec v = S::load(x + j * width), square = v * v;
    for (int64_t r = 0; r < kRows; ++r) {
      one[r] += p[r * kPiece + j] * v;
      two[r] += p[r * kPiece + j] * square;
    }
  }
#pragma GCC unroll 6
  for (int64_t r = 0; r < kRows; ++r) {  // a constant length, so that the sums stay in registers
    if (r >= rows) break;
    S::write(out + 2 * r * d, one[r], channels, add);
    S::write(out + (2 * r + 1) * d, two[r], channels, add);
  }
}

// Replaces the moments X1 = sum aQ x and X2 = sum aQ x^2 of component c by the gradients of mean and deviation:
// (X1 - mu S1) / sigma^2 and (X2 - 2 mu X1 + mu^2 S1) / sigma^3 - S0 / sigma.
template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void finish(const Encoding<T>& f, int64_t c, T total, T count, T* out) {
  const int64_t d = f.channels;
  const T *mu = f.mu + c * d, *precision = f.precision + c * d;
  over_channels<S>(d, [&]<typename V>(V, int64_t v) TORCH_GIC_LAMBDA {
    const auto mean = V::load(mu + v), one = V::load(out + v), two = V::load(out + d + v);
    const auto inverse = V::load(precision + v);
    V::store(out + v, (one - mean * total) * inverse * inverse);
    V::store(out + d + v, ((two - mean * (2 * one - mean * total)) * inverse * inverse - count) * inverse);
  });
}

template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void forward(const Encoding<T>& f, T* encoding, T* mass, int64_t begin, int64_t end) {
  constexpr int64_t lanes = S::kLanes;
  const int64_t d = f.channels, kc = f.scales * f.components;
  Piece<S> s(f, false);
  for (int64_t i = begin; i < end; ++i) {
    T* out = encoding + i * kc * 2 * d;
    T* total = mass + i * kc * 2;
    std::fill(total, total + kc * 2, T(0));
    if (f.rowptr[i] == f.rowptr[i + 1]) std::fill(out, out + kc * 2 * d, T(0));
    for (int64_t e = f.rowptr[i]; e < f.rowptr[i + 1]; e += kPiece) {
      const int64_t n = std::min(kPiece, f.rowptr[i + 1] - e);
      const bool add = e > f.rowptr[i];
      gather<S>(f, s, e, n);
      for (int64_t c = 0; c < kc; ++c) {
        total[c * 2] += S::sum(&s.p[c * kPiece], n);  // zero in the lanes beyond the last entry
        total[c * 2 + 1] += S::sum(&s.q[c * kPiece], n);
      }
      for (int64_t c = 0; c < kc; c += kRows) {
        for (int64_t v = 0; v < d; v += lanes) {
          const int64_t channels = std::min(lanes, d - v);
          moment_tile<S>(&s.x[v], s.width, &s.p[c * kPiece], n, out + c * 2 * d + v, d, std::min(kRows, kc - c),
                         channels, add);
        }
      }
    }
    for (int64_t c = 0; c < kc; ++c) finish<S>(f, c, total[c * 2], total[c * 2 + 1], out + c * 2 * d);
  }
}

// The same loops for each target: the attribute of a function also holds for what is inlined into it.
template <typename T>
using Forward = void(const Encoding<T>&, T*, T*, int64_t, int64_t);

template <typename T>
void forward_any(const Encoding<T>& fields, T* encoding, T* mass, int64_t begin, int64_t end) {
  forward<Simd<T, 16>>(fields, encoding, mass, begin, end);
}

#if TORCH_GIC_X86
template <typename T>
TORCH_GIC_AVX2 void forward_avx2(const Encoding<T>& fields, T* encoding, T* mass, int64_t begin, int64_t end) {
  forward<Simd<T, 32>>(fields, encoding, mass, begin, end);
}

template <typename T>
TORCH_GIC_AVX512 void forward_avx512(const Encoding<T>& fields, T* encoding, T* mass, int64_t begin, int64_t end) {
  forward<Simd<T, 64>>(fields, encoding, mass, begin, end);
}
#endif

}  // namespace

template <typename T>
void gaussian_encode(const Encoding<T>& fields, T* encoding, T* mass, int64_t begin, int64_t end) {
  static Forward<T>* const kernel = TORCH_GIC_CHOOSE(Forward<T>, forward);
  kernel(fields, encoding, mass, begin, end);
}

template Forward<float> gaussian_encode<float>;
template Forward<double> gaussian_encode<double>;

}  // namespace torch_gic
