// Operator side of gaussian_encode: checks, distances to the components, memory, threads.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "common/check.h"
#include "common/large_pages.h"
#include "common/ops.h"
#include "common/parallel.h"
#include "encoding/gaussian_encode.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

// The operands as the kernels want them. Of values, only the ends of 'rowptr' are looked at: Fields have checked
// theirs.
struct Operands {
  Tensor x, mu, sigma, log_pi, weight, member, rowptr;
  int64_t num_nodes, num_members, scales, components, channels, kc;

  Operands(const Tensor& x_, const Tensor& mu_, const Tensor& sigma_, const Tensor& log_pi_, const Tensor& weight_,
           const Tensor& member_, const Tensor& rowptr_)
      : x(torch::stable::contiguous(x_)),
        mu(torch::stable::contiguous(mu_)),
        sigma(torch::stable::contiguous(sigma_)),
        log_pi(torch::stable::contiguous(log_pi_)),
        weight(torch::stable::contiguous(weight_)),
        member(torch::stable::contiguous(member_)),
        rowptr(torch::stable::contiguous(rowptr_)) {
    const auto dtype = x.scalar_type();
    STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double,
                    "Expected 'x' to hold float32 or float64 values");
    check_tensor(x, "x", 2, dtype);
    check_tensor(mu, "mu", 3, dtype);
    check_tensor(sigma, "sigma", 3, dtype);
    check_tensor(log_pi, "log_pi", 2, dtype);
    check_tensor(weight, "weight", 2, dtype);
    check_tensor(member, "member", 1, ScalarType::Long);
    check_tensor(rowptr, "rowptr", 1, ScalarType::Long);
    scales = mu.size(0);
    components = mu.size(1);
    channels = mu.size(2);
    check_size(x, "x", 1, channels);
    for (int64_t dim = 0; dim < 3; ++dim) check_size(sigma, "sigma", dim, mu.size(dim));
    for (int64_t dim = 0; dim < 2; ++dim) check_size(log_pi, "log_pi", dim, mu.size(dim));
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

// The median of some rows, in each channel. Relative to it, the features are small, and the sums hold little that has
// to cancel. One row or mean that is far away changes nothing for the rest, nor does one that is not finite.
template <typename T>
std::vector<T> typical_row(const T* x, int64_t rows, int64_t channels) {
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

// What the kernels read, in memory of its own where it is not an operand.
template <typename T>
struct Prepared {
  std::vector<T> x, mu, precision, distance, prior;
  Encoding<T> fields;

  explicit Prepared(const Operands& o)
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

  // The squared distances of one member. Only their differences matter: they are formed in float64, so that those of a
  // member far from all components survive.
  void measure(const Operands& o, const T* member, T* to) const {
    const int64_t d = o.channels;
    constexpr int64_t kSums = 8;  // side by side: the compiler may not reorder a sum
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

// The first node of each of 'count' parts with about equally many entries (and nodes).
std::vector<int64_t> parts_of(const int64_t* rowptr, int64_t num_nodes, int64_t count) {
  const int64_t total = rowptr[num_nodes] + num_nodes;
  std::vector<int64_t> first(count + 1, num_nodes);
  first[0] = 0;
  for (int64_t i = 0, part = 1; i < num_nodes && part < count; ++i) {
    while (part < count && rowptr[i] + i >= total * part / count) first[part++] = i;
  }
  return first;
}

constexpr int64_t kParts = 64;  // more than threads, so that parts of unequal cost even out

template <typename T>
void forward(const Operands& o, Tensor& encoding, Tensor& mass) {
  const Prepared<T> prepared(o);
  const auto parts = parts_of(prepared.fields.rowptr, o.num_nodes, kParts);
  auto *to_encoding = encoding.mutable_data_ptr<T>(), *to_mass = mass.mutable_data_ptr<T>();
  use_large_pages(to_encoding, encoding.numel() * sizeof(T));
  for_each_part(kParts, [&](int64_t part) {
    torch_gic::gaussian_encode(prepared.fields, to_encoding, to_mass, parts[part], parts[part + 1]);
  });
}

// What the distances hand on: m = sum ((x - mu) / sigma)^2.
template <typename T>
void through_distances(const Operands& o, const Prepared<T>& prepared, const std::vector<T>& grad_distance, T* grad_x,
                       T* grad_mu, T* grad_sigma) {
  const int64_t d = o.channels;
  const auto& f = prepared.fields;
  if (grad_x) {
    parallel_for(0, o.num_members, 256, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        for (int64_t c = 0; c < o.kc; ++c) {
          const T g = 2 * grad_distance[j * o.kc + c];
          const T *mu = f.mu + c * d, *precision = f.precision + c * d;
          for (int64_t v = 0; v < d; ++v)
            grad_x[j * d + v] += g * (f.x[j * d + v] - mu[v]) * precision[v] * precision[v];
        }
      }
    });
  }
  parallel_for(0, o.kc, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const T *mu = f.mu + c * d, *precision = f.precision + c * d;
      for (int64_t j = 0; j < o.num_members; ++j) {
        const T g = 2 * grad_distance[j * o.kc + c];
        for (int64_t v = 0; v < d; ++v) {
          const T z = (f.x[j * d + v] - mu[v]) * precision[v], step = g * z * precision[v];
          grad_mu[c * d + v] -= step;
          grad_sigma[c * d + v] -= step * z;
        }
      }
    }
  });
}

