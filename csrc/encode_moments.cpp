// For each vertex, the sums over its field are small matrix products: [KC, n] times [n, 2 d] forward, and two of the
// same size backward. Each is done in tiles of kRows rows times one vector that stay in registers over the whole sum.
#include "encode_moments.h"

#include <algorithm>
#include <vector>

#include "vector.h"

namespace torch_gic {
namespace {

// Rows of a tile. Its 12 sums fit 16 registers, and are enough to hide the latency of an FMA.
constexpr int64_t kRows = 6;
// Field entries that are worked on at once.
constexpr int64_t kPiece = 64;

template <typename S>
TORCH_GIC_INLINE int64_t padded(int64_t size) {
  constexpr int64_t lanes = S::kLanes;
  return (size + lanes - 1) / lanes * lanes;
}

template <typename S, typename T = typename S::Scalar>
struct Piece {  // working memory of one thread; rows are padded to whole vectors
  int64_t width, kc;
  std::vector<T> x, a, q, p, xt, g, dp;

  Piece(const Fields<T>& f, bool backward) : width(padded<S>(f.channels)), kc(f.scales * f.components) {
    // Tiles read up to kRows - 1 rows or entries beyond the last: there is memory for them, and nobody uses the result.
    x.resize((kPiece + kRows) * width);
    a.resize(f.scales * kPiece);
    q.resize(kc * kPiece);
    p.resize((kc + kRows) * kPiece);
    if (backward) {
      xt.resize(f.channels * kPiece);
      g.resize((kc + kRows) * 2 * width);
      dp.resize((kc + kRows) * kPiece);
    }
  }
};

// Gathers n entries: attributes, weights, and the posteriors q and a * q, with lanes over the entries.
template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void gather(const Fields<T>& f, Piece<S>& s, const int64_t* entries, int64_t n) {
  using Vec = typename S::Vec;
  constexpr int64_t lanes = S::kLanes;
  const int64_t components = f.components;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t member = f.member[entries[j]];
    std::memcpy(&s.x[j * s.width], f.x + member * f.channels, f.channels * sizeof(T));
    for (int64_t k = 0; k < f.scales; ++k) s.a[k * kPiece + j] = f.weight[entries[j] * f.scales + k];
    const T* distance = f.distance + member * s.kc;
    for (int64_t c = 0; c < s.kc; ++c) s.q[c * kPiece + j] = distance[c];
  }
  const int64_t end = padded<S>(n);
  for (int64_t j = n; j < end; ++j) {
    for (int64_t k = 0; k < f.scales; ++k) s.a[k * kPiece + j] = 0;
    for (int64_t c = 0; c < s.kc; ++c) s.q[c * kPiece + j] = 0;
  }
  for (int64_t k = 0; k < f.scales; ++k) {
    for (int64_t l = 0; l < end; l += lanes) {
      const Vec a = S::load(&s.a[k * kPiece + l]);
      T* q = &s.q[k * components * kPiece + l];
      T* p = &s.p[k * components * kPiece + l];
      const T* prior = f.prior + k * components;
      Vec highest = prior[0] - a / 2 * S::load(q);
      for (int64_t c = 0; c < components; ++c) {
        const Vec logit = prior[c] - a / 2 * S::load(q + c * kPiece);
        highest = logit > highest ? logit : highest;
        S::store(p + c * kPiece, logit);
      }
      Vec total = {};
      for (int64_t c = 0; c < components; ++c) {
        const Vec e = S::exp_negative(S::load(p + c * kPiece) - highest);
        total += e;
        S::store(q + c * kPiece, e);
      }
      const Vec present = a > 0 ? 1 / total : Vec{};
      for (int64_t c = 0; c < components; ++c) {
        const Vec posterior = S::load(q + c * kPiece) * present;
        S::store(q + c * kPiece, posterior);
        S::store(p + c * kPiece, posterior * a);
      }
    }
  }
}

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
  T sums[2][kRows][lanes];  // indexed below by numbers that only run time knows, which registers cannot be
  for (int64_t r = 0; r < kRows; ++r) {
    S::store(sums[0][r], one[r]);
    S::store(sums[1][r], two[r]);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t moment = 0; moment < 2; ++moment) {
      T* to = out + (2 * r + moment) * d;
      for (int64_t l = 0; l < channels; ++l) to[l] = sums[moment][r][l] + (add ? to[l] : 0);
    }
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
        for (int64_t j = 0; j < n; ++j) {
          total[c * 2] += s.p[c * kPiece + j];
          total[c * 2 + 1] += s.q[c * kPiece + j];
        }
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
  constexpr int64_t lanes = S::kLanes;
  Vec one[kRows], two[kRows];
  for (int64_t r = 0; r < kRows; ++r) one[r] = two[r] = Vec{};
  for (int64_t c = 0; c < kc; ++c) {
    const Vec first = S::load(g + c * 2 * width), second = S::load(g + c * 2 * width + width);
    for (int64_t r = 0; r < kRows; ++r) {
      one[r] += p[c * kPiece + r] * first;
      two[r] += p[c * kPiece + r] * second;
    }
  }
  T sums[kRows][lanes];
  for (int64_t r = 0; r < kRows; ++r) S::store(sums[r], one[r] + 2 * S::load(x + r * width) * two[r]);
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t l = 0; l < channels; ++l) to[r][l] += sums[r][l];
  }
}

