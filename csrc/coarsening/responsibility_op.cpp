// Operator side of responsibility and its gradient: checks, memory, threads.
#include <torch/csrc/stable/ops.h>

#include <limits>

#include "coarsening/check_graphs.h"
#include "coarsening/responsibility.h"
#include "coarsening/threads.h"
#include "common/check.h"
#include "common/ops.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

Tensor run(const Tensor* grad, Tensor node_weight, Tensor rowptr, Tensor col, Tensor weight, Tensor ptr, Tensor offset,
           Tensor cluster, Tensor beta) {
  check_tensor(node_weight, "node_weight", 1, ScalarType::Double);
  check_tensor(rowptr, "rowptr", 1, ScalarType::Long);
  check_tensor(col, "col", 1, ScalarType::Long);
  check_tensor(weight, "weight", 1, ScalarType::Double);
  check_tensor(ptr, "ptr", 1, ScalarType::Long);
  check_tensor(offset, "offset", 1, ScalarType::Long);
  check_tensor(cluster, "cluster", 1, ScalarType::Long);
  check_tensor(beta, "beta", 1, ScalarType::Double);
  const int64_t num_nodes = node_weight.numel(), num_graphs = beta.numel();
  check_size(rowptr, "rowptr", 0, num_nodes + 1);
  check_size(weight, "weight", 0, col.numel());
  check_size(cluster, "cluster", 0, num_nodes);
  check_size(ptr, "ptr", 0, num_graphs + 1);
  check_size(offset, "offset", 0, num_graphs + 1);
  for (Tensor* tensor : {&node_weight, &rowptr, &col, &weight, &ptr, &offset, &cluster, &beta}) {
    *tensor = torch::stable::contiguous(*tensor);
  }
  const auto *starts = rowptr.const_data_ptr<int64_t>(), *cols = col.const_data_ptr<int64_t>();
  const auto *begin = ptr.const_data_ptr<int64_t>(), *first = offset.const_data_ptr<int64_t>();
  const auto* of = cluster.const_data_ptr<int64_t>();
  const auto *weights = weight.const_data_ptr<double>(), *mass = node_weight.const_data_ptr<double>();
  const auto* precision = beta.const_data_ptr<double>();
  check_numbers(node_weight, "node_weight", std::numeric_limits<double>::denorm_min(), "positive and finite");
  check_batch(starts, cols, col.numel(), begin, num_graphs, num_nodes);
  check_clusters(of, "cluster", begin, first, num_graphs);
  Tensor result = torch::stable::empty_like(node_weight);
  auto* results = result.mutable_data_ptr<double>();
  const auto* gradient = grad == nullptr ? nullptr : grad->const_data_ptr<double>();
  const auto none = [](const Loop&) { return 0; };
  for_each_graph(begin, num_graphs, none, [&](int64_t g, int) {
    const Graph graph{begin[g], begin[g + 1], starts, cols, weights, mass, nullptr};
    responsibility(graph, of, first[g], first[g + 1] - first[g], precision[g], gradient, results);
  });
  return result;
}

}  // namespace

Tensor responsibility_cpu(Tensor node_weight, Tensor rowptr, Tensor col, Tensor weight, Tensor ptr, Tensor offset,
                          Tensor cluster, Tensor beta) {
  return run(nullptr, node_weight, rowptr, col, weight, ptr, offset, cluster, beta);
}

Tensor responsibility_backward_cpu(Tensor grad, Tensor node_weight, Tensor rowptr, Tensor col, Tensor weight,
                                   Tensor ptr, Tensor offset, Tensor cluster, Tensor beta) {
  check_tensor(grad, "grad", 1, ScalarType::Double);
  check_size(grad, "grad", 0, node_weight.numel());
  grad = torch::stable::contiguous(grad);
  return run(&grad, node_weight, rowptr, col, weight, ptr, offset, cluster, beta);
}

}  // namespace torch_gic
