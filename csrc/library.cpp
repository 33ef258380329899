// Registers the CPU kernels of all operations. Schemas, fake kernels and references live in Python, so the operations
// exist with or without this library. Only the stable ABI of LibTorch is used: one build serves torch 2.10 and later.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "check.h"
#include "encode_moments_op.h"
#include "extend_walks.h"
#include "seed_clusters.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using torch_gic::check_size;
using torch_gic::check_tensor;

// offset[g] .. offset[g + 1] - 1 are the clusters of graph g.
std::tuple<Tensor, Tensor> seed_clusters(Tensor rowptr, Tensor col, Tensor priority, Tensor ptr, Tensor offset,
                                         int64_t num_clusters) {
  check_tensor(rowptr, "rowptr", 1, ScalarType::Long);
  check_tensor(col, "col", 1, ScalarType::Long);
  check_tensor(priority, "priority", 1, ScalarType::Double);
  check_tensor(ptr, "ptr", 1, ScalarType::Long);
  check_tensor(offset, "offset", 1, ScalarType::Long);
  STD_TORCH_CHECK(rowptr.numel() == priority.numel() + 1, "Expected 'rowptr' to have ", priority.numel() + 1,
                  " entries (got ", rowptr.numel(), ")");
  STD_TORCH_CHECK(offset.numel() == ptr.numel(), "Expected 'offset' to have ", ptr.numel(), " entries (got ",
                  offset.numel(), ")");
  rowptr = torch::stable::contiguous(rowptr);
  col = torch::stable::contiguous(col);
  priority = torch::stable::contiguous(priority);
  ptr = torch::stable::contiguous(ptr);
  offset = torch::stable::contiguous(offset);

  Tensor cluster = torch::stable::new_empty(rowptr, {priority.numel()});
  Tensor seed = torch::stable::new_empty(rowptr, {num_clusters});
  const auto* graph = ptr.const_data_ptr<int64_t>();
  const auto* first = offset.const_data_ptr<int64_t>();
  const auto* rows = rowptr.const_data_ptr<int64_t>();
  const auto* cols = col.const_data_ptr<int64_t>();
  const auto* order = priority.const_data_ptr<double>();
  for (int64_t g = 0; g + 1 < ptr.numel(); ++g) {
    STD_TORCH_CHECK(first[g + 1] - first[g] <= graph[g + 1] - graph[g], "Expected at most one cluster a vertex (got ",
                    first[g + 1] - first[g], " clusters for the ", graph[g + 1] - graph[g], " vertices of graph ", g,
                    ")");
  }
  auto* clusters = cluster.mutable_data_ptr<int64_t>();
  auto* seeds = seed.mutable_data_ptr<int64_t>();
  torch::stable::parallel_for(0, ptr.numel() - 1, 8, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      torch_gic::seed_clusters(rows, cols, order, graph[g], graph[g + 1], first[g + 1] - first[g], clusters,
                               seeds + first[g]);
    }
  });
  return {cluster, seed};
}

std::tuple<Tensor, Tensor, Tensor> extend_walks(Tensor row, Tensor col, Tensor transition, int64_t num_nodes,
                                                std::optional<int64_t> max_neighbors) {
  check_tensor(row, "row", 1, ScalarType::Long);
  check_tensor(col, "col", 1, ScalarType::Long);
  check_tensor(transition, "transition", 2, ScalarType::Double);
  check_size(col, "col", 0, row.numel());
  check_size(transition, "transition", 1, row.numel());
  row = torch::stable::contiguous(row);
  col = torch::stable::contiguous(col);
  transition = torch::stable::contiguous(transition);
  const auto* rows = row.const_data_ptr<int64_t>();
  const auto* cols = col.const_data_ptr<int64_t>();
  std::vector<int64_t> rowptr(num_nodes + 1, 0);
  for (int64_t e = 0; e < row.numel(); ++e) {
    STD_TORCH_CHECK(rows[e] >= (e == 0 ? 0 : rows[e - 1]) && rows[e] < num_nodes && cols[e] >= 0 && cols[e] < num_nodes,
                    "Expected 'row' to be sorted, and 'row' and 'col' to lie in [0, ", num_nodes - 1, "]");
    ++rowptr[rows[e] + 1];
  }
  for (int64_t i = 0; i < num_nodes; ++i) rowptr[i + 1] += rowptr[i];

  const torch_gic::Walks walks{num_nodes,
                               transition.size(0),
                               row.numel(),
                               max_neighbors.value_or(0),
                               rowptr.data(),
                               cols,
                               transition.const_data_ptr<double>()};
  // A part needs memory of the size of the graph, once: parts are few, and as many for any number of threads.
  const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(32, num_nodes / 64));
  std::vector<torch_gic::Reached> reached(parts);
  torch::stable::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      torch_gic::extend_walks(walks, num_nodes * part / parts, num_nodes * (part + 1) / parts, reached[part]);
    }
  });

  int64_t total = 0;
  for (const auto& part : reached) total += part.col.size();
  Tensor to_row = torch::stable::new_empty(row, {total}), to_col = torch::stable::new_empty(row, {total});
  Tensor weight = torch::stable::new_empty(transition, {total, walks.num_scales});
  auto* r = to_row.mutable_data_ptr<int64_t>();
  auto* c = to_col.mutable_data_ptr<int64_t>();
  auto* w = weight.mutable_data_ptr<double>();
  int64_t vertex = 0;
  for (const auto& part : reached) {
    for (const int64_t count : part.count) r = std::fill_n(r, count, vertex++);
    c = std::copy(part.col.begin(), part.col.end(), c);
    w = std::copy(part.weight.begin(), part.weight.end(), w);
  }
  return {to_row, to_col, weight};
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(torch_gic, CPU, m) {
  m.impl("encode_moments", TORCH_BOX(&torch_gic::encode_moments_cpu));
  m.impl("encode_moments_backward", TORCH_BOX(&torch_gic::encode_moments_backward_cpu));
  m.impl("extend_walks", TORCH_BOX(&extend_walks));
  m.impl("seed_clusters", TORCH_BOX(&seed_clusters));
}
