// Sums of links to the same cluster. No torch headers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace torch_gic {

using Link = std::pair<int32_t, double>;

// Adds up the links to each cluster, in the order in which they stand. For one thread: it keeps memory between calls.
class Combiner {
 public:
  explicit Combiner(int64_t num_clusters) : num_clusters_(num_clusters) {}

  // Returns how many links are left. They are sorted by cluster.
  int64_t operator()(Link* links, int64_t count) {
    // To look at a bit of each cluster is cheaper than to sort, unless the clusters are very many.
    if (count >= kSome && num_clusters_ <= count * kWord) return scatter(links, count);
    sort(links, count);
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (kept > 0 && links[kept - 1].first == links[i].first) {
        links[kept - 1].second += links[i].second;
      } else {
        links[kept++] = links[i];
      }
    }
    return kept;
  }

 private:
  static constexpr int64_t kSome = 8, kMany = 32;  // links: fewer than some are always sorted, up to many by insertion
  static constexpr int64_t kWord = 64;

  int64_t scatter(Link* links, int64_t count) {
    if (!sum_) {
      sum_.reset(new double[num_clusters_]);
      seen_.assign((num_clusters_ + kWord - 1) / kWord, 0);
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto [cluster, weight] = links[i];
      uint64_t& word = seen_[cluster / kWord];
      const uint64_t bit = uint64_t{1} << (cluster % kWord);
      sum_[cluster] = (word & bit) ? sum_[cluster] + weight : weight;
      word |= bit;
    }
    int64_t kept = 0;
    for (size_t w = 0; w < seen_.size(); ++w) {
      for (uint64_t word = seen_[w]; word != 0; word &= word - 1) {
        const auto cluster = static_cast<int32_t>(w * kWord + __builtin_ctzll(word));
        links[kept++] = {cluster, sum_[cluster]};
      }
      seen_[w] = 0;
    }
    return kept;
  }

  static void sort(Link* links, int64_t count) {
    if (count > kMany) {
      std::stable_sort(links, links + count, [](const Link& a, const Link& b) { return a.first < b.first; });
      return;
    }
    for (int64_t i = 1; i < count; ++i) {
      const Link link = links[i];
      int64_t j = i;
      for (; j > 0 && link.first < links[j - 1].first; --j) links[j] = links[j - 1];
      links[j] = link;
    }
  }

  int64_t num_clusters_;
  std::unique_ptr<double[]> sum_;  // of the clusters that were seen
  std::vector<uint64_t> seen_;     // a bit each, all zero between calls
};

}  // namespace torch_gic
