// Operator side of soft EM: checks, memory, threads.
#include <torch/csrc/stable/ops.h>

#include <limits>
#include <utility>
#include <vector>

#include "coarsening/check_graphs.h"
#include "coarsening/soft_em.h"
#include "coarsening/threads.h"
#include "common/check.h"
#include "common/ops.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

// What a node has in common with itself stands in the diagonal.
void check_no_loops(const int64_t* rowptr, const int64_t* col, int64_t num_nodes) {
  bool any = false;
  for (int64_t i = 0; i < num_nodes; ++i) {
    for (int64_t e = rowptr[i]; e < rowptr[i + 1]; ++e) any |= col[e] == i;
  }
  STD_TORCH_CHECK(!any, "Expected 'col' to hold no node in its own row (got one), which is what 'diagonal' is for");
}

// From 0 on in each graph, each once.
void check_ranks(const int64_t* rank, const int64_t* ptr, int64_t num_graphs) {
  std::vector<bool> seen(ptr[num_graphs], false);
  for (int64_t g = 0; g < num_graphs; ++g) {
    const int64_t size = ptr[g + 1] - ptr[g];
    for (int64_t i = ptr[g]; i < ptr[g + 1]; ++i) {
      STD_TORCH_CHECK(rank[i] >= 0 && rank[i] < size && !seen[ptr[g] + rank[i]],
                      "Expected 'rank' to hold each of 0 to ", size - 1, " once in graph ", g, " (got ", rank[i],
                      " for node ", i, ")");
      seen[ptr[g] + rank[i]] = true;
    }
  }
}

}  // namespace

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
  constexpr double lowest = std::numeric_limits<double>::lowest();
  check_numbers(diagonal, "diagonal", lowest, "finite");
  check_numbers(value, "value", lowest, "finite");
  check_numbers(beta, "beta", lowest, "finite");
  check_numbers(node_weight, "node_weight", std::numeric_limits<double>::denorm_min(), "positive and finite");
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
  check_no_loops(starts, cols, num_nodes);
  check_ranks(rank.const_data_ptr<int64_t>(), begin, num_graphs);
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