// Several nodes add to the gradient of one member. Each part adds into memory of its own, and the parts are then summed
// in their order: the same bits for any number of threads.
template <typename T>
void backward(const Operands& o, const T* grad, const T* grad_mass, const T* encoding, const T* mass, T* grad_x,
              T* grad_mu, T* grad_sigma, T* grad_log_pi, T* grad_weight) {
  const Prepared<T> prepared(o);
  const auto& f = prepared.fields;
  const int64_t d = grad_x ? o.channels : 0, distances = f.distance ? o.kc : 0, width = d + distances;
  const int64_t size = o.kc * o.channels;
  // In a batch of graphs, a part reaches few members. In one large graph it may reach all: then fewer parts.
  const int64_t bytes = std::max<int64_t>(1, o.num_members * width * sizeof(T));
  const int64_t count = std::clamp<int64_t>((int64_t{1} << 30) / bytes, 4, 16);
  const auto parts = parts_of(f.rowptr, o.num_nodes, count);
  std::vector<std::vector<T>> to_member(count), to_mixture(count);
  std::vector<int64_t> first(count, 0), last(count, 0);
  for_each_part(count, [&](int64_t part) {
    const int64_t from = f.rowptr[parts[part]], to = f.rowptr[parts[part + 1]];
    if (from == to) return;
    const auto [low, high] = std::minmax_element(f.member + from, f.member + to);
    first[part] = *low;
    last[part] = *high + 1;
    to_member[part].assign((last[part] - first[part]) * width, T(0));
    to_mixture[part].assign(2 * size + o.kc, T(0));
    T* mixture = to_mixture[part].data();
    const Gradients<T> gradients{grad_x != nullptr, first[part], to_member[part].data(), mixture + 2 * size, mixture,
                                 mixture + size,    grad_weight};
    torch_gic::gaussian_encode_backward(f, grad, grad_mass, encoding, mass, gradients, parts[part], parts[part + 1]);
  });
  std::vector<T> grad_distance(o.num_members * distances, T(0));
  parallel_for(0, o.num_members, 256, [&](int64_t begin, int64_t end) {
    if (grad_x) std::fill(grad_x + begin * d, grad_x + end * d, T(0));
    for (int64_t part = 0; part < count; ++part) {
      for (int64_t j = std::max(begin, first[part]); j < std::min(end, last[part]); ++j) {
        const T* from = to_member[part].data() + (j - first[part]) * width;
        for (int64_t v = 0; v < d; ++v) grad_x[j * d + v] += from[v];
        for (int64_t c = 0; c < distances; ++c) grad_distance[j * distances + c] += from[d + c];
      }
    }
  });
  std::fill(grad_mu, grad_mu + size, T(0));
  std::fill(grad_sigma, grad_sigma + size, T(0));
  std::fill(grad_log_pi, grad_log_pi + o.kc, T(0));
  for (const auto& mixture : to_mixture) {
    if (mixture.empty()) continue;
    for (int64_t c = 0; c < size; ++c) grad_mu[c] += mixture[c];
    for (int64_t c = 0; c < size; ++c) grad_sigma[c] += mixture[size + c];
    for (int64_t c = 0; c < o.kc; ++c) grad_log_pi[c] += mixture[2 * size + c];
  }
  if (!f.distance) return;
  through_distances(o, prepared, grad_distance, grad_x, grad_mu, grad_sigma);
  for (int64_t c = 0; c < size; ++c) grad_sigma[c] -= grad_log_pi[c / o.channels] * f.precision[c];  // the prior's
}

}  // namespace

