#include "coarsening/refine.h"

#include <numeric>
#include <tuple>

namespace torch_gic {
namespace {

// Groups of nodes: their links to others, how many nodes they have, and the cluster they are in. The first level holds
// single nodes, by rank.
struct Level {
  std::vector<int64_t> start{0};  // of the links of each group
  std::vector<int32_t> neighbor;
  std::vector<int64_t> link;
  std::vector<int32_t> size, cluster;

  int64_t count() const { return static_cast<int64_t>(size.size()); }
};

class Refiner {
 public:
  Refiner(const RefineSettings& settings, int64_t num_clusters)
      : settings_(settings), size_(num_clusters), groups_(num_clusters), links_(num_clusters, 0) {}

  void operator()(Level& level, const std::vector<int32_t>& order, int64_t limit, int64_t passes) {
    if (limit < settings_.max_size / 2 * settings_.growth) {
      std::vector<int32_t> label;
      Level coarse = contract(level, label, group(level, order, std::min(limit, settings_.max_size / 2), label));
      std::vector<int32_t> next(coarse.count());
      std::iota(next.begin(), next.end(), 0);
      (*this)(coarse, next, limit* settings_.growth, passes);
      for (int64_t i = 0; i < level.count(); ++i) level.cluster[i] = coarse.cluster[label[i]];
    }
    move(level, order, passes);
  }

 private:
  static int64_t group(const Level& level, const std::vector<int32_t>& order, int64_t limit,
                       std::vector<int32_t>& label);
  static Level contract(const Level& level, const std::vector<int32_t>& label, int64_t count);
  void move(Level& level, const std::vector<int32_t>& order, int64_t passes);
  bool moves(Level& level, int32_t i);

