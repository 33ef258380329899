// The weighted mean of the features in each field, forward and backward.
#include <torch/csrc/stable/ops.h>

#include <vector>

#include "common/check.h"
#include "common/ops.h"
#include "common/parallel.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

constexpr int64_t kGrain = 256;  // rows per thread, at least

struct FieldOperands {
  Tensor x, weight, member, rowptr;
  int64_t num_nodes, num_members, channels;

  FieldOperands(const Tensor& x_, const Tensor& weight_, const Tensor& member_, const Tensor& rowptr_)
      : x(torch::stable::contiguous(x_)),
        weight(torch::stable::contiguous(weight_)),
        member(torch::stable::contiguous(member_)),
        rowptr(torch::stable::contiguous(rowptr_)) {
    const auto dtype = x.scalar_type();
    STD_TORCH_CHECK(dtype == ScalarType::Float || dtype == ScalarType::Double,
                    "Expected 'x' to hold float32 or float64 values");
    check_tensor(x, "x", 2, dtype);
    check_tensor(weight, "weight", 1, dtype);
    check_tensor(member, "member", 1, ScalarType::Long);
    check_tensor(rowptr, "rowptr", 1, ScalarType::Long);
    check_size(weight, "weight", 0, member.numel());
    num_nodes = rowptr.numel() - 1;
    num_members = x.size(0);
    channels = x.size(1);
    const auto* ptr = rowptr.const_data_ptr<int64_t>();
    STD_TORCH_CHECK(num_nodes >= 0 && ptr[0] == 0 && ptr[num_nodes] == member.numel(),
                    "Expected 'rowptr' to begin with 0 and to end with ", member.numel(), ", the number of entries");
    check_sorted(ptr, num_nodes + 1, "rowptr");
    check_range(member, "member", num_members);
  }
};

template <typename T>
void forward(const FieldOperands& o, T* mean, T* mass) {
  const int64_t d = o.channels;
  const auto *member = o.member.const_data_ptr<int64_t>(), *rowptr = o.rowptr.const_data_ptr<int64_t>();
  const T *x = o.x.const_data_ptr<T>(), *weight = o.weight.const_data_ptr<T>();
  parallel_for(0, o.num_nodes, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* out = mean + i * d;
      std::fill(out, out + d, T(0));
      T total = 0;
      for (int64_t e = rowptr[i]; e < rowptr[i + 1]; ++e) {
        const T a = weight[e], *from = x + member[e] * d;
        if (!(a > 0)) continue;
        total += a;
        for (int64_t v = 0; v < d; ++v) out[v] += a * from[v];
      }
      mass[i] = total;
      if (total > 0) {
        for (int64_t v = 0; v < d; ++v) out[v] /= total;
      }
    }
  });
}

// dx_j = sum of a_ij g_i / S_i over the fields i that contain j. Entries are sorted by member. So one thread sums each
// row, and the order does not depend on the number of threads.
template <typename T>
void to_features(const FieldOperands& o, const T* grad, const T* mass, T* grad_x) {
  const int64_t d = o.channels, entries = o.member.numel();
  const auto *member = o.member.const_data_ptr<int64_t>(), *rowptr = o.rowptr.const_data_ptr<int64_t>();
  const T* weight = o.weight.const_data_ptr<T>();
  std::vector<int64_t> first(o.num_members + 2, 0), node(entries);
  std::vector<T> factor(entries);
  for (int64_t e = 0; e < entries; ++e) ++first[member[e] + 2];
  for (int64_t j = 0; j < o.num_members; ++j) first[j + 2] += first[j + 1];
  for (int64_t i = 0; i < o.num_nodes; ++i) {
    for (int64_t e = rowptr[i]; e < rowptr[i + 1]; ++e) {
      const int64_t slot = first[member[e] + 1]++;
      node[slot] = i;
      factor[slot] = weight[e] > 0 ? weight[e] / mass[i] : T(0);
    }
  }
  parallel_for(0, o.num_members, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      T* out = grad_x + j * d;
      std::fill(out, out + d, T(0));
      for (int64_t slot = first[j]; slot < first[j + 1]; ++slot) {
        const T a = factor[slot], *from = grad + node[slot] * d;
        for (int64_t v = 0; v < d; ++v) out[v] += a * from[v];
      }
    }
  });
}

