#include <algorithm>

#include "encoding/gaussian_encode.h"
#include "encoding/piece.h"

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

// dx = sum p (g1 + 2 x g2) for kRows entries, of which 'count' exist, and one vector of channels. It is added to to[r].
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

// The backward pass through the encoding y of component c of one node, a linear function of the moments X1 and X2 and
// of the masses S1 and S0. On input, 'g' holds the gradients of y; on output, those of X1 and X2. Adds to the gradients
// of mean and deviation: -(S1 g1 / sigma + 2 y1 g2) / sigma and -(2 y1 g1 + (3 y2 + 2 S0 / sigma) g2) / sigma.
template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void unfinish(const Encoding<T>& f, int64_t c, const T* grad, const T* grad_mass, const T* y,
                               const T* mass, int64_t width, T* g, T* g_mass, T* to_mu, T* to_sigma) {
  const int64_t d = f.channels;
  const T *mu = f.mu + c * d, *precision = f.precision + c * d;
  const T total = mass[0], count = mass[1];
  T to_total = grad_mass[0], to_count = grad_mass[1];
  over_channels<S>(d, [&]<typename V>(V, int64_t v) TORCH_GIC_LAMBDA {
    const auto mean = V::load(mu + v), inverse = V::load(precision + v), square = inverse * inverse;
    const auto g1 = V::load(grad + v), g2 = V::load(grad + d + v), y1 = V::load(y + v), y2 = V::load(y + d + v);
    const auto first = g1 * square, second = g2 * square * inverse;
    V::store(g + v, first - 2 * mean * second);
    V::store(g + width + v, second);
    const auto by_total = mean * (mean * second - first), by_count = -g2 * inverse;
    for (int64_t l = 0; l < V::kLanes; ++l) to_total += by_total[l];
    for (int64_t l = 0; l < V::kLanes; ++l) to_count += by_count[l];
    V::store(to_mu + v, V::load(to_mu + v) - (total * inverse * g1 + 2 * y1 * g2) * inverse);
    V::store(to_sigma + v, V::load(to_sigma + v) - (2 * y1 * g1 + (3 * y2 + 2 * count * inverse) * g2) * inverse);
  });
  g_mass[0] = to_total;
  g_mass[1] = to_count;
}

template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void backward(const Encoding<T>& f, const T* grad, const T* grad_mass, const T* encoding,
                               const T* mass, const Gradients<T>& to, int64_t begin, int64_t end) {
  using Vec = typename S::Vec;
  constexpr int64_t lanes = S::kLanes;
  const int64_t d = f.channels, kc = f.scales * f.components, components = f.components;
  const int64_t features = to.to_x ? d : 0, row_size = features + (f.distance ? kc : 0);
  Piece<S> s(f, true);
  std::vector<T> g_mass(kc * 2);
  T* rows[kPiece];
  for (int64_t i = begin; i < end; ++i) {
    if (f.rowptr[i] == f.rowptr[i + 1]) continue;
    for (int64_t c = 0; c < kc; ++c) {
      const int64_t row = i * kc + c;
      unfinish<S>(f, c, grad + row * 2 * d, grad_mass + row * 2, encoding + row * 2 * d, mass + row * 2, s.width,
                  &s.g[c * 2 * s.width], &g_mass[c * 2], to.mu + c * d, to.sigma + c * d);
    }
    for (int64_t e = f.rowptr[i]; e < f.rowptr[i + 1]; e += kPiece) {
      const int64_t n = std::min(kPiece, f.rowptr[i + 1] - e), end_lane = padded<S>(n);
      for (int64_t j = 0; j < n; ++j) rows[j] = to.member + (f.member[e + j] - to.first) * row_size;
      gather<S>(f, s, e, n);
      for (int64_t v = 0; v < features; v += lanes) {
        const int64_t channels = std::min(lanes, d - v);
        for (int64_t j = 0; j < n; j += kRows) {
          T* at[kRows];
          const int64_t count = std::min(kRows, n - j);
          for (int64_t r = 0; r < count; ++r) at[r] = rows[j + r] + v;
          attribute_tile<S>(&s.x[j * s.width + v], &s.g[v], s.width, &s.p[j], kc, at, count, channels);
        }
      }
      if (!f.distance && !to.weight) continue;

      for (int64_t c = 0; c < d; ++c) {
        for (int64_t j = 0; j < end_lane; ++j) s.xt[c * kPiece + j] = s.x[j * s.width + c];
      }
      for (int64_t c = 0; c < kc; c += kRows) {
        for (int64_t l = 0; l < end_lane; l += lanes) {
          posterior_tile<S>(&s.xt[l], &s.g[c * 2 * s.width], s.width, d, &s.dp[c * kPiece + l]);
        }
      }
      // Backward through the softmax, with lanes over the entries. The gradient of the logits replaces dp.
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
        for (int64_t k = 0; k < f.scales; ++k) {
          T to_weight = s.a[k * kPiece + j];
          if (f.distance) {
            const T* distance = f.distance + f.member[e + j] * kc;
            const T a = f.weight[(e + j) * f.scales + k];
            for (int64_t c = k * components; c < (k + 1) * components; ++c) {
              const T logit = s.dp[c * kPiece + j];
              to.prior[c] += logit;
              rows[j][features + c] -= a / 2 * logit;
              to_weight -= distance[c] / 2 * logit;
            }
          }
          if (to.weight) to.weight[(e + j) * f.scales + k] = to_weight;
        }
      }
    }
  }
}

// The same loops for each target: the attribute of a function also holds for what is inlined into it.
template <typename T>
using Backward = void(const Encoding<T>&, const T*, const T*, const T*, const T*, const Gradients<T>&, int64_t,
                      int64_t);

#define TORCH_GIC_VARIANT(suffix, attribute, bytes)                                                                 \
  template <typename T>                                                                                             \
  attribute void backward_##suffix(const Encoding<T>& fields, const T* grad, const T* grad_mass, const T* encoding, \
                                   const T* mass, const Gradients<T>& to, int64_t begin, int64_t end) {             \
    backward<Simd<T, bytes>>(fields, grad, grad_mass, encoding, mass, to, begin, end);                              \
  }

TORCH_GIC_VARIANT(any, , 16)
#if TORCH_GIC_X86
TORCH_GIC_VARIANT(avx2, TORCH_GIC_AVX2, 32)
TORCH_GIC_VARIANT(avx512, TORCH_GIC_AVX512, 64)
#endif

}  // namespace

template <typename T>
void gaussian_encode_backward(const Encoding<T>& fields, const T* grad, const T* grad_mass, const T* encoding,
                              const T* mass, const Gradients<T>& to, int64_t begin, int64_t end) {
  static Backward<T>* const kernel = TORCH_GIC_CHOOSE(Backward<T>, backward);
  kernel(fields, grad, grad_mass, encoding, mass, to, begin, end);
}

template Backward<float> gaussian_encode_backward<float>;
template Backward<double> gaussian_encode_backward<double>;

}  // namespace torch_gic
