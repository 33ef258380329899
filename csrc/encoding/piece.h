// A piece of a receptive field: entries with their posteriors, gathered so that sums over them run in registers. For
// each node, these sums are small matrix products: [KC, n] times [n, 2 d] forward, and two of the same size backward.
// Each is computed in tiles of kRows rows times one vector, which stay in registers over the whole sum.
#pragma once

#include <vector>

#include "common/vector.h"
#include "encoding/gaussian_encode.h"

namespace torch_gic {

// Rows of a tile. Its 12 sums fit 16 registers, and are enough to hide the latency of an FMA.
constexpr int64_t kRows = 6;
// The number of field entries per piece.
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

  Piece(const Encoding<T>& f, bool backward) : width(padded<S>(f.channels)), kc(f.scales * f.components) {
    // Tiles read up to kRows - 1 rows or entries beyond the last. There is memory for them, and the result is not used.
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

// Gathers the n entries from 'first' on: features, weights, and the posteriors q and a * q, with lanes over the
// entries.
template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void gather(const Encoding<T>& f, Piece<S>& s, int64_t first, int64_t n) {
  using Vec = typename S::Vec;
  constexpr int64_t lanes = S::kLanes;
  const int64_t components = f.components;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t member = f.member[first + j];
    std::memcpy(&s.x[j * s.width], f.x + member * f.channels, f.channels * sizeof(T));
    for (int64_t k = 0; k < f.scales; ++k) s.a[k * kPiece + j] = f.weight[(first + j) * f.scales + k];
    if (!f.distance) continue;
    const T* distance = f.distance + member * s.kc;
    for (int64_t c = 0; c < s.kc; ++c) s.q[c * kPiece + j] = distance[c];
  }
  const int64_t end = padded<S>(n);
  for (int64_t j = n; j < end; ++j) {
    for (int64_t k = 0; k < f.scales; ++k) s.a[k * kPiece + j] = 0;
    for (int64_t c = 0; c < s.kc; ++c) s.q[c * kPiece + j] = 0;
  }
  if (!f.distance) {  // one component takes all
    for (int64_t k = 0; k < f.scales * kPiece; k += kPiece) {
      for (int64_t l = k; l < k + end; l += lanes) {
        const Vec a = S::load(&s.a[l]);
        S::store(&s.q[l], a > 0 ? Vec{} + 1 : Vec{});
        S::store(&s.p[l], a > 0 ? a : Vec{});
      }
    }
    return;
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

// Runs work(vector type, channel) over all channels: first in whole vectors, then the rest one by one.
template <typename S, typename Work>
TORCH_GIC_INLINE void over_channels(int64_t channels, const Work& work) {
  int64_t v = 0;
  for (; v + S::kLanes <= channels; v += S::kLanes) work(S{}, v);
  for (; v < channels; ++v) work(Simd<typename S::Scalar, sizeof(typename S::Scalar)>{}, v);
}

}  // namespace torch_gic