  const RefineSettings settings_;
  std::vector<int64_t> size_, groups_;  // of each cluster
  std::vector<int64_t> links_;          // of one group to each cluster; 0 in between
  std::vector<int32_t> touched_;
};

// Joins neighbours in the same cluster to larger groups of at most so many nodes.
int64_t Refiner::group(const Level& level, const std::vector<int32_t>& order, int64_t limit,
                       std::vector<int32_t>& label) {
  label.assign(level.count(), -1);
  std::vector<int32_t> size;
  for (const int32_t i : order) {
    if (label[i] >= 0) continue;
    int32_t partner = i;
    double strongest = 0;
    for (int64_t e = level.start[i]; e < level.start[i + 1]; ++e) {
      const int32_t j = level.neighbor[e], its_size = label[j] >= 0 ? size[label[j]] : level.size[j];
      if (level.cluster[j] != level.cluster[i] || its_size + level.size[i] > limit) continue;
      const double strength = static_cast<double>(level.link[e]) / its_size;
      if (partner == i || strength > strongest || (strength == strongest && j < partner)) {
        strongest = strength;
        partner = j;
      }
    }
    if (label[partner] < 0) {
      label[partner] = static_cast<int32_t>(size.size());
      size.push_back(level.size[partner]);
    }
    if (partner == i) continue;
    label[i] = label[partner];
    size[label[i]] += level.size[i];
  }
  return static_cast<int64_t>(size.size());
}

// The next level, in which group i has become part of group label[i].
Level Refiner::contract(const Level& level, const std::vector<int32_t>& label, int64_t count) {
  Level coarse;
  coarse.size.assign(count, 0);
  coarse.cluster.resize(count);
  std::vector<int64_t> begin(count + 1, 0);
  for (int64_t i = 0; i < level.count(); ++i) {
    coarse.size[label[i]] += level.size[i];
    coarse.cluster[label[i]] = level.cluster[i];
    ++begin[label[i] + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<int32_t> member(level.count());
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  for (int64_t i = 0; i < level.count(); ++i) member[next[label[i]]++] = static_cast<int32_t>(i);
  std::vector<int64_t> place(count, -1);  // of each neighbour among the links
  for (int64_t a = 0; a < count; ++a) {
    const int64_t first = coarse.start.back();
    for (int64_t m = begin[a]; m < begin[a + 1]; ++m) {
      for (int64_t e = level.start[member[m]]; e < level.start[member[m] + 1]; ++e) {
        const int32_t b = label[level.neighbor[e]];
        if (b == a) continue;
        if (place[b] < first) {
          place[b] = static_cast<int64_t>(coarse.link.size());
          coarse.neighbor.push_back(b);
          coarse.link.push_back(0);
        }
        coarse.link[place[b]] += level.link[e];
      }
    }
    coarse.start.push_back(static_cast<int64_t>(coarse.link.size()));
  }
  return coarse;
}

// Moves one group after the other, until none moves any more.
void Refiner::move(Level& level, const std::vector<int32_t>& order, int64_t passes) {
  std::fill(size_.begin(), size_.end(), 0);
  std::fill(groups_.begin(), groups_.end(), 0);
  for (int64_t i = 0; i < level.count(); ++i) {
    size_[level.cluster[i]] += level.size[i];
    ++groups_[level.cluster[i]];
  }
  for (bool moved = true; moved && passes > 0; --passes) {
    moved = false;
    for (const int32_t i : order) moved |= moves(level, i);
  }
}

bool Refiner::moves(Level& level, int32_t i) {
  const int32_t own = level.cluster[i];
  if (groups_[own] == 1) return false;
  touched_.clear();
  for (int64_t e = level.start[i]; e < level.start[i + 1]; ++e) {
    const int32_t c = level.cluster[level.neighbor[e]];
    if (links_[c] == 0) touched_.push_back(c);
    links_[c] += level.link[e];
  }
  int32_t best = -1;
  const auto key = [&](int32_t c) { return std::tuple(-links_[c], size_[c], c); };
  for (const int32_t c : touched_) {
    if (c == own || size_[c] + level.size[i] > settings_.max_size) continue;
    if (best < 0 || key(c) < key(best)) best = c;
  }
  const bool better =
      best >= 0 && std::pair(-links_[best], size_[best] + level.size[i]) < std::pair(-links_[own], size_[own]);
  for (const int32_t c : touched_) links_[c] = 0;
  if (!better) return false;
  level.cluster[i] = best;
  size_[own] -= level.size[i];
  size_[best] += level.size[i];
  --groups_[own];
  ++groups_[best];
  return true;
}

}  // namespace

void refine_clusters(const Graph& graph, const RefineSettings& settings, int64_t num_clusters, int32_t* cluster) {
  const int64_t size = graph.size();
  const int64_t* rank = graph.rank + graph.begin;
  std::vector<int32_t> node(size);
  for (int64_t i = 0; i < size; ++i) node[rank[i]] = static_cast<int32_t>(i);
  Level level;
  level.size.assign(size, 1);
  level.cluster.resize(size);
  for (int64_t r = 0; r < size; ++r) {
    graph.each_neighbor(node[r], [&](int64_t j, double weight) {
      level.neighbor.push_back(static_cast<int32_t>(rank[j]));
      level.link.push_back(on_grid(weight));
    });
    level.start.push_back(static_cast<int64_t>(level.link.size()));
    level.cluster[r] = cluster[node[r]];
  }
  Refiner refine(settings, num_clusters);
  std::vector<std::pair<int64_t, int32_t>> hashed(size);
  std::vector<int32_t> order(size);
  for (int64_t cycle = 0; cycle * settings.num_passes < settings.num_iterations; ++cycle) {
    for (int64_t r = 0; r < size; ++r) hashed[r] = {mix(r + (cycle << 32)), static_cast<int32_t>(r)};
    std::sort(hashed.begin(), hashed.end());
    for (int64_t r = 0; r < size; ++r) order[r] = hashed[r].second;
    const int64_t left = settings.num_iterations - cycle * settings.num_passes;
    const std::vector<int32_t> before = level.cluster;
    refine(level, order, settings.growth, std::min(left, settings.num_passes));
    if (level.cluster == before) break;
  }
  for (int64_t r = 0; r < size; ++r) cluster[node[r]] = level.cluster[r];
}

}  // namespace torch_gic
