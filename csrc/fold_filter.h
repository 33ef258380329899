// Means and deviations folded into the weights of a filter, forward and backward. No torch headers.
#pragma once

#include <cstdint>

namespace torch_gic {

// mu and inverse [components, channels]: the means and the inverse deviations of all components.
template <typename T>
struct Mixtures {
  int64_t components, channels;
  const T *mu, *inverse;
};

// Of the filters begin .. end - 1: weight and to_moments [filters, components, 2, channels], to_mass [filters,
// components, 2].
template <typename T>
void fold_filter(const Mixtures<T>& mixtures, const T* weight, T* to_moments, T* to_mass, int64_t begin, int64_t end);

// Of all filters, in the places of the components begin .. end - 1: grad_weight as weight, grad_mu and grad_sigma as
// mu.
template <typename T>
void fold_filter_backward(const Mixtures<T>& mixtures, const T* grad_moments, const T* grad_mass, const T* weight,
                          int64_t filters, T* grad_weight, T* grad_mu, T* grad_sigma, int64_t begin, int64_t end);

}  // namespace torch_gic
