// Operator side of undirected_graph, structural_rank, merge_clusters, move_vertices and vigmm: checks, memory, threads.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "coarsening/merge_clusters.h"
#include "coarsening/move_vertices.h"
#include "coarsening/undirected_graph.h"
#include "coarsening/vigmm.h"
#include "common/check.h"
#include "common/ops.h"
#include "common/parallel.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;
constexpr int64_t kLarge = 16384;  // vertices from which on a graph is worth several threads
constexpr int64_t kBlock = 4096;

void serial(int64_t size, const Body& body) { body(0, size); }

void parallel(int64_t size, const Body& body) {
  for_each_part((size + kBlock - 1) / kBlock,
                [&](int64_t part) { body(part * kBlock, std::min(size, (part + 1) * kBlock)); });
}

// What the operators on clusters are given alike: graphs side by side, edges sorted by row, clusters numbered graph by
// graph.
class Graphs {
 public:
  Graphs(Tensor row, Tensor col, Tensor weight, Tensor vertex_weight, Tensor rank, Tensor ptr, Tensor offset)
      : col_(torch::stable::contiguous(col)),
        weight_(torch::stable::contiguous(weight)),
        vertex_weight_(torch::stable::contiguous(vertex_weight)),
        rank_(torch::stable::contiguous(rank)),
        ptr_(torch::stable::contiguous(ptr)),
        offset_(torch::stable::contiguous(offset)),
        num_nodes_(rank.numel()),
        count_(ptr.numel() - 1) {
    check_tensor(row, "row", 1, ScalarType::Long);
    check_tensor(col, "col", 1, ScalarType::Long);
    check_tensor(weight, "weight", 1, ScalarType::Double);
    check_tensor(vertex_weight, "vertex_weight", 1, ScalarType::Double);
    check_tensor(rank, "rank", 1, ScalarType::Long);
    check_tensor(ptr, "ptr", 1, ScalarType::Long);
    check_tensor(offset, "offset", 1, ScalarType::Long);
    check_size(col, "col", 0, row.numel());
    check_size(weight, "weight", 0, row.numel());
    check_size(vertex_weight, "vertex_weight", 0, num_nodes());
    check_size(offset, "offset", 0, ptr.numel());
    begin_ = ptr_.const_data_ptr<int64_t>();
    first_ = offset_.const_data_ptr<int64_t>();
    STD_TORCH_CHECK(count() >= 0 && begin(0) == 0 && begin(count()) == num_nodes(), "Expected 'ptr' to lead from 0 to ",
                    num_nodes());
    const auto* weights = vertex_weight_.const_data_ptr<double>();
    for (int64_t i = 0; i < num_nodes(); ++i) {  // nothing else could end the merging of clusters
      STD_TORCH_CHECK(weights[i] > 0 && weights[i] <= std::numeric_limits<double>::max(),
                      "Expected 'vertex_weight' to be positive and finite (got ", weights[i], ")");
    }
    set_rows(torch::stable::contiguous(row));
  }

  int64_t num_nodes() const { return num_nodes_; }
  int64_t count() const { return count_; }
  int64_t begin(int64_t g) const { return begin_[g]; }
  int64_t first(int64_t g) const { return first_[g]; }
  int64_t num_clusters(int64_t g) const { return first(g + 1) - first(g); }

  const int64_t* ptr() const { return begin_; }

  ClusterGraph all() const {  // as if they were one
    return {0,
            num_nodes(),
            rowptr_.data(),
            col_.const_data_ptr<int64_t>(),
            weight_.const_data_ptr<double>(),
            vertex_weight_.const_data_ptr<double>(),
            rank_.const_data_ptr<int64_t>()};
  }

  ClusterGraph graph(int64_t g) const {
    ClusterGraph graph = all();
    graph.begin = begin(g);
    graph.end = begin(g + 1);
    return graph;
  }

  // Calls work(g, loop) for each graph: large ones one after the other, on all threads, then the others side by side.
  template <typename Work>
  void for_each(const Work& work) const {
    const auto large = [&](int64_t g) { return begin(g + 1) - begin(g) >= kLarge; };
    for (int64_t g = 0; g < count(); ++g) {
      if (large(g)) work(g, parallel);
    }
    for_each_part(count(), [&](int64_t g) {
      if (!large(g)) work(g, serial);
    });
  }