// da_ij = g_i (x_j - mean_i) / S_i.
template <typename T>
void to_weights(const FieldOperands& o, const T* grad, const T* mean, const T* mass, T* grad_weight) {
  const int64_t d = o.channels;
  const auto *member = o.member.const_data_ptr<int64_t>(), *rowptr = o.rowptr.const_data_ptr<int64_t>();
  const T *x = o.x.const_data_ptr<T>(), *weight = o.weight.const_data_ptr<T>();
  parallel_for(0, o.num_nodes, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t e = rowptr[i]; e < rowptr[i + 1]; ++e) {
        T sum = 0;
        const T* from = x + member[e] * d;
        for (int64_t v = 0; v < d; ++v) sum += grad[i * d + v] * (from[v] - mean[i * d + v]);
        grad_weight[e] = weight[e] > 0 ? sum / mass[i] : T(0);
      }
    }
  });
}

}  // namespace

std::tuple<Tensor, Tensor> field_mean_cpu(Tensor x, Tensor weight, Tensor member, Tensor rowptr) {
  const FieldOperands o(x, weight, member, rowptr);
  Tensor mean = torch::stable::new_empty(o.x, {o.num_nodes, o.channels}),
         mass = torch::stable::new_empty(o.x, {o.num_nodes});
  if (x.scalar_type() == ScalarType::Float) {
    forward(o, mean.mutable_data_ptr<float>(), mass.mutable_data_ptr<float>());
  } else {
    forward(o, mean.mutable_data_ptr<double>(), mass.mutable_data_ptr<double>());
  }
  return {mean, mass};
}

std::tuple<Tensor, Tensor> field_mean_backward_cpu(Tensor grad, Tensor mean, Tensor mass, Tensor x, Tensor weight,
                                                   Tensor member, Tensor rowptr, bool x_needs_grad,
                                                   bool weight_needs_grad) {
  const FieldOperands o(x, weight, member, rowptr);
  check_tensor(grad, "grad", 2, x.scalar_type());
  check_tensor(mean, "mean", 2, x.scalar_type());
  check_tensor(mass, "mass", 1, x.scalar_type());
  check_size(mass, "mass", 0, o.num_nodes);
  for (int64_t dim = 0; dim < 2; ++dim) {
    check_size(grad, "grad", dim, dim == 0 ? o.num_nodes : o.channels);
    check_size(mean, "mean", dim, dim == 0 ? o.num_nodes : o.channels);
  }
  grad = torch::stable::contiguous(grad);
  mean = torch::stable::contiguous(mean);
  mass = torch::stable::contiguous(mass);
  Tensor to_x = torch::stable::new_empty(
      o.x, x_needs_grad ? std::vector<int64_t>{o.num_members, o.channels} : std::vector<int64_t>{0});
  Tensor to_weight = torch::stable::new_empty(o.x, {weight_needs_grad ? o.member.numel() : 0});
  const auto run = [&]<typename T>(T) {
    const T *g = grad.const_data_ptr<T>(), *s = mass.const_data_ptr<T>();
    if (x_needs_grad) to_features(o, g, s, to_x.mutable_data_ptr<T>());
    if (weight_needs_grad) to_weights(o, g, mean.const_data_ptr<T>(), s, to_weight.mutable_data_ptr<T>());
  };
  if (x.scalar_type() == ScalarType::Float) {
    run(float{});
  } else {
    run(double{});
  }
  return {to_x, to_weight};
}

}  // namespace torch_gic
