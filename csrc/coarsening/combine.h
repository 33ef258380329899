// Sums of links to the same cluster. No torch headers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/large_pages.h"

namespace torch_gic {

using Link = std::pair<int32_t, double>;

// Adds up the links to each cluster, in the order in which they stand. For one thread: it keeps memory between calls.
class Combiner {
 public:
  explicit Combiner(int64_t num_clusters) : num_clusters_(num_clusters) {}

  // Returns how many links are left. They are sorted by cluster.
  int64_t operator()(Link* links, int64_t count) {
    if (count <= kFew) return insert(links, count);
    const int64_t kept = unsorted(links, count);
    std::sort(links, links + kept, [](const Link& a, const Link& b) { return a.first < b.first; });
    return kept;
  }

  // The same in the order in which the clusters first stand there.
  int64_t unsorted(Link* links, int64_t count) {
    if (place_.empty()) place_.resize(num_clusters_);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Link link = links[i];
      int32_t& place = place_[link.first];  // of an earlier call, unless that link says otherwise
      if (place < kept && links[place].first == link.first) {
        links[place].second += link.second;
      } else {
        place = static_cast<int32_t>(kept);
        links[kept++] = link;
      }
    }
    return kept;
  }

 private:
  static constexpr int64_t kFew = 24;  // links that are sorted by insertion

  static int64_t insert(Link* links, int64_t count) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      const Link link = links[i];
      int64_t j = kept;
      while (j > 0 && link.first < links[j - 1].first) --j;
      if (j > 0 && links[j - 1].first == link.first) {
        links[j - 1].second += link.second;
      } else {
        for (int64_t k = kept++; k > j; --k) links[k] = links[k - 1];
        links[j] = link;
      }
    }
    return kept;
  }

  int64_t num_clusters_;
  LargeVector<int32_t> place_;  // of each cluster among the links
};

}  // namespace torch_gic
