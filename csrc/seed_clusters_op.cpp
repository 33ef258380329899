// Operator side of seed_clusters: checks, memory, threads.
#include <torch/csrc/stable/ops.h>

#include "check.h"
#include "ops.h"
#include "seed_clusters.h"

namespace torch_gic {

using torch::headeronly::ScalarType;

// offset[g] .. offset[g + 1] - 1 are the clusters of graph g.
std::tuple<Tensor, Tensor> seed_clusters_cpu(Tensor rowptr, Tensor col, Tensor priority, Tensor ptr, Tensor offset,
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
      seed_clusters(rows, cols, order, graph[g], graph[g + 1], first[g + 1] - first[g], clusters, seeds + first[g]);
    }
  });
  return {cluster, seed};
}

}  // namespace torch_gic
