// For each vertex, the sums over its field are small matrix products: [KC, n] times [n, 2 d] forward, and two of the
// same size backward. Each is done in tiles of kRows rows times one vector that stay in registers over the whole sum.
#include "encode_moments.h"

#include <algorithm>
#include <vector>

#include "vector.h"

namespace torch_gic {
namespace {

constexpr int64_t kRows = 6;    // rows of a tile; twice as many sums run at once, enough to hide the latency of an FMA
constexpr int64_t kPiece = 64;  // field entries that are worked on at once

template <typename T>
TORCH_GIC_INLINE int64_t padded(int64_t size) {
  constexpr int64_t lanes = Vector<T>::kLanes;
  return (size + lanes - 1) / lanes * lanes;
}

template <typename T>
struct Piece {  // working memory of one thread; rows are padded to whole vectors
  int64_t width, kc;
  std::vector<T> x, a, q, p, xt, g, dp;

  Piece(const Fields<T>& f, bool backward) : width(padded<T>(f.channels)), kc(f.scales * f.components) {
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
template <typename T>
TORCH_GIC_INLINE void gather(const Fields<T>& f, Piece<T>& s, const int64_t* entries, int64_t n) {
  constexpr int64_t lanes = Vector<T>::kLanes;
  const int64_t components = f.components;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t member = f.member[entries[j]];
    std::memcpy(&s.x[j * s.width], f.x + member * f.channels, f.channels * sizeof(T));
    for (int64_t k = 0; k < f.scales; ++k) s.a[k * kPiece + j] = f.weight[entries[j] * f.scales + k];
    const T* distance = f.distance + member * s.kc;
    for (int64_t c = 0; c < s.kc; ++c) s.q[c * kPiece + j] = distance[c];
  }
  const int64_t end = padded<T>(n);
  for (int64_t j = n; j < end; ++j) {
    for (int64_t k = 0; k < f.scales; ++k) s.a[k * kPiece + j] = 0;
    for (int64_t c = 0; c < s.kc; ++c) s.q[c * kPiece + j] = 0;
  }
  for (int64_t k = 0; k < f.scales; ++k) {
    for (int64_t l = 0; l < end; l += lanes) {
      const Vec<T> a = load(&s.a[k * kPiece + l]);
      T* q = &s.q[k * components * kPiece + l];
      T* p = &s.p[k * components * kPiece + l];
      const T* prior = f.prior + k * components;
      Vec<T> highest = prior[0] - a / 2 * load(q);
      for (int64_t c = 0; c < components; ++c) {
        const Vec<T> logit = prior[c] - a / 2 * load(q + c * kPiece);
        highest = logit > highest ? logit : highest;
        store(p + c * kPiece, logit);
      }
      Vec<T> total = {};
      for (int64_t c = 0; c < components; ++c) {
        const Vec<T> e = exp_negative(load(p + c * kPiece) - highest);
        total += e;
        store(q + c * kPiece, e);
      }
      const Vec<T> present = a > 0 ? 1 / total : Vec<T>{};
      for (int64_t c = 0; c < components; ++c) {
        const Vec<T> posterior = load(q + c * kPiece) * present;
        store(q + c * kPiece, posterior);
        store(p + c * kPiece, posterior * a);
      }
    }
  }
}

// One vector of channels of the moments of x, and of x^2 d numbers further on, for kRows rows, of which 'rows' exist.
template <typename T>
TORCH_GIC_INLINE void moment_tile(const T* x, int64_t width, const T* p, int64_t n, T* out, int64_t d, int64_t rows,
                                  int64_t channels, bool add) {
  constexpr int64_t lanes = Vector<T>::kLanes;
  Vec<T> one[kRows], two[kRows];
  for (int64_t r = 0; r < kRows; ++r) one[r] = two[r] = Vec<T>{};
  for (int64_t j = 0; j < n; ++j) {
    const Vec<T> v = load(x + j * width), square = v * v;
    for (int64_t r = 0; r < kRows; ++r) {
      one[r] += p[r * kPiece + j] * v;
      two[r] += p[r * kPiece + j] * square;
    }
  }
  T sums[2][kRows][lanes];  // indexed below by numbers that only run time knows, which registers cannot be
  for (int64_t r = 0; r < kRows; ++r) {
    store(sums[0][r], one[r]);
    store(sums[1][r], two[r]);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t moment = 0; moment < 2; ++moment) {
      T* to = out + (2 * r + moment) * d;
      for (int64_t l = 0; l < channels; ++l) to[l] = sums[moment][r][l] + (add ? to[l] : 0);
    }
  }
}

template <typename T>
TORCH_GIC_INLINE void forward(const Fields<T>& f, T* moments, T* mass, int64_t begin, int64_t end) {
  constexpr int64_t lanes = Vector<T>::kLanes;
  const int64_t d = f.channels, kc = f.scales * f.components;
  Piece<T> s(f, false);
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
      gather(f, s, entries, n);
      for (int64_t c = 0; c < kc; ++c) {
        for (int64_t j = 0; j < n; ++j) {
          total[c * 2] += s.p[c * kPiece + j];
          total[c * 2 + 1] += s.q[c * kPiece + j];
        }
      }
      for (int64_t c = 0; c < kc; c += kRows) {
        for (int64_t v = 0; v < d; v += lanes) {
          const int64_t channels = std::min(lanes, d - v);
          moment_tile(&s.x[v], s.width, &s.p[c * kPiece], n, out + c * 2 * d + v, d, std::min(kRows, kc - c), channels,
                      add);
        }
      }
    }
  }
}

