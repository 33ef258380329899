// Means and deviations folded into the weights of a filter, forward and backward. No torch headers.
#pragma once

#include <cstdint>
#include <vector>

namespace torch_gic {

// Sums in several lanes: the compiler may not reorder a sum of floats by itself, and so could not use its vectors.
constexpr int64_t kSumLanes = 8;

template <typename T>
struct Sum {
  T lanes[kSumLanes] = {};

  T total() const {
    T sum = 0;
    for (const T lane : lanes) sum += lane;
    return sum;
  }
};

// Of one filter, in the places of 'count' components: weight and to_moments [count, 2, d], to_mass [count, 2],
// mu and inverse [count, d], the inverse deviations.
template <typename T>
void fold_filter(const T* weight, const T* mu, const T* inverse, int64_t count, int64_t d, T* to_moments, T* to_mass) {
  for (int64_t c = 0; c < count; ++c, mu += d, inverse += d, weight += 2 * d, to_moments += 2 * d) {
    Sum<T> total, number;
    for (int64_t begin = 0; begin < d; begin += kSumLanes) {
      const int64_t lanes = d - begin < kSumLanes ? d - begin : kSumLanes;
      for (int64_t l = 0; l < lanes; ++l) {
        const int64_t i = begin + l;
        const T square = inverse[i] * inverse[i];
        const T first = weight[i] * square, second = weight[d + i] * square * inverse[i];
        to_moments[i] = first - 2 * mu[i] * second;
        to_moments[d + i] = second;
        total.lanes[l] += mu[i] * (mu[i] * second - first);
        number.lanes[l] -= weight[d + i] * inverse[i];
      }
    }
    to_mass[2 * c] = total.total();
    to_mass[2 * c + 1] = number.total();
  }
}

// Of all filters, in the place of one component; 'stride' and 'mass_stride' lead from one filter to the next.
template <typename T>
void fold_filter_backward(const T* grad_moments, const T* grad_mass, const T* weight, const T* mu, const T* inverse,
                          int64_t filters, int64_t d, int64_t stride, int64_t mass_stride, T* grad_weight, T* grad_mu,
                          T* grad_sigma) {
  std::vector<T> one(d), two(d), three(d);  // gradients of the powers of the inverse deviation
  for (int64_t i = 0; i < d; ++i) grad_mu[i] = 0;
  for (int64_t o = 0; o < filters; ++o) {
    const T *from = grad_moments + o * stride, *w = weight + o * stride;
    const T total = grad_mass[o * mass_stride], number = grad_mass[o * mass_stride + 1];
    T* out = grad_weight + o * stride;
    for (int64_t i = 0; i < d; ++i) {
      const T square = inverse[i] * inverse[i], cube = square * inverse[i];
      const T to_first = from[i] - mu[i] * total;
      const T to_second = from[d + i] - mu[i] * (2 * from[i] - mu[i] * total);
      out[i] = square * to_first;
      out[d + i] = cube * to_second - inverse[i] * number;
      grad_mu[i] += 2 * cube * w[d + i] * (mu[i] * total - from[i]) - square * w[i] * total;
      one[i] -= w[d + i] * number;
      two[i] += w[i] * to_first;
      three[i] += w[d + i] * to_second;
    }
  }
  for (int64_t i = 0; i < d; ++i) {
    grad_sigma[i] = -inverse[i] * inverse[i] * (one[i] + inverse[i] * (2 * two[i] + 3 * inverse[i] * three[i]));
  }
}

}  // namespace torch_gic
