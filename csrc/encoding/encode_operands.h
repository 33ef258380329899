// Operands of gaussian_encode: checks, features relative to a typical row, and distances to the components.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/check.h"
#include "common/parallel.h"
#include "encoding/gaussian_encode.h"

namespace torch_gic {

// A deviation that is NaN makes the output NaN. One that is not positive would pass unseen.
template <typename T>
void check_positive(const Tensor& sigma) {
  const T *values = sigma.const_data_ptr<T>(), *end = values + sigma.numel();
  const T* wrong = std::find_if(values, end, [](T value) { return value <= 0; });
  STD_TORCH_CHECK(wrong == end, "Expected 'sigma' to be positive (got ", *wrong, ")");
}

// The checked operands. Values of fields were checked when the fields were made.
struct EncodeOperands {
  Tensor x, mu, sigma, log_pi, weight, member, rowptr;
  int64_t num_nodes, num_members, scales, components, channels, kc;

  EncodeOperands(const Tensor& x_, const Tensor& mu_, const Tensor& sigma_, const Tensor& log_pi_,
                 const Tensor& weight_, const Tensor& member_, const Tensor& rowptr_)
      : x(torch::stable::contiguous(x_)),
        mu(torch::stable::contiguous(mu_)),
        sigma(torch::stable::contiguous(sigma_)),
        log_pi(torch::stable::contiguous(log_pi_)),
        weight(torch::stable::contiguous(weight_)),
        member(torch::stable::contiguous(member_)),
        rowptr(torch::stable::contiguous(rowptr_)) {
    const auto dtype = x.scalar_type();
    STD_TORCH_CHECK(dtype == torch::headeronly::ScalarType::Float || dtype == torch::headeronly::ScalarType::Double,
                    "Expected 'x' to hold float32 or float64 values");
    check_tensor(x, "x", 2, dtype);
    check_tensor(mu, "mu", 3, dtype);
    check_tensor(sigma, "sigma", 3, dtype);
    check_tensor(log_pi, "log_pi", 2, dtype);
    check_tensor(weight, "weight", 2, dtype);
    check_tensor(member, "member", 1, torch::headeronly::ScalarType::Long);
    check_tensor(rowptr, "rowptr", 1, torch::headeronly::ScalarType::Long);
    scales = mu.size(0);
    components = mu.size(1);
    channels = mu.size(2);
    check_size(x, "x", 1, channels);
    for (int64_t dim = 0; dim < 3; ++dim) check_size(sigma, "sigma", dim, mu.size(dim));
    for (int64_t dim = 0; dim < 2; ++dim) check_size(log_pi, "log_pi", dim, mu.size(dim));
    dtype == torch::headeronly::ScalarType::Float ? check_positive<float>(sigma) : check_positive<double>(sigma);
    check_size(weight, "weight", 0, member.size(0));
    check_size(weight, "weight", 1, scales);
    STD_TORCH_CHECK(components >= 1, "Expected 'mu' to hold at least one component per scale");
    num_nodes = rowptr.numel() - 1;
    num_members = x.size(0);
    kc = scales * components;
    const auto* ptr = rowptr.const_data_ptr<int64_t>();
    STD_TORCH_CHECK(num_nodes >= 0 && ptr[0] == 0 && ptr[num_nodes] == member.numel(),
                    "Expected 'rowptr' to begin with 0 and to end with ", member.numel(), ", the number of entries");
    check_sorted(ptr, num_nodes + 1, "rowptr");
    check_range(member, "member", num_members);
  }
};

// The median of some rows, in each channel. Features relative to it are small, so the sums lose few digits by
// cancellation. A single row that is far away or not finite does not change the median.
template <typename T>
inline std::vector<T> typical_row(const T* x, int64_t rows, int64_t channels) {
  constexpr int64_t kSample = 32;
  const int64_t step = std::max<int64_t>(rows / kSample, 1), count = std::min(rows, kSample);
  std::vector<T> centre(channels, 0), sample;
  for (int64_t v = 0; v < channels; ++v) {
    sample.clear();
    for (int64_t s = 0; s < count; ++s) {
      const T value = x[s * step * channels + v];
      if (std::isfinite(value)) sample.push_back(value);
    }
    if (sample.empty()) continue;
    const auto middle = sample.begin() + (sample.size() - 1) / 2;
    std::nth_element(sample.begin(), middle, sample.end());
    centre[v] = *middle;
  }
  return centre;
}

// What the kernels read: operands, and values computed from them.
template <typename T>
struct PreparedEncoding {
  std::vector<T> x, mu, precision, distance, prior;
  Encoding<T> fields;