// dp = g1 x + g2 x^2 for kRows rows (scale, component) and one vector of entries.
template <typename T>
TORCH_GIC_INLINE void posterior_tile(const T* xt, const T* g, int64_t width, int64_t d, T* dp) {
  Vec<T> one[kRows], two[kRows];
  for (int64_t r = 0; r < kRows; ++r) one[r] = two[r] = Vec<T>{};
  for (int64_t c = 0; c < d; ++c) {
    const Vec<T> v = load(xt + c * kPiece), square = v * v;
    for (int64_t r = 0; r < kRows; ++r) {
      one[r] += g[r * 2 * width + c] * v;
      two[r] += g[r * 2 * width + width + c] * square;
    }
  }
  for (int64_t r = 0; r < kRows; ++r) store(dp + r * kPiece, one[r] + two[r]);
}

// dx = sum p (g1 + 2 x g2) for kRows entries, of which 'count' exist, and one vector of channels; added at to[r].
template <typename T>
TORCH_GIC_INLINE void attribute_tile(const T* x, const T* g, int64_t width, const T* p, int64_t kc, T* const* to,
                                     int64_t count, int64_t channels) {
  constexpr int64_t lanes = Vector<T>::kLanes;
  Vec<T> one[kRows], two[kRows];
  for (int64_t r = 0; r < kRows; ++r) one[r] = two[r] = Vec<T>{};
  for (int64_t c = 0; c < kc; ++c) {
    const Vec<T> first = load(g + c * 2 * width), second = load(g + c * 2 * width + width);
    for (int64_t r = 0; r < kRows; ++r) {
      one[r] += p[c * kPiece + r] * first;
      two[r] += p[c * kPiece + r] * second;
    }
  }
  T sums[kRows][lanes];
  for (int64_t r = 0; r < kRows; ++r) store(sums[r], one[r] + 2 * load(x + r * width) * two[r]);
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t l = 0; l < channels; ++l) to[r][l] += sums[r][l];
  }
}