std::tuple<Tensor, Tensor> gaussian_encode_cpu(Tensor x, Tensor mu, Tensor sigma, Tensor log_pi, Tensor weight,
                                               Tensor member, Tensor rowptr) {
  const Operands o(x, mu, sigma, log_pi, weight, member, rowptr);
  Tensor encoding = torch::stable::new_empty(x, {o.num_nodes, o.scales, o.components, 2, o.channels});
  Tensor mass = torch::stable::new_empty(x, {o.num_nodes, o.scales, o.components, 2});
  if (x.scalar_type() == ScalarType::Float) {
    forward<float>(o, encoding, mass);
  } else {
    forward<double>(o, encoding, mass);
  }
  return {encoding, mass};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gaussian_encode_backward_cpu(
    Tensor grad, Tensor grad_mass, Tensor encoding, Tensor mass, Tensor x, Tensor mu, Tensor sigma, Tensor log_pi,
    Tensor weight, Tensor member, Tensor rowptr, bool x_needs_grad, bool weight_needs_grad) {
  const Operands o(x, mu, sigma, log_pi, weight, member, rowptr);
  const auto dtype = x.scalar_type();
  const int64_t shape[5] = {o.num_nodes, o.scales, o.components, 2, o.channels};
  check_tensor(grad, "grad", 5, dtype);
  check_tensor(encoding, "encoding", 5, dtype);
  check_tensor(grad_mass, "grad_mass", 4, dtype);
  check_tensor(mass, "mass", 4, dtype);
  for (int64_t dim = 0; dim < 5; ++dim) check_size(grad, "grad", dim, shape[dim]);
  for (int64_t dim = 0; dim < 5; ++dim) check_size(encoding, "encoding", dim, shape[dim]);
  for (int64_t dim = 0; dim < 4; ++dim) check_size(grad_mass, "grad_mass", dim, shape[dim]);
  for (int64_t dim = 0; dim < 4; ++dim) check_size(mass, "mass", dim, shape[dim]);
  grad = torch::stable::contiguous(grad);
  grad_mass = torch::stable::contiguous(grad_mass);
  encoding = torch::stable::contiguous(encoding);
  mass = torch::stable::contiguous(mass);
  const auto like = [&](const Tensor& of, bool wanted) {
    std::vector<int64_t> sizes(of.dim());
    for (int64_t dim = 0; dim < of.dim(); ++dim) sizes[dim] = of.size(dim);
    return torch::stable::new_empty(x, wanted ? sizes : std::vector<int64_t>{0});
  };
  Tensor grad_x = like(x, x_needs_grad), grad_weight = like(weight, weight_needs_grad);
  Tensor grad_mu = like(mu, true), grad_sigma = like(mu, true), grad_log_pi = like(log_pi, true);
  const auto run = [&]<typename T>(T) {
    backward<T>(o, grad.const_data_ptr<T>(), grad_mass.const_data_ptr<T>(), encoding.const_data_ptr<T>(),
                mass.const_data_ptr<T>(), x_needs_grad ? grad_x.mutable_data_ptr<T>() : nullptr,
                grad_mu.mutable_data_ptr<T>(), grad_sigma.mutable_data_ptr<T>(), grad_log_pi.mutable_data_ptr<T>(),
                weight_needs_grad ? grad_weight.mutable_data_ptr<T>() : nullptr);
  };
  if (dtype == ScalarType::Float) {
    run(float{});
  } else {
    run(double{});
  }
  return {grad_x, grad_mu, grad_sigma, grad_log_pi, grad_weight};
}

}  // namespace torch_gic
