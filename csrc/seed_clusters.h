// Farthest-first start of the clusters of one graph. No torch headers here: the loop compiles in a moment and can be
// read, tested and reused by itself.
#pragma once

#include <cstdint>

namespace torch_gic {

// The vertices begin .. end - 1 form one graph; rowptr and col hold the neighbours of all vertices, in both directions.
// Writes the start cluster (0 .. num_clusters - 1) of each of its vertices, and the vertex that each cluster starts
// from.
void seed_clusters(const int64_t* rowptr, const int64_t* col, const double* priority, int64_t begin, int64_t end,
                   int64_t num_clusters, int64_t* cluster, int64_t* seed);

}  // namespace torch_gic
