// Operator side of coarsen, all of whose stages run here one after the other: checks, memory, threads.
#include <torch/csrc/stable/ops.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "coarsening/check_graphs.h"
#include "coarsening/select.h"
#include "coarsening/threads.h"
#include "common/check.h"
#include "common/ops.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

const int64_t* values(const Tensor& tensor) { return tensor.const_data_ptr<int64_t>(); }
const double* numbers(const Tensor& tensor) { return tensor.const_data_ptr<double>(); }

// Where the nodes of each graph begin, and the last end.
std::vector<int64_t> boundaries(const Tensor& batch, int64_t num_graphs) {
  check_range(batch, "batch", num_graphs);
  const int64_t *graph = values(batch), num_nodes = batch.numel();  // asked once: that is a call into torch
  check_sorted(graph, num_nodes, "batch");
  std::vector<int64_t> ptr(num_graphs + 1, 0);
  for (int64_t i = 0; i < num_nodes; ++i) ++ptr[graph[i] + 1];
  std::partial_sum(ptr.begin(), ptr.end(), ptr.begin());
  return ptr;
}

// Where the clusters of each graph begin, and the last end.
std::vector<int64_t> cluster_boundaries(const std::vector<int64_t>& ptr, double ratio, std::optional<int64_t> count) {
  std::vector<int64_t> offset(ptr.size(), 0);
  for (size_t g = 0; g + 1 < ptr.size(); ++g) {
    const int64_t size = ptr[g + 1] - ptr[g];
    // 0.07 * 100 is a little more than 7 in floating point.
    const auto share = static_cast<int64_t>(std::ceil(static_cast<double>(size) * (ratio * (1 - 1e-12))));
    offset[g + 1] = offset[g] + std::min(size, count ? *count : share);
  }
  return offset;
}

