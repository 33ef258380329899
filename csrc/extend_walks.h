// Walks of growing length from one vertex at a time, on the pattern of a sparse matrix. No torch headers.
#pragma once

#include <cstdint>
#include <vector>

namespace torch_gic {

// The matrices T_1 .. T_K of one pattern: value k of entry e is transition[k * num_entries + e].
struct Walks {
  int64_t num_nodes, num_scales, num_entries;
  int64_t max_neighbors;  // 0: no limit
  const int64_t* rowptr;
  const int64_t* col;
  const double* transition;
};

// The rows of one range of vertices: where a row reaches, sorted, with a weight a scale.
struct Reached {
  std::vector<int64_t> count, col;  // count: one a vertex
  std::vector<double> weight;       // [col.size(), num_scales]
};

void extend_walks(const Walks& walks, int64_t begin, int64_t end, Reached& reached);

}  // namespace torch_gic