  // The start, of which every cluster has a vertex, as a result that a kernel may change.
  Tensor copy_clusters(const Tensor& cluster) const {
    check_tensor(cluster, "cluster", 1, ScalarType::Long);
    check_size(cluster, "cluster", 0, num_nodes());
    Tensor copy = torch::stable::clone(torch::stable::contiguous(cluster));
    const auto* of = copy.const_data_ptr<int64_t>();
    std::vector<bool> used(first(count()) - first(0), false);
    for (int64_t g = 0; g < count(); ++g) {
      for (int64_t i = begin(g); i < begin(g + 1); ++i) {
        STD_TORCH_CHECK(of[i] >= first(g) && of[i] < first(g + 1), "Expected 'cluster' of vertex ", i, " to lie in [",
                        first(g), ", ", first(g + 1) - 1, "] (got ", of[i], ")");
        used[of[i] - first(0)] = true;
      }
    }
    STD_TORCH_CHECK(std::find(used.begin(), used.end(), false) == used.end(), "Expected 'cluster' to leave none empty");
    return copy;
  }

 private:
  void set_rows(const Tensor& row) {
    const auto* rows = row.const_data_ptr<int64_t>();
    const auto* cols = col_.const_data_ptr<int64_t>();
    const int64_t num_entries = row.numel();
    rowptr_.assign(num_nodes() + 1, 0);
    for (int64_t e = 0; e < num_entries; ++e) {
      STD_TORCH_CHECK(rows[e] >= (e > 0 ? rows[e - 1] : 0) && rows[e] < num_nodes(),
                      "Expected 'row' to be sorted, with values in [0, ", num_nodes() - 1, "]");
      ++rowptr_[rows[e] + 1];
    }
    for (int64_t i = 0; i < num_nodes(); ++i) rowptr_[i + 1] += rowptr_[i];
    for (int64_t g = 0; g < count(); ++g) {
      STD_TORCH_CHECK(begin(g) <= begin(g + 1) && begin(g + 1) <= num_nodes() &&
                          begin(g + 1) - begin(g) <= std::numeric_limits<int32_t>::max(),
                      "Expected 'ptr' to be sorted, with less than 2^31 vertices a graph");
      for (int64_t e = rowptr_[begin(g)]; e < rowptr_[begin(g + 1)]; ++e) {
        STD_TORCH_CHECK(cols[e] >= begin(g) && cols[e] < begin(g + 1), "Expected every edge to stay inside a graph");
      }
      const int64_t size = begin(g + 1) - begin(g);
      STD_TORCH_CHECK(num_clusters(g) <= size && num_clusters(g) >= std::min<int64_t>(size, 1), "Expected 1 to ", size,
                      " clusters for the ", size, " vertices of graph ", g, " (got ", num_clusters(g), ")");
    }
  }

  Tensor col_, weight_, vertex_weight_, rank_, ptr_, offset_;
  int64_t num_nodes_, count_;
  const int64_t *begin_, *first_;  // asked from the tensors once, since that is a call into torch
  std::vector<int64_t> rowptr_;
};

template <typename T>
UndirectedGraph undirected(const Tensor& edge_index, const Tensor& weight, const Tensor& batch, int64_t num_graphs) {
  const int64_t num_edges = weight.numel();
  const auto* source = edge_index.const_data_ptr<int64_t>();
  return undirected_graph(source, source + num_edges, weight.const_data_ptr<T>(), num_edges,
                          batch.const_data_ptr<int64_t>(), batch.numel(), num_graphs, parallel);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> undirected_graph_cpu(Tensor edge_index, Tensor edge_weight, Tensor batch,
                                                                int64_t num_graphs) {
  check_tensor(edge_index, "edge_index", 2, ScalarType::Long);
  check_size(edge_index, "edge_index", 0, 2);
  const bool single = edge_weight.scalar_type() == ScalarType::Float;
  check_tensor(edge_weight, "edge_weight", 1, single ? ScalarType::Float : ScalarType::Double);
  check_size(edge_weight, "edge_weight", 0, edge_index.size(1));
  check_tensor(batch, "batch", 1, ScalarType::Long);
  const int64_t num_nodes = batch.numel();
  STD_TORCH_CHECK(num_nodes <= std::numeric_limits<int32_t>::max(), "Expected less than 2^31 vertices");
  edge_index = torch::stable::contiguous(edge_index);
  edge_weight = torch::stable::contiguous(edge_weight);
  batch = torch::stable::contiguous(batch);
  STD_TORCH_CHECK(first_outside(edge_index, num_nodes) < 0, "Expected 'edge_index' to lie in [0, ", num_nodes - 1, "]");
  STD_TORCH_CHECK(first_outside(batch, num_graphs) < 0, "Expected 'batch' to lie in [0, ", num_graphs - 1, "]");
  const UndirectedGraph graph = single ? undirected<float>(edge_index, edge_weight, batch, num_graphs)
                                       : undirected<double>(edge_index, edge_weight, batch, num_graphs);
  const auto num_entries = static_cast<int64_t>(graph.entries.size());
  Tensor row = torch::stable::new_empty(batch, {num_entries}), col = torch::stable::new_empty(batch, {num_entries});
  Tensor weight = torch::stable::new_empty(edge_weight, {num_entries}, ScalarType::Double);
  Tensor degree = torch::stable::new_empty(edge_weight, {num_nodes}, ScalarType::Double);
  auto *rows = row.mutable_data_ptr<int64_t>(), *cols = col.mutable_data_ptr<int64_t>();
  auto* weights = weight.mutable_data_ptr<double>();
  std::copy(graph.degree.begin(), graph.degree.end(), degree.mutable_data_ptr<double>());
  parallel(num_nodes, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      for (int64_t e = graph.rowptr[i]; e < graph.rowptr[i + 1]; ++e) {
        rows[e] = i;
        std::tie(cols[e], weights[e]) = graph.entries[e];
      }
    }
  });
  return {row, col, weight, degree};
}

