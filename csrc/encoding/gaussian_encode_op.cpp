// Operator side of gaussian_encode: memory and threads.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <vector>

#include "common/check.h"
#include "common/large_pages.h"
#include "common/ops.h"
#include "common/parallel.h"
#include "encoding/encode_operands.h"
#include "encoding/gaussian_encode.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

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
void forward(const EncodeOperands& o, Tensor& encoding, Tensor& mass) {
  const PreparedEncoding<T> prepared(o);
  const auto parts = parts_of(prepared.fields.rowptr, o.num_nodes, kParts);
  auto *to_encoding = encoding.mutable_data_ptr<T>(), *to_mass = mass.mutable_data_ptr<T>();
  use_large_pages(to_encoding, encoding.numel() * sizeof(T));
  for_each_part(kParts, [&](int64_t part) {
    torch_gic::gaussian_encode(prepared.fields, to_encoding, to_mass, parts[part], parts[part + 1]);
  });
}

// The gradients through the distances m = sum ((x - mu) / sigma)^2.
template <typename T>
void through_distances(const EncodeOperands& o, const PreparedEncoding<T>& prepared,
                       const std::vector<T>& grad_distance, T* grad_x, T* grad_mu, T* grad_sigma) {
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

// Several nodes add to the gradient of one member. Each part of the nodes adds into its own memory. The parts are then
// summed in order, so any number of threads gives the same bits.
template <typename T>
void backward(const EncodeOperands& o, const T* grad, const T* grad_mass, const T* encoding, const T* mass, T* grad_x,
              T* grad_mu, T* grad_sigma, T* grad_log_pi, T* grad_weight) {
  const PreparedEncoding<T> prepared(o);
  const auto& f = prepared.fields;
  const int64_t d = grad_x ? o.channels : 0, distances = f.distance ? o.kc : 0, width = d + distances;
  const int64_t size = o.kc * o.channels;
  // In a batch of graphs, a part of the nodes reaches few members. In one large graph it may reach all members: then
  // there are fewer parts.
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
  const EncodeOperands o(x, mu, sigma, log_pi, weight, member, rowptr);
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
  const EncodeOperands o(x, mu, sigma, log_pi, weight, member, rowptr);
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
