#include "fold_filter.h"

#include <vector>

#include "vector.h"

namespace torch_gic {
namespace {

template <typename T>
using One = Simd<T, sizeof(T)>;  // a single lane, for what is left of the channels

// One vector of channels of one component; 'weight' and 'to_moments' start there, their second rows d numbers further
// on.
template <typename S, typename T = typename S::Scalar, typename Vec = typename S::Vec>
TORCH_GIC_INLINE void fold(const T* weight, const T* mean, const T* inverse_deviation, int64_t d, T* to_moments,
                           Vec& total, Vec& number) {
  const Vec mu = S::load(mean), inverse = S::load(inverse_deviation), second_weight = S::load(weight + d);
  const Vec square = inverse * inverse;
  const Vec first = S::load(weight) * square, second = second_weight * square * inverse;
  S::store(to_moments, first - 2 * mu * second);
  S::store(to_moments + d, second);
  total += mu * (mu * second - first);
  number -= second_weight * inverse;
}

template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void forward(const Mixtures<T>& mixtures, const T* weight, T* to_moments, T* to_mass, int64_t begin,
                              int64_t end) {
  const int64_t d = mixtures.channels;
  for (int64_t row = begin * mixtures.components; row < end * mixtures.components; ++row) {
    const int64_t c = row % mixtures.components;
    const T *mu = mixtures.mu + c * d, *inverse = mixtures.inverse + c * d, *from = weight + row * 2 * d;
    T* to = to_moments + row * 2 * d;
    typename S::Vec totals = {}, numbers = {};
    typename One<T>::Vec total = {}, number = {};
    int64_t i = 0;
    for (; i + S::kLanes <= d; i += S::kLanes) fold<S>(from + i, mu + i, inverse + i, d, to + i, totals, numbers);
    for (; i < d; ++i) fold<One<T>>(from + i, mu + i, inverse + i, d, to + i, total, number);
    for (int64_t l = 0; l < S::kLanes; ++l) {
      total[0] += totals[l];
      number[0] += numbers[l];
    }
    to_mass[2 * row] = total[0];
    to_mass[2 * row + 1] = number[0];
  }
}

// Gradients by the powers of the inverse deviation, of the channels of one component, summed over the filters.
template <typename T>
struct Powers {
  T *one, *two, *three;
};

template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void fold_backward(const T* from, T total, T number, const T* weight, const T* mean,
                                    const T* inverse_deviation, int64_t d, int64_t i, T* grad_weight, T* grad_mu,
                                    const Powers<T>& powers) {
  using Vec = typename S::Vec;
  const Vec mu = S::load(mean + i), inverse = S::load(inverse_deviation + i);
  const Vec square = inverse * inverse, cube = square * inverse;
  const Vec first = S::load(weight + i), second = S::load(weight + d + i);
  const Vec one = S::load(from + i), two = S::load(from + d + i);
  const Vec to_first = one - mu * total, to_second = two - mu * (2 * one - mu * total);
  S::store(grad_weight + i, square * to_first);
  S::store(grad_weight + d + i, cube * to_second - inverse * number);
  S::store(grad_mu + i, S::load(grad_mu + i) + 2 * cube * second * (mu * total - one) - square * first * total);
  S::store(powers.one + i, S::load(powers.one + i) - second * number);
  S::store(powers.two + i, S::load(powers.two + i) + first * to_first);
  S::store(powers.three + i, S::load(powers.three + i) + second * to_second);
}

template <typename S, typename T = typename S::Scalar>
TORCH_GIC_INLINE void backward(const Mixtures<T>& mixtures, const T* grad_moments, const T* grad_mass, const T* weight,
                               int64_t filters, T* grad_weight, T* grad_mu, T* grad_sigma, int64_t begin, int64_t end) {
  const int64_t d = mixtures.channels;
  std::vector<T> sums(3 * d);
  const Powers<T> powers{sums.data(), sums.data() + d, sums.data() + 2 * d};
  for (int64_t c = begin; c < end; ++c) {
    const T *mu = mixtures.mu + c * d, *inverse = mixtures.inverse + c * d;
    T *to_mu = grad_mu + c * d, *to_sigma = grad_sigma + c * d;
    for (T& sum : sums) sum = 0;
    for (int64_t i = 0; i < d; ++i) to_mu[i] = 0;
    for (int64_t o = 0; o < filters; ++o) {
      const int64_t row = o * mixtures.components + c;
      const T *from = grad_moments + row * 2 * d, *w = weight + row * 2 * d;
      const T total = grad_mass[2 * row], number = grad_mass[2 * row + 1];
      T* to = grad_weight + row * 2 * d;
      int64_t i = 0;
      for (; i + S::kLanes <= d; i += S::kLanes) {
        fold_backward<S>(from, total, number, w, mu, inverse, d, i, to, to_mu, powers);
      }
      for (; i < d; ++i) fold_backward<One<T>>(from, total, number, w, mu, inverse, d, i, to, to_mu, powers);
    }
    for (int64_t i = 0; i < d; ++i) {
      const T by_square = 2 * powers.two[i] + 3 * inverse[i] * powers.three[i];
      to_sigma[i] = -inverse[i] * inverse[i] * (powers.one[i] + inverse[i] * by_square);
    }
  }
}

// The same loops for each target; the attribute of a function decides for what its inlined body is compiled.
template <typename T>
using Forward = void(const Mixtures<T>&, const T*, T*, T*, int64_t, int64_t);
template <typename T>
using Backward = void(const Mixtures<T>&, const T*, const T*, const T*, int64_t, T*, T*, T*, int64_t, int64_t);

#define TORCH_GIC_VARIANT(suffix, attribute, bytes)                                                                \
  template <typename T>                                                                                            \
  attribute void forward_##suffix(const Mixtures<T>& mixtures, const T* weight, T* to_moments, T* to_mass,         \
                                  int64_t begin, int64_t end) {                                                    \
    forward<Simd<T, bytes>>(mixtures, weight, to_moments, to_mass, begin, end);                                    \
  }                                                                                                                \
  template <typename T>                                                                                            \
  attribute void backward_##suffix(const Mixtures<T>& mixtures, const T* grad_moments, const T* grad_mass,         \
                                   const T* weight, int64_t filters, T* grad_weight, T* grad_mu, T* grad_sigma,    \
                                   int64_t begin, int64_t end) {                                                   \
    backward<Simd<T, bytes>>(mixtures, grad_moments, grad_mass, weight, filters, grad_weight, grad_mu, grad_sigma, \
                             begin, end);                                                                          \
  }

