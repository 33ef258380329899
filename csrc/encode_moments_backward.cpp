#include <algorithm>

#include "encode_moments.h"
#include "encode_piece.h"

namespace torch_gic {
namespace {

// dp = g1 x + g2 x^2 for kRows rows (scale, component) and one vector of entries.
template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void posterior_tile(const T* xt, const T* g, int64_t width, int64_t d, T* dp) {
  using Vec = typename S::Vec;
  Vec one[kRows], two[kRows];
  for (int64_t r = 0; r < kRows; ++r) one[r] = two[r] = Vec{};
  for (int64_t c = 0; c < d; ++c) {
    const Vec v = S::load(xt + c * kPiece), square = v * v;
    for (int64_t r = 0; r < kRows; ++r) {
      one[r] += g[r * 2 * width + c] * v;
      two[r] += g[r * 2 * width + width + c] * square;
    }
  }
  for (int64_t r = 0; r < kRows; ++r) S::store(dp + r * kPiece, one[r] + two[r]);
}

// dx = sum p (g1 + 2 x g2) for kRows entries, of which 'count' exist, and one vector of channels; added at to[r].
template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void attribute_tile(const T* x, const T* g, int64_t width, const T* p, int64_t kc, T* const* to,
                                     int64_t count, int64_t channels) {
  using Vec = typename S::Vec;
  Vec one[kRows], two[kRows];
  for (int64_t r = 0; r < kRows; ++r) one[r] = two[r] = Vec{};
  for (int64_t c = 0; c < kc; ++c) {
    const Vec first = S::load(g + c * 2 * width), second = S::load(g + c * 2 * width + width);
    for (int64_t r = 0; r < kRows; ++r) {
      one[r] += p[c * kPiece + r] * first;
      two[r] += p[c * kPiece + r] * second;
    }
  }
#pragma GCC unroll 6
  for (int64_t r = 0; r < kRows; ++r) {
    if (r >= count) break;
    S::write(to[r], one[r] + 2 * S::load(x + r * width) * two[r], channels, true);
  }
}

template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void backward(const Fields<T>& f, const T* grad_moments, const T* grad_mass, bool to_x, T* grad_member,
                               int64_t first, T* grad_prior, T* grad_weight, int64_t begin, int64_t end) {
  using Vec = typename S::Vec;
  constexpr int64_t lanes = S::kLanes;
  const int64_t d = f.channels, kc = f.scales * f.components, components = f.components;
  const int64_t attributes = to_x ? d : 0;  // of a row of grad_member, before the distances
  Piece<S> s(f, true);
  int64_t entries[kPiece];
  T* rows[kPiece];
  for (int64_t i = begin; i < end; ++i) {
    if (f.rowptr[i] == f.rowptr[i + 1]) continue;
    for (int64_t c = 0; c < 2 * kc; ++c) {
      std::memcpy(&s.g[c * s.width], grad_moments + (i * 2 * kc + c) * d, d * sizeof(T));
    }
    const T* g_mass = grad_mass + i * kc * 2;
    for (int64_t e = f.rowptr[i]; e < f.rowptr[i + 1]; e += kPiece) {
      const int64_t n = std::min(kPiece, f.rowptr[i + 1] - e), end_lane = padded<S>(n);
      for (int64_t j = 0; j < n; ++j) {
        entries[j] = f.entry ? f.entry[e + j] : e + j;
        rows[j] = grad_member + (f.member[entries[j]] - first) * (attributes + kc);
      }
      gather<S>(f, s, entries, n);
      for (int64_t c = 0; c < d; ++c) {
        for (int64_t j = 0; j < end_lane; ++j) s.xt[c * kPiece + j] = s.x[j * s.width + c];
      }

      for (int64_t c = 0; c < kc; c += kRows) {
        for (int64_t l = 0; l < end_lane; l += lanes) {
          const T* g = &s.g[c * 2 * s.width];
          T* dp = &s.dp[c * kPiece + l];
          posterior_tile<S>(&s.xt[l], g, s.width, d, dp);
        }
      }

      for (int64_t v = 0; v < attributes; v += lanes) {
        const int64_t channels = std::min(lanes, d - v);
        for (int64_t j = 0; j < n; j += kRows) {
          T* to[kRows];
          const int64_t count = std::min(kRows, n - j);
          for (int64_t r = 0; r < count; ++r) to[r] = rows[j + r] + v;
          const T* x = &s.x[j * s.width + v];
          const T* p = &s.p[j];
          attribute_tile<S>(x, &s.g[v], s.width, p, kc, to, count, channels);
        }
      }

      // Through the softmax, lanes over the entries; dp is replaced by the gradient of the logits.
      for (int64_t k = 0; k < f.scales; ++k) {
        const int64_t c0 = k * components;
        for (int64_t l = 0; l < end_lane; l += lanes) {
          const Vec a = S::load(&s.a[k * kPiece + l]);
          Vec mean = {}, to_weight = {};
          for (int64_t c = c0; c < c0 + components; ++c) {
            const Vec q = S::load(&s.q[c * kPiece + l]), dp = S::load(&s.dp[c * kPiece + l]) + g_mass[c * 2];
            to_weight += q * dp;
            const Vec dq = a * dp + g_mass[c * 2 + 1];
            mean += q * dq;
            S::store(&s.dp[c * kPiece + l], dq);
          }
          for (int64_t c = c0; c < c0 + components; ++c) {
            const Vec logit = S::load(&s.q[c * kPiece + l]) * (S::load(&s.dp[c * kPiece + l]) - mean);
            S::store(&s.dp[c * kPiece + l], logit);
          }
          S::store(&s.a[k * kPiece + l], to_weight);
        }
      }
      for (int64_t j = 0; j < n; ++j) {
        const T* distance = f.distance + f.member[entries[j]] * kc;
        T* to_distance = rows[j] + attributes;
        for (int64_t k = 0; k < f.scales; ++k) {
          const T a = f.weight[entries[j] * f.scales + k];
          T to_weight = s.a[k * kPiece + j];
          for (int64_t c = k * components; c < (k + 1) * components; ++c) {
            const T logit = s.dp[c * kPiece + j];
            grad_prior[c] += logit;
            to_distance[c] -= a / 2 * logit;
            to_weight -= distance[c] / 2 * logit;
          }
          grad_weight[entries[j] * f.scales + k] = to_weight;
        }
      }
    }
  }
}

template <typename T>
using Backward = void(const Fields<T>&, const T*, const T*, bool, T*, int64_t, T*, T*, int64_t, int64_t);

template <typename T>
void backward_any(const Fields<T>& fields, const T* grad_moments, const T* grad_mass, bool to_x, T* grad_member,
                  int64_t first, T* grad_prior, T* grad_weight, int64_t begin, int64_t end) {
  backward<Simd<T, 16>>(fields, grad_moments, grad_mass, to_x, grad_member, first, grad_prior, grad_weight, begin, end);
}

#if TORCH_GIC_X86
template <typename T>
TORCH_GIC_AVX2 void backward_avx2(const Fields<T>& fields, const T* grad_moments, const T* grad_mass, bool to_x,
                                  T* grad_member, int64_t first, T* grad_prior, T* grad_weight, int64_t begin,
                                  int64_t end) {
  backward<Simd<T, 32>>(fields, grad_moments, grad_mass, to_x, grad_member, first, grad_prior, grad_weight, begin, end);
}

template <typename T>
TORCH_GIC_AVX512 void backward_avx512(const Fields<T>& fields, const T* grad_moments, const T* grad_mass, bool to_x,
                                      T* grad_member, int64_t first, T* grad_prior, T* grad_weight, int64_t begin,
                                      int64_t end) {
  backward<Simd<T, 64>>(fields, grad_moments, grad_mass, to_x, grad_member, first, grad_prior, grad_weight, begin, end);
}
#endif

}  // namespace

template <typename T>
void encode_moments_backward(const Fields<T>& fields, const T* grad_moments, const T* grad_mass, bool to_x,
                             T* grad_member, int64_t first, T* grad_prior, T* grad_weight, int64_t begin, int64_t end) {
  static Backward<T>* const kernel = TORCH_GIC_CHOOSE(Backward<T>, backward);
  kernel(fields, grad_moments, grad_mass, to_x, grad_member, first, grad_prior, grad_weight, begin, end);
}

template Backward<float> encode_moments_backward<float>;
template Backward<double> encode_moments_backward<double>;

}  // namespace torch_gic