template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void backward(const Fields<T>& f, const T* grad_moments, const T* grad_mass, T* grad_member,
                               int64_t first, T* grad_prior, T* grad_weight, int64_t begin, int64_t end) {
  using Vec = typename S::Vec;
  constexpr int64_t lanes = S::kLanes;
  const int64_t d = f.channels, kc = f.scales * f.components, components = f.components;
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
        rows[j] = grad_member + (f.member[entries[j]] - first) * (d + kc);
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

      for (int64_t v = 0; v < d; v += lanes) {
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
        T* to_distance = rows[j] + d;
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
using Forward = void(const Fields<T>&, T*, T*, int64_t, int64_t);
template <typename T>
using Backward = void(const Fields<T>&, const T*, const T*, T*, int64_t, T*, T*, int64_t, int64_t);

// The same loops for each target; the attribute of a function decides for what its inlined body is compiled.
template <typename T, typename... Rest>
void forward_any(const Fields<T>& fields, Rest... rest) {
  forward<Simd<T, 16>>(fields, rest...);
}

template <typename T, typename... Rest>
void backward_any(const Fields<T>& fields, Rest... rest) {
  backward<Simd<T, 16>>(fields, rest...);
}

#if TORCH_GIC_X86
template <typename T, typename... Rest>
TORCH_GIC_AVX2 void forward_avx2(const Fields<T>& fields, Rest... rest) {
  forward<Simd<T, 32>>(fields, rest...);
}

template <typename T, typename... Rest>
TORCH_GIC_AVX2 void backward_avx2(const Fields<T>& fields, Rest... rest) {
  backward<Simd<T, 32>>(fields, rest...);
}

template <typename T, typename... Rest>
TORCH_GIC_AVX512 void forward_avx512(const Fields<T>& fields, Rest... rest) {
  forward<Simd<T, 64>>(fields, rest...);
}

template <typename T, typename... Rest>
TORCH_GIC_AVX512 void backward_avx512(const Fields<T>& fields, Rest... rest) {
  backward<Simd<T, 64>>(fields, rest...);
}

template <typename Function>
Function* choose(Function* any, Function* avx2, Function* avx512) {
  if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) return avx512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? avx2 : any;
}
#endif

}  // namespace

template <typename T>
void encode_moments(const Fields<T>& fields, T* moments, T* mass, int64_t begin, int64_t end) {
#if TORCH_GIC_X86
  static Forward<T>* const kernel = choose<Forward<T>>(forward_any, forward_avx2, forward_avx512);
#else
  constexpr Forward<T>* kernel = forward_any;
#endif
  kernel(fields, moments, mass, begin, end);
}

template <typename T>
void encode_moments_backward(const Fields<T>& fields, const T* grad_moments, const T* grad_mass, T* grad_member,
                             int64_t first, T* grad_prior, T* grad_weight, int64_t begin, int64_t end) {
#if TORCH_GIC_X86
  static Backward<T>* const kernel = choose<Backward<T>>(backward_any, backward_avx2, backward_avx512);
#else
  constexpr Backward<T>* kernel = backward_any;
#endif
  kernel(fields, grad_moments, grad_mass, grad_member, first, grad_prior, grad_weight, begin, end);
}

template Forward<float> encode_moments<float>;
template Forward<double> encode_moments<double>;
template Backward<float> encode_moments_backward<float>;
template Backward<double> encode_moments_backward<double>;

}  // namespace torch_gic
