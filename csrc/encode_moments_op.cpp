// Operator side of encode_moments: checks, order of the entries, memory, threads.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <vector>

#include "check.h"
#include "encode_moments.h"
#include "large_pages.h"
#include "ops.h"
#include "parallel.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

// The entries by vertex. Fields come sorted, and then nothing has to be moved.
struct Rows {
  std::vector<int64_t> rowptr, entry;

  Rows(const int64_t* vertex, int64_t num_entries, int64_t num_nodes) : rowptr(num_nodes + 1, 0) {
    bool sorted = true;
    for (int64_t e = 0; e < num_entries; ++e) {
      STD_TORCH_CHECK(vertex[e] >= 0 && vertex[e] < num_nodes, "Expected 'vertex' (row 1 of the fields) to lie in [0, ",
                      num_nodes - 1, "] (got ", vertex[e], "): are these the fields of this graph?");
      ++rowptr[vertex[e] + 1];
      sorted = sorted && (e == 0 || vertex[e - 1] <= vertex[e]);
    }
    for (int64_t i = 0; i < num_nodes; ++i) rowptr[i + 1] += rowptr[i];
    if (sorted) return;
    entry.resize(num_entries);
    std::vector<int64_t> next(rowptr.begin(), rowptr.end() - 1);
    for (int64_t e = 0; e < num_entries; ++e) entry[next[vertex[e]]++] = e;
  }

  // The first vertex of each of 'count' parts with about equally many entries (and vertices).
  std::vector<int64_t> parts(int64_t count) const {
    const int64_t num_nodes = rowptr.size() - 1, total = rowptr.back() + num_nodes;
    std::vector<int64_t> first(count + 1, num_nodes);
    first[0] = 0;
    for (int64_t i = 0, part = 1; i < num_nodes && part < count; ++i) {
      while (part < count && rowptr[i] + i >= total * part / count) first[part++] = i;
    }
    return first;
  }
};

struct Operands {
  Tensor x, distance, prior, weight, member, vertex;
  int64_t num_nodes;
  Rows rows;

  Operands(const Tensor& x_, const Tensor& distance_, const Tensor& prior_, const Tensor& weight_,
           const Tensor& member_, const Tensor& vertex_, int64_t num_nodes_)
      : x(torch::stable::contiguous(x_)),
        distance(torch::stable::contiguous(distance_)),
        prior(torch::stable::contiguous(prior_)),
        weight(torch::stable::contiguous(weight_)),
        member(torch::stable::contiguous(member_)),
        vertex(torch::stable::contiguous(vertex_)),
        num_nodes(num_nodes_),
        rows((check(), vertex.const_data_ptr<int64_t>()), vertex.numel(), num_nodes_) {}

  void check() const {
    const auto dtype = x.scalar_type();
    STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double,
                    "Expected 'x' to hold float32 or float64 values");
    check_tensor(x, "x", 2, dtype);
    check_tensor(distance, "distance", 3, dtype);
    check_tensor(prior, "prior", 2, dtype);
    check_tensor(weight, "weight", 2, dtype);
    check_tensor(member, "member", 1, ScalarType::Long);
    check_tensor(vertex, "vertex", 1, ScalarType::Long);
    check_size(distance, "distance", 0, x.size(0));
    check_size(distance, "distance", 1, prior.size(0));
    check_size(distance, "distance", 2, prior.size(1));
    check_size(weight, "weight", 0, vertex.size(0));
    check_size(weight, "weight", 1, prior.size(0));
    check_size(member, "member", 0, vertex.size(0));
    STD_TORCH_CHECK(num_nodes >= 0, "Expected 'num_nodes' to be non-negative (got ", num_nodes, ")");
    STD_TORCH_CHECK(prior.size(1) >= 1, "Expected 'prior' to hold at least one component a scale");
    const int64_t e = first_outside(member, x.size(0));
    STD_TORCH_CHECK(e < 0, "Expected 'member' (row 0 of the fields) to lie in [0, ", x.size(0) - 1, "] (got ",
                    member.const_data_ptr<int64_t>()[e], "): are these the fields of this graph?");
  }

  template <typename T>
  Fields<T> fields() const {
    return {x.size(1),
            prior.size(0),
            prior.size(1),
            x.const_data_ptr<T>(),
            distance.const_data_ptr<T>(),
            prior.const_data_ptr<T>(),
            weight.const_data_ptr<T>(),
            member.const_data_ptr<int64_t>(),
            rows.rowptr.data(),
            rows.entry.empty() ? nullptr : rows.entry.data()};
  }
};

constexpr int64_t kParts = 64;  // more than threads, so that parts of unequal cost even out

template <typename T>
void forward(const Operands& operands, Tensor& moments, Tensor& mass) {
  const auto fields = operands.fields<T>();
  const auto parts = operands.rows.parts(kParts);
  auto* to_moments = moments.mutable_data_ptr<T>();
  use_large_pages(to_moments, moments.numel() * sizeof(T));
  auto* to_mass = mass.mutable_data_ptr<T>();
  for_each_part(kParts, [&](int64_t part) {
    torch_gic::encode_moments(fields, to_moments, to_mass, parts[part], parts[part + 1]);
  });
}

