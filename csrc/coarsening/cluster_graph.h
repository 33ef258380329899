// What the kernels of coarsening share: the graph they look at, and how they choose. No torch headers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

namespace torch_gic {

// One graph of a batch: the vertices begin .. end - 1, whose entries rowptr[i] .. rowptr[i + 1] - 1 of the symmetric
// adjacency are sorted by column. All arrays are those of the batch.
struct ClusterGraph {
  int64_t begin, end;
  const int64_t* rowptr;
  const int64_t* col;
  const double* weight;
  const double* vertex_weight;
  const int64_t* rank;

  int64_t size() const { return end - begin; }
};

// Calls body(first, last) on blocks that cover 0 .. size - 1, on one thread or on several. What a block computes must
// not depend on the others.
using Body = std::function<void(int64_t, int64_t)>;
using Loop = std::function<void(int64_t, const Body&)>;

// Objectives are compared in whole steps of 2^-32, as in the references: rounding errors decide nothing.
inline int64_t on_grid(double objective) { return std::llrint(objective * 4294967296.0); }

// The finalizer of SplitMix64, as in the references.
inline int64_t mix(int64_t value) {
  auto z = static_cast<uint64_t>(value);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<int64_t>(z ^ (z >> 31));
}

}  // namespace torch_gic
