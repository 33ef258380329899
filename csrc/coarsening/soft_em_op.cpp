// Operator side of soft EM: checks, memory, threads.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "coarsening/check_graphs.h"
#include "coarsening/soft_em.h"
#include "coarsening/threads.h"
#include "common/check.h"
#include "common/ops.h"

namespace torch_gic {

using torch::headeronly::ScalarType;

Tensor soft_em_cpu(Tensor diagonal, Tensor rowptr, Tensor col, Tensor value, Tensor node_weight, Tensor rank,
                   Tensor ptr, Tensor offset, Tensor beta, Tensor cluster, int64_t num_iterations) {
  const int64_t num_nodes = node_weight.numel(), num_graphs = beta.numel();
  for (const auto& [tensor, name] : {std::pair(&diagonal, "diagonal"), std::pair(&value, "value"),
                                     std::pair(&node_weight, "node_weight"), std::pair(&beta, "beta")}) {
    check_tensor(*tensor, name, 1, ScalarType::Double);
    *tensor = torch::stable::contiguous(*tensor);
  }
  for (const auto& [tensor, name] :
       {std::pair(&rowptr, "rowptr"), std::pair(&col, "col"), std::pair(&rank, "rank"), std::pair(&ptr, "ptr"),
        std::pair(&offset, "offset"), std::pair(&cluster, "cluster")}) {
    check_tensor(*tensor, name, 1, ScalarType::Long);
    *tensor = torch::stable::contiguous(*tensor);
  }
  for (const Tensor* numbers : {&diagonal, &value, &beta}) {
    const auto* begin = numbers->const_data_ptr<double>();
    STD_TORCH_CHECK(std::all_of(begin, begin + numbers->numel(), [](double number) { return std::isfinite(number); }),
                    "Expected 'diagonal', 'value' and 'beta' to be finite (got other values)");
  }
  check_size(diagonal, "diagonal", 0, num_nodes);
  check_size(rowptr, "rowptr", 0, num_nodes + 1);
  check_size(value, "value", 0, col.numel());
  check_size(rank, "rank", 0, num_nodes);
  check_size(cluster, "cluster", 0, num_nodes);
  check_size(ptr, "ptr", 0, num_graphs + 1);
  check_size(offset, "offset", 0, num_graphs + 1);
  const auto *starts = rowptr.const_data_ptr<int64_t>(), *cols = col.const_data_ptr<int64_t>();
  const auto *begin = ptr.const_data_ptr<int64_t>(), *first = offset.const_data_ptr<int64_t>();
  check_batch(starts, cols, col.numel(), begin, num_graphs, num_nodes);
  Tensor likeliest = torch::stable::clone(cluster);
  auto* clusters = likeliest.mutable_data_ptr<int64_t>();
  check_clusters(clusters, "cluster", begin, first, num_graphs);
  const auto *values = value.const_data_ptr<double>(), *weights = node_weight.const_data_ptr<double>();
  const auto *own = diagonal.const_data_ptr<double>(), *precision = beta.const_data_ptr<double>();
  const auto* ranks = rank.const_data_ptr<int64_t>();
  const auto none = [](const Loop& loop) { return &loop; };
  for_each_graph(begin, num_graphs, none, [&](int64_t g, const Loop* loop) {
    const AffinityGraph graph{{begin[g], begin[g + 1], starts, cols, values, weights, ranks}, own, precision[g]};
    soft_em(graph, first[g], first[g + 1] - first[g], num_iterations, *loop, clusters);
  });
  return likeliest;
}

}  // namespace torch_gic
