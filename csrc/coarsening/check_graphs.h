// Checks of the operators that take a graph: nothing is read or written outside it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/check.h"

namespace torch_gic {

// Rows of a batch of graphs, whose entries stay inside their graph.
inline void check_batch(const int64_t* rowptr, const int64_t* col, int64_t num_entries, const int64_t* ptr,
                        int64_t num_graphs, int64_t num_nodes) {
  STD_TORCH_CHECK(ptr[0] == 0 && ptr[num_graphs] == num_nodes, "Expected 'ptr' to lead from 0 to ", num_nodes, " (got ",
                  ptr[0], " to ", ptr[num_graphs], ")");
  STD_TORCH_CHECK(rowptr[0] == 0 && rowptr[num_nodes] == num_entries, "Expected 'rowptr' to lead from 0 to ",
                  num_entries, " (got ", rowptr[0], " to ", rowptr[num_nodes], ")");
  check_sorted(ptr, num_graphs + 1, "ptr");
  check_sorted(rowptr, num_nodes + 1, "rowptr");
  bool inside = true;
  for (int64_t g = 0; g < num_graphs; ++g) {
    for (int64_t e = rowptr[ptr[g]]; e < rowptr[ptr[g + 1]]; ++e) inside &= col[e] >= ptr[g] && col[e] < ptr[g + 1];
  }
  STD_TORCH_CHECK(inside, "Expected every edge to stay inside one graph");
}

// Every node is in a cluster of its graph, and none is empty.
inline void check_clusters(const int64_t* cluster, const char* name, const int64_t* ptr, const int64_t* offset,
                           int64_t num_graphs) {
  STD_TORCH_CHECK(offset[0] == 0 && offset[num_graphs] <= ptr[num_graphs],
                  "Expected 'offset' to lead from 0 to at most ", ptr[num_graphs], ", the number of nodes (got ",
                  offset[0], " to ", offset[num_graphs], ")");
  check_sorted(offset, num_graphs + 1, "offset");
  std::vector<bool> used(offset[num_graphs], false);
  for (int64_t g = 0; g < num_graphs; ++g) {
    for (int64_t i = ptr[g]; i < ptr[g + 1]; ++i) {
      const int64_t c = cluster[i];
      STD_TORCH_CHECK(c >= offset[g] && c < offset[g + 1], "Expected '", name, "' of node ", i, " to lie in [",
                      offset[g], ", ", offset[g + 1] - 1, "] (got ", c, ")");
      used[c] = true;
    }
  }
  STD_TORCH_CHECK(std::find(used.begin(), used.end(), false) == used.end(), "Expected '", name,
                  "' to leave none empty");
}

}  // namespace torch_gic