// Several vertices add to the gradient of one member. Each part adds into memory of its own, and the parts are then
// summed in their order: the same bits for any number of threads.
template <typename T>
void backward(const Operands& operands, const Tensor& grad_moments, const Tensor& grad_mass, bool x_needs_grad,
              Tensor& grad_x, Tensor& grad_distance, Tensor& grad_prior, Tensor& grad_weight) {
  const auto fields = operands.fields<T>();
  const int64_t d = x_needs_grad ? fields.channels : 0, kc = fields.scales * fields.components, width = d + kc;
  const int64_t num_members = operands.x.size(0);
  // In a batch of graphs, a part reaches few members. In one large graph it may reach all: then fewer parts.
  const int64_t bytes = std::max<int64_t>(1, num_members * width * sizeof(T));
  const int64_t count = std::clamp<int64_t>((int64_t{1} << 30) / bytes, 4, 32);
  const auto parts = operands.rows.parts(count);
  std::vector<std::vector<T>> to_member(count), to_prior(count, std::vector<T>(kc, T(0)));
  std::vector<int64_t> first(count, 0), last(count, 0);
  const auto* from_moments = grad_moments.const_data_ptr<T>();
  const auto* from_mass = grad_mass.const_data_ptr<T>();
  auto* to_weight = grad_weight.mutable_data_ptr<T>();
  for_each_part(count, [&](int64_t part) {
    const int64_t from = fields.rowptr[parts[part]], to = fields.rowptr[parts[part + 1]];
    if (from == to) return;
    int64_t low = num_members, high = 0;
    for (int64_t e = from; e < to; ++e) {
      const int64_t j = fields.member[fields.entry ? fields.entry[e] : e];
      low = std::min(low, j);
      high = std::max(high, j + 1);
    }
    first[part] = low;
    last[part] = high;
    to_member[part].assign((high - low) * width, T(0));
    torch_gic::encode_moments_backward(fields, from_moments, from_mass, x_needs_grad, to_member[part].data(), low,
                                       to_prior[part].data(), to_weight, parts[part], parts[part + 1]);
  });
  auto* x = grad_x.mutable_data_ptr<T>();
  auto* distance = grad_distance.mutable_data_ptr<T>();
  parallel_for(0, num_members, 256, [&](int64_t begin, int64_t end) {
    std::fill(x + begin * d, x + end * d, T(0));
    std::fill(distance + begin * kc, distance + end * kc, T(0));
    for (int64_t part = 0; part < count; ++part) {
      for (int64_t j = std::max(begin, first[part]); j < std::min(end, last[part]); ++j) {
        const T* from = to_member[part].data() + (j - first[part]) * width;
        for (int64_t c = 0; c < d; ++c) x[j * d + c] += from[c];
        for (int64_t c = 0; c < kc; ++c) distance[j * kc + c] += from[d + c];
      }
    }
  });
  auto* prior = grad_prior.mutable_data_ptr<T>();
  std::fill(prior, prior + kc, T(0));
  for (const auto& part : to_prior) {
    for (int64_t c = 0; c < kc; ++c) prior[c] += part[c];
  }
}

}  // namespace

std::tuple<Tensor, Tensor> encode_moments_cpu(Tensor x, Tensor distance, Tensor prior, Tensor weight, Tensor member,
                                              Tensor vertex, int64_t num_nodes) {
  const Operands operands(x, distance, prior, weight, member, vertex, num_nodes);
  const int64_t scales = prior.size(0), components = prior.size(1);
  Tensor moments = torch::stable::new_empty(x, {num_nodes, scales, components, 2, x.size(1)});
  Tensor mass = torch::stable::new_empty(x, {num_nodes, scales, components, 2});
  if (x.scalar_type() == ScalarType::Float) {
    forward<float>(operands, moments, mass);
  } else {
    forward<double>(operands, moments, mass);
  }
  return {moments, mass};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> encode_moments_backward_cpu(Tensor grad_moments, Tensor grad_mass, Tensor x,
                                                                       Tensor distance, Tensor prior, Tensor weight,
                                                                       Tensor member, Tensor vertex,
                                                                       bool x_needs_grad) {
  const Operands operands(x, distance, prior, weight, member, vertex, grad_moments.size(0));
  check_tensor(grad_moments, "grad_moments", 5, x.scalar_type());
  check_tensor(grad_mass, "grad_mass", 4, x.scalar_type());
  const int64_t shape[5] = {operands.num_nodes, prior.size(0), prior.size(1), 2, x.size(1)};
  for (int64_t dim = 1; dim < 5; ++dim) check_size(grad_moments, "grad_moments", dim, shape[dim]);
  for (int64_t dim = 0; dim < 4; ++dim) check_size(grad_mass, "grad_mass", dim, shape[dim]);
  grad_moments = torch::stable::contiguous(grad_moments);
  grad_mass = torch::stable::contiguous(grad_mass);
  Tensor grad_x = x_needs_grad ? torch::stable::new_empty(x, {x.size(0), x.size(1)}) : torch::stable::new_empty(x, {0});
  Tensor grad_distance = torch::stable::new_empty(x, {x.size(0), prior.size(0), prior.size(1)});
  Tensor grad_prior = torch::stable::new_empty(x, {prior.size(0), prior.size(1)});
  Tensor grad_weight = torch::stable::new_empty(x, {weight.size(0), weight.size(1)});
  if (x.scalar_type() == ScalarType::Float) {
    backward<float>(operands, grad_moments, grad_mass, x_needs_grad, grad_x, grad_distance, grad_prior, grad_weight);
  } else {
    backward<double>(operands, grad_moments, grad_mass, x_needs_grad, grad_x, grad_distance, grad_prior, grad_weight);
  }
  return {grad_x, grad_distance, grad_prior, grad_weight};
}

}  // namespace torch_gic