Tensor as_tensor(const std::vector<int64_t>& numbers, const Tensor& like) {
  Tensor tensor = torch::stable::new_empty(like, {static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

UndirectedGraphs undirected(const Tensor& edge_index, const std::optional<Tensor>& weight, const Tensor& batch,
                            int64_t num_graphs) {
  const int64_t num_edges = edge_index.size(1), num_nodes = batch.numel();
  const int64_t *source = values(edge_index), *target = source + num_edges, *graph = values(batch);
  check_range(edge_index, "edge_index", num_nodes);
  bool crosses = false;
  for (int64_t e = 0; e < num_edges; ++e) crosses |= graph[source[e]] != graph[target[e]];
  STD_TORCH_CHECK(!crosses, "Expected every edge of 'edge_index' to stay inside one graph of 'batch'");
  const auto build = [&]<typename T>(const T* weights) {
    return undirected_graphs(source, target, weights, num_edges, graph, num_nodes, num_graphs, loop_over(num_nodes));
  };
  if (!weight) return build(static_cast<const double*>(nullptr));
  if (weight->scalar_type() == ScalarType::Float) return build(weight->const_data_ptr<float>());
  return build(numbers(*weight));
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> coarsen_cpu(
    Tensor edge_index, std::optional<Tensor> edge_weight, Tensor influence, Tensor batch, int64_t num_graphs,
    double ratio, std::optional<int64_t> count, int64_t num_iterations, int64_t max_size, bool by_degree,
    std::optional<Tensor> start, int64_t num_refinements, int64_t most_together, double rounding, int64_t num_passes,
    int64_t growth) {
  check_tensor(edge_index, "edge_index", 2, ScalarType::Long);
  check_size(edge_index, "edge_index", 0, 2);
  check_tensor(batch, "batch", 1, ScalarType::Long);
  check_tensor(influence, "influence", 1, ScalarType::Double);
  const int64_t num_nodes = batch.numel();
  check_size(influence, "influence", 0, num_nodes);
  STD_TORCH_CHECK(num_nodes <= std::numeric_limits<int32_t>::max(), "Expected less than 2^31 nodes");
  edge_index = torch::stable::contiguous(edge_index);
  batch = torch::stable::contiguous(batch);
  influence = torch::stable::contiguous(influence);
  if (edge_weight) {
    const bool single = edge_weight->scalar_type() == ScalarType::Float;
    check_tensor(*edge_weight, "edge_weight", 1, single ? ScalarType::Float : ScalarType::Double);
    check_size(*edge_weight, "edge_weight", 0, edge_index.size(1));
    edge_weight = torch::stable::contiguous(*edge_weight);
    const auto* expected = "finite and non-negative";
    single ? check_numbers(*edge_weight, "edge_weight", 0.0f, expected)
           : check_numbers(*edge_weight, "edge_weight", 0.0, expected);
  }
  // Nothing else could end the merging of clusters.
  check_numbers(influence, "influence", std::numeric_limits<double>::denorm_min(), "positive and finite");
  const double* influences = numbers(influence);
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  STD_TORCH_CHECK(num_graphs >= 0 && num_graphs <= most, "Expected 'num_graphs' to lie in [0, ", most, "] (got ",
                  num_graphs, ")");
  STD_TORCH_CHECK(ratio > 0 && ratio <= 1, "Expected 'ratio' to be in (0, 1] (got ", ratio, ")");
  STD_TORCH_CHECK(!count || *count >= 1, "Expected 'count' to be at least 1 (got ", *count, ")");
  STD_TORCH_CHECK(max_size >= 0, "Expected 'max_size' to be at least 0 (got ", max_size, ")");
  STD_TORCH_CHECK(num_passes >= 1, "Expected 'num_passes' to be at least 1 (got ", num_passes, ")");
  STD_TORCH_CHECK(growth >= 2 && growth <= 1024, "Expected 'growth' to lie in [2, 1024] (got ", growth, ")");
  max_size = std::min(max_size, num_nodes);  // no cluster has more
  const std::vector<int64_t> ptr = boundaries(batch, num_graphs), offset = cluster_boundaries(ptr, ratio, count);

  UndirectedGraphs graphs = undirected(edge_index, edge_weight, batch, num_graphs);
  Tensor rowptr = torch::stable::new_empty(batch, {num_nodes + 1});
  auto* row_starts = rowptr.mutable_data_ptr<int64_t>();
  row_starts[0] = 0;
  for (int64_t i = 0; i < num_nodes; ++i) row_starts[i + 1] = row_starts[i] + graphs.count[i];
  Tensor col = torch::stable::new_empty(batch, {row_starts[num_nodes]});
  Tensor weight = torch::stable::new_empty(influence, {row_starts[num_nodes]});
  auto* cols = col.mutable_data_ptr<int64_t>();
  auto* weights = weight.mutable_data_ptr<double>();
  for_each(loop_over(num_nodes), num_nodes, [&](int64_t i) {
    for (int64_t k = 0; k < graphs.count[i]; ++k) {
      std::tie(cols[row_starts[i] + k], weights[row_starts[i] + k]) = graphs.entries[graphs.start[i] + k];
    }
  });
  Tensor node_weight = torch::stable::new_empty(influence, {num_nodes});
  auto* node_weights_to = node_weight.mutable_data_ptr<double>();
  node_weights(graphs, influences, by_degree, ptr.data(), num_graphs, node_weights_to);
  graphs = {};

  Tensor cluster = torch::stable::new_empty(batch, {num_nodes}), rank = torch::stable::new_empty(batch, {num_nodes});
  Tensor cluster_batch = torch::stable::new_empty(batch, {offset.back()});
  auto *clusters = cluster.mutable_data_ptr<int64_t>(), *ranks = rank.mutable_data_ptr<int64_t>();
  auto* graph_of = cluster_batch.mutable_data_ptr<int64_t>();
  if (start) {
    check_tensor(*start, "start", 1, ScalarType::Long);
    check_size(*start, "start", 0, num_nodes);
    start = torch::stable::contiguous(*start);
    check_clusters(values(*start), "start", ptr.data(), offset.data(), num_graphs);
  }
  for (int64_t g = 0; g < num_graphs; ++g) {
    const int64_t size = ptr[g + 1] - ptr[g], room = max_size * (offset[g + 1] - offset[g]);
    STD_TORCH_CHECK(max_size == 0 || room >= size, "Expected 'max_size' to leave room for the ", size,
                    " nodes of graph ", g, " (got ", max_size, ")");
  }
  const Settings settings{{rounding, max_size},
                          {num_iterations, rounding, most_together},
                          {num_iterations, max_size, num_passes, growth},
                          num_refinements};
  const int64_t* begin_from = start ? values(*start) : nullptr;
  const auto make = [&](const Loop& loop) { return Selector(settings, loop); };
  for_each_graph(ptr.data(), num_graphs, make, [&](int64_t g, Selector& select) {
    const Graph graph{ptr[g], ptr[g + 1], row_starts, cols, weights, node_weights_to, ranks};
    select(graph, influences, offset[g], offset[g + 1] - offset[g], begin_from, ranks, clusters);
    std::fill(graph_of + offset[g], graph_of + offset[g + 1], g);
  });
  return {
      cluster, cluster_batch, rowptr, col, weight, node_weight, rank, as_tensor(ptr, batch), as_tensor(offset, batch)};
}

}  // namespace torch_gic