  explicit PreparedEncoding(const EncodeOperands& o)
      : x(o.num_members * o.channels), mu(o.kc * o.channels), precision(o.kc * o.channels), prior(o.kc) {
    const int64_t d = o.channels;
    const T *means = o.mu.const_data_ptr<T>(), *deviations = o.sigma.const_data_ptr<T>();
    const T* from = o.x.const_data_ptr<T>();
    const std::vector<T> centre = typical_row(from, o.num_members, d);
    for (int64_t c = 0; c < o.kc; ++c) {
      double log_sigma = 0;
      for (int64_t v = 0; v < d; ++v) {
        mu[c * d + v] = means[c * d + v] - centre[v];
        precision[c * d + v] = 1 / deviations[c * d + v];
        if (o.components > 1) log_sigma += std::log(static_cast<double>(deviations[c * d + v]));
      }
      prior[c] = static_cast<T>(o.log_pi.const_data_ptr<T>()[c] - log_sigma);
    }
    if (o.components > 1) distance.resize(o.num_members * o.kc);
    parallel_for(0, o.num_members, 256, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        for (int64_t v = 0; v < d; ++v) x[j * d + v] = from[j * d + v] - centre[v];
        if (o.components > 1) measure(o, &x[j * d], &distance[j * o.kc]);
      }
    });
    fields = {d,
              o.scales,
              o.components,
              x.data(),
              distance.empty() ? nullptr : distance.data(),
              prior.data(),
              o.weight.const_data_ptr<T>(),
              o.member.const_data_ptr<int64_t>(),
              o.rowptr.const_data_ptr<int64_t>(),
              mu.data(),
              precision.data()};
  }

  // The squared distances of one member. Only their differences matter. They are computed in float64, so rounding does
  // not lose them for a member far from all components.
  void measure(const EncodeOperands& o, const T* member, T* to) const {
    const int64_t d = o.channels;
    constexpr int64_t kSums = 8;  // several sums, since the compiler may not reorder one
    double sums[kSums], total[256];
    for (int64_t k = 0; k < o.scales; ++k) {
      double smallest = std::numeric_limits<double>::infinity();
      std::vector<double> many(o.components > 256 ? o.components : 0);
      double* at = many.empty() ? total : many.data();
      for (int64_t c = 0; c < o.components; ++c) {
        const T *m = &mu[(k * o.components + c) * d], *p = &precision[(k * o.components + c) * d];
        for (double& sum : sums) sum = 0;
        int64_t v = 0;
        for (; v + kSums <= d; v += kSums) {
          for (int64_t s = 0; s < kSums; ++s) {
            const double z = (static_cast<double>(member[v + s]) - m[v + s]) * p[v + s];
            sums[s] += z * z;
          }
        }
        for (; v < d; ++v) {
          const double z = (static_cast<double>(member[v]) - m[v]) * p[v];
          sums[0] += z * z;
        }
        at[c] = 0;
        for (const double sum : sums) at[c] += sum;
        smallest = std::min(smallest, at[c]);
      }
      for (int64_t c = 0; c < o.components; ++c) {
        const double most = std::numeric_limits<T>::max();  // finite: a weight of zero times it is zero
        to[k * o.components + c] = static_cast<T>(std::min(at[c] - smallest, most));
      }
    }
  }
};

}  // namespace torch_gic