TORCH_GIC_VARIANT(any, , 16)
#if TORCH_GIC_X86
TORCH_GIC_VARIANT(avx2, TORCH_GIC_AVX2, 32)
TORCH_GIC_VARIANT(avx512, TORCH_GIC_AVX512, 64)
#endif

}  // namespace

template <typename T>
void fold_filter(const Mixtures<T>& mixtures, const T* weight, T* to_moments, T* to_mass, int64_t begin, int64_t end) {
  static Forward<T>* const kernel = TORCH_GIC_CHOOSE(Forward<T>, forward);
  kernel(mixtures, weight, to_moments, to_mass, begin, end);
}

template <typename T>
void fold_filter_backward(const Mixtures<T>& mixtures, const T* grad_moments, const T* grad_mass, const T* weight,
                          int64_t filters, T* grad_weight, T* grad_mu, T* grad_sigma, int64_t begin, int64_t end) {
  static Backward<T>* const kernel = TORCH_GIC_CHOOSE(Backward<T>, backward);
  kernel(mixtures, grad_moments, grad_mass, weight, filters, grad_weight, grad_mu, grad_sigma, begin, end);
}

template Forward<float> fold_filter<float>;
template Forward<double> fold_filter<double>;
template Backward<float> fold_filter_backward<float>;
template Backward<double> fold_filter_backward<double>;

}  // namespace torch_gic
