#include "seed_clusters.h"

#include <limits>
#include <queue>
#include <vector>

namespace torch_gic {
namespace {

// A vertex as a candidate for the next seed: farthest first, then highest priority, then lowest number.
struct Candidate {
  int64_t distance;
  double priority;
  int64_t vertex;

  bool operator<(const Candidate& other) const {
    if (distance != other.distance) return distance < other.distance;
    if (priority != other.priority) return priority < other.priority;
    return vertex > other.vertex;
  }
};

}  // namespace

void seed_clusters(const int64_t* rowptr, const int64_t* col, const double* priority, int64_t begin, int64_t end,
                   int64_t num_clusters, int64_t* cluster, int64_t* seed) {
  constexpr int64_t kUnreached = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> distance(end - begin, kUnreached);
  std::vector<Candidate> all;
  all.reserve(end - begin);
  for (int64_t v = begin; v < end; ++v) {
    cluster[v] = 0;
    all.push_back({kUnreached, priority[v], v});
  }
  std::priority_queue<Candidate> candidates(std::less<Candidate>(), std::move(all));

  std::vector<int64_t> frontier, next;
  for (int64_t c = 0; c < num_clusters; ++c) {
    // Distances only shrink, so a stored one is an upper bound: the top is the farthest vertex once it is up to date.
    Candidate top = candidates.top();
    candidates.pop();
    while (top.distance != distance[top.vertex - begin]) {
      top.distance = distance[top.vertex - begin];
      candidates.push(top);
      top = candidates.top();
      candidates.pop();
    }

    seed[c] = top.vertex;
    cluster[top.vertex] = c;
    distance[top.vertex - begin] = 0;
    frontier.assign(1, top.vertex);
    for (int64_t hops = 1; !frontier.empty(); ++hops) {
      next.clear();
      for (const int64_t u : frontier) {
        for (int64_t e = rowptr[u]; e < rowptr[u + 1]; ++e) {
          const int64_t v = col[e];
          if (v < begin || v >= end) continue;  // never into the memory of another graph
          if (hops < distance[v - begin]) {
            distance[v - begin] = hops;
            cluster[v] = c;
            next.push_back(v);
          }
        }
      }
      frontier.swap(next);
    }
  }
}

}  // namespace torch_gic