Tensor structural_rank_cpu(Tensor row, Tensor col, Tensor weight, Tensor influence, Tensor ptr) {
  Tensor rank = torch::stable::new_empty(row, {influence.numel()});
  const Graphs graphs(row, col, weight, influence, rank, ptr, ptr);
  structural_rank(graphs.all(), graphs.all().vertex_weight, graphs.ptr(), graphs.count(), parallel,
                  rank.mutable_data_ptr<int64_t>());
  return rank;
}

Tensor merge_clusters_cpu(Tensor row, Tensor col, Tensor weight, Tensor vertex_weight, Tensor rank, Tensor ptr,
                          Tensor offset, int64_t max_size) {
  const Graphs graphs(row, col, weight, vertex_weight, rank, ptr, offset);
  Tensor cluster = torch::stable::new_empty(rank, {graphs.num_nodes()});
  auto* clusters = cluster.mutable_data_ptr<int64_t>();
  graphs.for_each([&](int64_t g, const Loop& loop) {
    merge_clusters(graphs.graph(g), graphs.first(g), graphs.num_clusters(g), max_size, loop, clusters);
  });
  STD_TORCH_CHECK(
      max_size > 0 || std::find(clusters, clusters + graphs.num_nodes(), -1) == clusters + graphs.num_nodes(),
      "Expected a symmetric adjacency and different ranks (got others: no two clusters agree)");
  return cluster;
}

Tensor move_vertices_cpu(Tensor row, Tensor col, Tensor weight, Tensor vertex_weight, Tensor rank, Tensor ptr,
                         Tensor offset, Tensor cluster, int64_t num_iterations, int64_t max_size) {
  const Graphs graphs(row, col, weight, vertex_weight, rank, ptr, offset);
  Tensor moved = graphs.copy_clusters(cluster);
  auto* clusters = moved.mutable_data_ptr<int64_t>();
  graphs.for_each([&](int64_t g, const Loop& loop) {
    move_vertices(graphs.graph(g), graphs.first(g), graphs.num_clusters(g), num_iterations, max_size, loop, clusters);
  });
  return moved;
}

Tensor vigmm_cpu(Tensor diagonal, Tensor row, Tensor col, Tensor value, Tensor vertex_weight, Tensor rank, Tensor ptr,
                 Tensor offset, Tensor beta, Tensor cluster, int64_t num_iterations) {
  const Graphs graphs(row, col, value, vertex_weight, rank, ptr, offset);
  check_tensor(diagonal, "diagonal", 1, ScalarType::Double);
  check_tensor(beta, "beta", 1, ScalarType::Double);
  check_size(diagonal, "diagonal", 0, graphs.num_nodes());
  check_size(beta, "beta", 0, graphs.count());
  diagonal = torch::stable::contiguous(diagonal);
  beta = torch::stable::contiguous(beta);
  value = torch::stable::contiguous(value);
  for (const Tensor* numbers : {&diagonal, &value, &beta}) {
    const auto* begin = numbers->const_data_ptr<double>();
    STD_TORCH_CHECK(std::all_of(begin, begin + numbers->numel(), [](double number) { return std::isfinite(number); }),
                    "Expected 'diagonal', 'value' and 'beta' to be finite (got other values)");
  }
  Tensor likeliest = graphs.copy_clusters(cluster);
  auto* clusters = likeliest.mutable_data_ptr<int64_t>();
  const auto* precision = beta.const_data_ptr<double>();
  const auto* own = diagonal.const_data_ptr<double>();
  graphs.for_each([&](int64_t g, const Loop& loop) {
    const KernelGraph graph{graphs.graph(g), own, precision[g]};
    vigmm(graph, graphs.first(g), graphs.num_clusters(g), num_iterations, loop, clusters);
  });
  return likeliest;
}

}  // namespace torch_gic
