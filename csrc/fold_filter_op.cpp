// Operator side of fold_filter: checks, memory, threads.
#include <torch/csrc/stable/ops.h>

#include "check.h"
#include "fold_filter.h"
#include "ops.h"
#include "parallel.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

struct Operands {
  Tensor weight, mu, sigma;
  int64_t filters, components, d;

  Operands(const Tensor& weight_, const Tensor& mu_, const Tensor& sigma_)
      : weight(torch::stable::contiguous(weight_)),
        mu(torch::stable::contiguous(mu_)),
        sigma(torch::stable::contiguous(sigma_)) {
    const auto dtype = weight.scalar_type();
    STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double,
                    "Expected 'weight' to hold float32 or float64 values");
    check_tensor(weight, "weight", 2, dtype);
    check_tensor(mu, "mu", 3, dtype);
    check_tensor(sigma, "sigma", 3, dtype);
    for (int64_t dim = 0; dim < 3; ++dim) check_size(sigma, "sigma", dim, mu.size(dim));
    filters = weight.size(0);
    components = mu.size(0) * mu.size(1);
    d = mu.size(2);
    check_size(weight, "weight", 1, components * 2 * d);
  }

  template <typename T>
  std::vector<T> inverse() const {
    const T* from = sigma.const_data_ptr<T>();
    std::vector<T> inverse(components * d);
    for (int64_t i = 0; i < components * d; ++i) inverse[i] = 1 / from[i];
    return inverse;
  }
};

template <typename T>
void forward(const Operands& operands, Tensor& to_moments, Tensor& to_mass) {
  const auto inverse = operands.inverse<T>();
  const Mixtures<T> mixtures{operands.components, operands.d, operands.mu.const_data_ptr<T>(), inverse.data()};
  const T* weight = operands.weight.const_data_ptr<T>();
  T *moments = to_moments.mutable_data_ptr<T>(), *mass = to_mass.mutable_data_ptr<T>();
  parallel_for(0, operands.filters, 16,
               [&](int64_t begin, int64_t end) { fold_filter(mixtures, weight, moments, mass, begin, end); });
}

// Components share nothing: the same bits on any number of threads.
template <typename T>
void backward(const Operands& operands, const Tensor& grad_moments, const Tensor& grad_mass, Tensor& grad_weight,
              Tensor& grad_mu, Tensor& grad_sigma) {
  const auto inverse = operands.inverse<T>();
  const Mixtures<T> mixtures{operands.components, operands.d, operands.mu.const_data_ptr<T>(), inverse.data()};
  const T* weight = operands.weight.const_data_ptr<T>();
  const T *moments = grad_moments.const_data_ptr<T>(), *mass = grad_mass.const_data_ptr<T>();
  T* to_weight = grad_weight.mutable_data_ptr<T>();
  T *to_mu = grad_mu.mutable_data_ptr<T>(), *to_sigma = grad_sigma.mutable_data_ptr<T>();
  parallel_for(0, operands.components, 1, [&](int64_t begin, int64_t end) {
    fold_filter_backward(mixtures, moments, mass, weight, operands.filters, to_weight, to_mu, to_sigma, begin, end);
  });
}

}  // namespace

std::tuple<Tensor, Tensor> fold_filter_cpu(Tensor weight, Tensor mu, Tensor sigma) {
  const Operands operands(weight, mu, sigma);
  Tensor to_moments = torch::stable::new_empty(weight, {operands.filters, operands.components * 2 * operands.d});
  Tensor to_mass = torch::stable::new_empty(weight, {operands.filters, operands.components * 2});
  if (weight.scalar_type() == ScalarType::Float) {
    forward<float>(operands, to_moments, to_mass);
  } else {
    forward<double>(operands, to_moments, to_mass);
  }
  return {to_moments, to_mass};
}

std::tuple<Tensor, Tensor, Tensor> fold_filter_backward_cpu(Tensor grad_moments, Tensor grad_mass, Tensor weight,
                                                            Tensor mu, Tensor sigma) {
  const Operands operands(weight, mu, sigma);
  grad_moments = torch::stable::contiguous(grad_moments);
  grad_mass = torch::stable::contiguous(grad_mass);
  check_tensor(grad_moments, "grad_moments", 2, weight.scalar_type());
  check_tensor(grad_mass, "grad_mass", 2, weight.scalar_type());
  check_size(grad_moments, "grad_moments", 0, operands.filters);
  check_size(grad_moments, "grad_moments", 1, weight.size(1));
  check_size(grad_mass, "grad_mass", 0, operands.filters);
  check_size(grad_mass, "grad_mass", 1, operands.components * 2);
  Tensor grad_weight = torch::stable::new_empty(weight, {operands.filters, weight.size(1)});
  Tensor grad_mu = torch::stable::new_empty(mu, {mu.size(0), mu.size(1), mu.size(2)});
  Tensor grad_sigma = torch::stable::new_empty(mu, {mu.size(0), mu.size(1), mu.size(2)});
  if (weight.scalar_type() == ScalarType::Float) {
    backward<float>(operands, grad_moments, grad_mass, grad_weight, grad_mu, grad_sigma);
  } else {
    backward<double>(operands, grad_moments, grad_mass, grad_weight, grad_mu, grad_sigma);
  }
  return {grad_weight, grad_mu, grad_sigma};
}

}  // namespace torch_gic
