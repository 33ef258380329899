// The number, the mean and the spread of the members of each component, forward and backward.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/check.h"
#include "common/ops.h"
#include "common/parallel.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

// The same as MASS_SHRINKAGE and COUNT_SHRINKAGE in torch_gic/encoding/describe.py.
constexpr double kMassShrinkage = 0.1, kCountShrinkage = 1e-4;
constexpr int64_t kParts = 16, kGrain = 128;

struct Description {
  Tensor encoding, mass, sigma;
  int64_t nodes, scales, components, channels;

  Description(const Tensor& encoding_, const Tensor& mass_, const Tensor& sigma_) {
    const auto dtype = encoding_.scalar_type();
    STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double,
                    "Expected 'encoding' to hold float32 or float64 values");
    check_tensor(encoding_, "encoding", 5, dtype);
    check_tensor(mass_, "mass", 4, dtype);
    check_tensor(sigma_, "sigma", 3, dtype);
    nodes = encoding_.size(0), scales = encoding_.size(1), components = encoding_.size(2), channels = encoding_.size(4);
    check_size(encoding_, "encoding", 3, 2);
    const int64_t of_mass[4] = {nodes, scales, components, 2}, of_sigma[3] = {scales, components, channels};
    for (int64_t dim = 0; dim < 4; ++dim) check_size(mass_, "mass", dim, of_mass[dim]);
    for (int64_t dim = 0; dim < 3; ++dim) check_size(sigma_, "sigma", dim, of_sigma[dim]);
    encoding = torch::stable::contiguous(encoding_);
    mass = torch::stable::contiguous(mass_);
    sigma = torch::stable::contiguous(sigma_);
  }

  // Calls work(c, k C + c, 1 / m) for the components of one scale of a node, whose masses are at 'mass'.
  template <typename T, typename Work>
  void over_components(const T* mass, int64_t k, const Work& work) const {
    T whole = 0;
    for (int64_t c = 0; c < components; ++c) whole += mass[2 * c];
    for (int64_t c = 0; c < components; ++c) {
      const T all = mass[2 * c] + T(kMassShrinkage) * whole + T(kCountShrinkage) * mass[2 * c + 1];
      work(c, k * components + c, whole > 0 ? 1 / all : T(1));
    }
  }
};

template <typename T>
void forward(const Description& o, T* out) {
  const T *encoding = o.encoding.const_data_ptr<T>(), *mass = o.mass.const_data_ptr<T>(),
          *sigma = o.sigma.const_data_ptr<T>();
  const int64_t d = o.channels, kc = o.scales * o.components;
  parallel_for(0, o.nodes, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t k = 0; k < o.scales; ++k) {
        const T* masses = mass + (i * kc + k * o.components) * 2;
        o.over_components(masses, k, [&](int64_t c, int64_t at, T inverse) {
          const T *g = encoding + (i * kc + at) * 2 * d, *s = sigma + at * d;
          const T excess = masses[2 * c + 1] - masses[2 * c];
          T* y = out + (i * kc + at) * (2 * d + 1);
          *y++ = std::log1p(masses[2 * c + 1]);
          for (int64_t v = 0; v < d; ++v) {
            y[v] = g[v] * s[v] * inverse;
            y[d + v] = (g[d + v] * s[v] + excess) * inverse;
          }
        });
      }
    }
  });
}

// Each part of the nodes adds the gradients of the deviations into its own memory. The parts are then summed in order,
// so the bits do not depend on the number of threads.
template <typename T>
void backward(const Description& o, const T* grad, T* to_encoding, T* to_mass, T* to_sigma) {
  const T *encoding = o.encoding.const_data_ptr<T>(), *mass = o.mass.const_data_ptr<T>(),
          *sigma = o.sigma.const_data_ptr<T>();
  const int64_t d = o.channels, kc = o.scales * o.components;
  std::vector<std::vector<T>> parts(kParts);
  for_each_part(kParts, [&](int64_t part) {
    auto& sum = parts[part];
    sum.assign(kc * d, T(0));
    for (int64_t i = o.nodes * part / kParts; i < o.nodes * (part + 1) / kParts; ++i) {
      for (int64_t k = 0; k < o.scales; ++k) {
        const int64_t first = (i * kc + k * o.components) * 2;
        const T* masses = mass + first;
        T *to_masses = to_mass + first, to_whole = 0;
        o.over_components(masses, k, [&](int64_t c, int64_t at, T inverse) {
          const T *g = encoding + (i * kc + at) * 2 * d, *s = sigma + at * d,
                  *to_y = grad + (i * kc + at) * (2 * d + 1);
          const T excess = masses[2 * c + 1] - masses[2 * c], to_log = *to_y++;
          T *to_g = to_encoding + (i * kc + at) * 2 * d, *to_s = sum.data() + at * d, to_inverse = 0, to_excess = 0;
          for (int64_t v = 0; v < d; ++v) {
            const T by_sigma = to_y[v] * g[v] + to_y[d + v] * g[d + v];
            to_g[v] = to_y[v] * s[v] * inverse;
            to_g[d + v] = to_y[d + v] * s[v] * inverse;
            to_s[v] += by_sigma * inverse;
            to_inverse += by_sigma * s[v];
            to_excess += to_y[d + v];
          }
          to_inverse += to_excess * excess;
          to_excess *= inverse;
          const T to_m = -to_inverse * inverse * inverse;  // m is one over the inverse
          to_whole += T(kMassShrinkage) * to_m;
          to_masses[2 * c] = to_m - to_excess;
          to_masses[2 * c + 1] = to_log / (1 + masses[2 * c + 1]) + to_excess + T(kCountShrinkage) * to_m;
        });
        for (int64_t c = 0; c < o.components; ++c) to_masses[2 * c] += to_whole;
      }
    }
  });
  std::fill(to_sigma, to_sigma + kc * d, T(0));
  for (const auto& sum : parts) {
    for (int64_t c = 0; c < kc * d; ++c) to_sigma[c] += sum[c];
  }
}

}  // namespace

Tensor describe_cpu(Tensor encoding, Tensor mass, Tensor sigma) {
  const Description o(encoding, mass, sigma);
  Tensor out = torch::stable::new_empty(encoding, {o.nodes, o.scales, o.components, 2 * o.channels + 1});
  encoding.scalar_type() == ScalarType::Float ? forward(o, out.mutable_data_ptr<float>())
                                              : forward(o, out.mutable_data_ptr<double>());
  return out;
}

std::tuple<Tensor, Tensor, Tensor> describe_backward_cpu(Tensor grad, Tensor encoding, Tensor mass, Tensor sigma) {
  const Description o(encoding, mass, sigma);
  check_tensor(grad, "grad", 4, encoding.scalar_type());
  const int64_t shape[4] = {o.nodes, o.scales, o.components, 2 * o.channels + 1};
  for (int64_t dim = 0; dim < 4; ++dim) check_size(grad, "grad", dim, shape[dim]);
  grad = torch::stable::contiguous(grad);
  Tensor to_encoding = torch::stable::empty_like(o.encoding), to_mass = torch::stable::empty_like(o.mass),
         to_sigma = torch::stable::empty_like(o.sigma);
  const auto run = [&]<typename T>(T) {
    backward<T>(o, grad.const_data_ptr<T>(), to_encoding.mutable_data_ptr<T>(), to_mass.mutable_data_ptr<T>(),
                to_sigma.mutable_data_ptr<T>());
  };
  encoding.scalar_type() == ScalarType::Float ? run(float{}) : run(double{});
  return {to_encoding, to_mass, to_sigma};
}

}  // namespace torch_gic
