// The rows of products of sparse matrices: walks of growing length from every node. No torch headers.
#pragma once

#include <cstdint>
#include <vector>

#include "fields/adjacency.h"

namespace torch_gic {

// The matrices T_1 .. T_K: value k of entry e is transition[k * num_entries + e].
struct Walks {
  const Adjacency& adjacency;
  const std::vector<int64_t>& blocks;
  int64_t num_scales;
  int64_t max_neighbors;  // of a row, after every step
  const double* transition;
};

// The rows of T_1, T_1 T_2, .. for one range of nodes: where a row reaches, sorted, with a value for each product.
template <typename T>
struct Reached {
  std::vector<int64_t> count, col;  // count: one per node
  std::vector<T> weight;            // [col.size(), num_scales]
};

template <typename T>
void extend_walks(const Walks& walks, int64_t begin, int64_t end, Reached<T>& reached);

}  // namespace torch_gic
