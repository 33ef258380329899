#include "encode_moments.h"

#include <algorithm>

#include "encode_piece.h"

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
  for (int64_t r = 0; r < kRows; ++r) {  // of constant length: registers have no index
    if (r >= rows) break;
    S::write(out + 2 * r * d, one[r], channels, add);
    S::write(out + (2 * r + 1) * d, two[r], channels, add);
  }
}

template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void forward(const Fields<T>& f, T* moments, T* mass, int64_t begin, int64_t end) {
  constexpr int64_t lanes = S::kLanes;
  const int64_t d = f.channels, kc = f.scales * f.components;
  Piece<S> s(f, false);
  int64_t entries[kPiece];
  for (int64_t i = begin; i < end; ++i) {
    T* out = moments + i * kc * 2 * d;
    T* total = mass + i * kc * 2;
    std::fill(total, total + kc * 2, T(0));
    if (f.rowptr[i] == f.rowptr[i + 1]) std::fill(out, out + kc * 2 * d, T(0));
    for (int64_t e = f.rowptr[i]; e < f.rowptr[i + 1]; e += kPiece) {
      const int64_t n = std::min(kPiece, f.rowptr[i + 1] - e);
      const bool add = e > f.rowptr[i];
      for (int64_t j = 0; j < n; ++j) entries[j] = f.entry ? f.entry[e + j] : e + j;
      gather<S>(f, s, entries, n);
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
  }
}

// The same loops for each target; the attribute of a function decides for what its inlined body is compiled.
template <typename T>
using Forward = void(const Fields<T>&, T*, T*, int64_t, int64_t);

template <typename T>
void forward_any(const Fields<T>& fields, T* moments, T* mass, int64_t begin, int64_t end) {
  forward<Simd<T, 16>>(fields, moments, mass, begin, end);
}

#if TORCH_GIC_X86
template <typename T>
TORCH_GIC_AVX2 void forward_avx2(const Fields<T>& fields, T* moments, T* mass, int64_t begin, int64_t end) {
  forward<Simd<T, 32>>(fields, moments, mass, begin, end);
}

template <typename T>
TORCH_GIC_AVX512 void forward_avx512(const Fields<T>& fields, T* moments, T* mass, int64_t begin, int64_t end) {
  forward<Simd<T, 64>>(fields, moments, mass, begin, end);
}
#endif

}  // namespace

template <typename T>
void encode_moments(const Fields<T>& fields, T* moments, T* mass, int64_t begin, int64_t end) {
  static Forward<T>* const kernel = TORCH_GIC_CHOOSE(Forward<T>, forward);
  kernel(fields, moments, mass, begin, end);
}

template Forward<float> encode_moments<float>;
template Forward<double> encode_moments<double>;

}  // namespace torch_gic