template <typename T>
TORCH_GIC_INLINE void backward(const Fields<T>& f, const T* grad_moments, const T* grad_mass, T* grad_member,
                               int64_t first, T* grad_prior, T* grad_weight, int64_t begin, int64_t end) {
  constexpr int64_t lanes = Vector<T>::kLanes;
  const int64_t d = f.channels, kc = f.scales * f.components, components = f.components;
  Piece<T> s(f, true);
  int64_t entries[kPiece];
  T* rows[kPiece];
  for (int64_t i = begin; i < end; ++i) {
    if (f.rowptr[i] == f.rowptr[i + 1]) continue;
    for (int64_t c = 0; c < 2 * kc; ++c) {
      std::memcpy(&s.g[c * s.width], grad_moments + (i * 2 * kc + c) * d, d * sizeof(T));
    }
    const T* g_mass = grad_mass + i * kc * 2;
    for (int64_t e = f.rowptr[i]; e < f.rowptr[i + 1]; e += kPiece) {
      const int64_t n = std::min(kPiece, f.rowptr[i + 1] - e), end_lane = padded<T>(n);
      for (int64_t j = 0; j < n; ++j) {
        entries[j] = f.entry ? f.entry[e + j] : e + j;
        rows[j] = grad_member + (f.member[entries[j]] - first) * (d + kc);
      }
      gather(f, s, entries, n);
      for (int64_t c = 0; c < d; ++c) {
        for (int64_t j = 0; j < end_lane; ++j) s.xt[c * kPiece + j] = s.x[j * s.width + c];
      }

      for (int64_t c = 0; c < kc; c += kRows) {
        for (int64_t l = 0; l < end_lane; l += lanes) {
          const T* g = &s.g[c * 2 * s.width];
          T* dp = &s.dp[c * kPiece + l];
          posterior_tile(&s.xt[l], g, s.width, d, dp);
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
          attribute_tile(x, &s.g[v], s.width, p, kc, to, count, channels);
        }
      }

      // Through the softmax, lanes over the entries; dp is replaced by the gradient of the distance.
      for (int64_t k = 0; k < f.scales; ++k) {
        const int64_t c0 = k * components;
        for (int64_t l = 0; l < end_lane; l += lanes) {
          const Vec<T> a = load(&s.a[k * kPiece + l]);
          Vec<T> mean = {}, to_weight = {};
          for (int64_t c = c0; c < c0 + components; ++c) {
            const Vec<T> q = load(&s.q[c * kPiece + l]), dp = load(&s.dp[c * kPiece + l]) + g_mass[c * 2];
            to_weight += q * dp;
            const Vec<T> dq = a * dp + g_mass[c * 2 + 1];
            mean += q * dq;
            store(&s.dp[c * kPiece + l], dq);
          }
          for (int64_t c = c0; c < c0 + components; ++c) {
            const Vec<T> logit = load(&s.q[c * kPiece + l]) * (load(&s.dp[c * kPiece + l]) - mean);
            store(&s.dp[c * kPiece + l], logit);
          }
          store(&s.a[k * kPiece + l], to_weight);
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

}  // namespace

TORCH_GIC_CLONES void encode_moments(const Fields<float>& fields, float* moments, float* mass, int64_t begin,
                                     int64_t end) {
  forward(fields, moments, mass, begin, end);
}

TORCH_GIC_CLONES void encode_moments(const Fields<double>& fields, double* moments, double* mass, int64_t begin,
                                     int64_t end) {
  forward(fields, moments, mass, begin, end);
}

TORCH_GIC_CLONES void encode_moments_backward(const Fields<float>& fields, const float* grad_moments,
                                              const float* grad_mass, float* grad_member, int64_t first,
                                              float* grad_prior, float* grad_weight, int64_t begin, int64_t end) {
  backward(fields, grad_moments, grad_mass, grad_member, first, grad_prior, grad_weight, begin, end);
}

TORCH_GIC_CLONES void encode_moments_backward(const Fields<double>& fields, const double* grad_moments,
                                              const double* grad_mass, double* grad_member, int64_t first,
                                              double* grad_prior, double* grad_weight, int64_t begin, int64_t end) {
  backward(fields, grad_moments, grad_mass, grad_member, first, grad_prior, grad_weight, begin, end);
}

}  // namespace torch_gic
