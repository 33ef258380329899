// A sparse adjacency, the row sums of its powers, and the steps of walks on it. No torch headers.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "common/large_pages.h"

namespace torch_gic {

constexpr double kLargest = std::numeric_limits<double>::max();  // in place of infinity, which times zero is NaN

// A sparse matrix in compressed rows, sorted by column. An entry is fraction * 2^exponent.
struct Adjacency {
  int64_t num_nodes;
  LargeVector<int64_t> rowptr, col;
  std::vector<double> fraction;
  std::vector<int32_t> exponent;

  // From entries in any order. Entries of one position add up, in their order.
  template <typename T>
  Adjacency(const int64_t* rows, const int64_t* cols, const T* weight, int64_t num_entries, int64_t num_nodes);

  // Keeps only the 'count' entries of each row with the largest 'value'. Ties go to the first.
  void keep_strongest(const LargeVector<double>& value, int64_t count);

  // The smallest blocks of consecutive nodes without entries between blocks: where each begins, then the number of
  // nodes.
  std::vector<int64_t> blocks() const;
};

// d_k = A^k 1 for k = 0 .. num_scales: number i of d_k is fraction[k * num_nodes + i] * 2^power[k * num_nodes + i].
struct Degrees {
  std::vector<double> fraction;
  std::vector<int32_t> power;

  Degrees(int64_t num_nodes, int64_t num_scales);
  Degrees(int64_t num_nodes, int64_t num_scales, const double* given);           // [num_nodes, num_scales], from d_1 on
  void step(const Adjacency& adjacency, int64_t k, int64_t begin, int64_t end);  // d_k from d_{k - 1}
};

// The entries of T_k = diag(d_{k - 1}) A diag(d_k)^-1 in the rows begin .. end - 1, to value[number of the entry].
void transition(const Adjacency& adjacency, const Degrees& degrees, int64_t k, int64_t begin, int64_t end,
                double* value);

}  // namespace torch_gic
