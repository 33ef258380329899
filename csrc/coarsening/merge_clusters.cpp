#include "coarsening/merge_clusters.h"

#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "coarsening/combine.h"

namespace torch_gic {
namespace {

constexpr double kMostGain = 1 + 1e-9;  // of its weight, what a cluster may gain in a round

// The clusters of a round, and the links between them, each sorted by the other end.
struct Level {
  std::vector<int64_t> rowptr, key, count;  // count: of vertices
  std::vector<Link> links;
  std::vector<double> cut, mass;
  std::vector<double> ratio;  // cut / mass

  int64_t size() const { return static_cast<int64_t>(key.size()); }
};

// Whom a cluster prefers, and how good that is: lower is better.
struct Preference {
  int32_t partner = -1;
  int64_t change, tie;

  bool asks() const { return partner >= 0; }
  bool operator<(const Preference& other) const { return std::tie(change, tie) < std::tie(other.change, other.tie); }
};

// Sets the rows of a level, given their links at 'start[r]' and their numbers 'count[r]', with the cut of each.
void set_rows(Level& level, const std::vector<Link>& links, const std::vector<int64_t>& start,
              const std::vector<int64_t>& count, const Loop& loop) {
  level.rowptr.assign(level.size() + 1, 0);
  std::partial_sum(count.begin(), count.end(), level.rowptr.begin() + 1);
  level.links.resize(level.rowptr.back());
  level.cut.resize(level.size());
  level.ratio.resize(level.size());
  loop(level.size(), [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      double cut = 0;
      for (int64_t e = 0; e < count[r]; ++e) {
        level.links[level.rowptr[r] + e] = links[start[r] + e];
        cut += links[start[r] + e].second;
      }
      level.cut[r] = cut;
      level.ratio[r] = cut / level.mass[r];
    }
  });
}

Level first_level(const ClusterGraph& graph, const Loop& loop) {
  const int64_t size = graph.size(), base = graph.rowptr[graph.begin];
  Level level;
  level.key.assign(graph.rank + graph.begin, graph.rank + graph.end);
  level.mass.assign(graph.vertex_weight + graph.begin, graph.vertex_weight + graph.end);
  level.count.assign(size, 1);
  std::vector<Link> links(graph.rowptr[graph.end] - base);
  std::vector<int64_t> start(size), count(size, 0);
  loop(size, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      start[r] = graph.rowptr[graph.begin + r] - base;
      for (int64_t e = graph.rowptr[graph.begin + r]; e < graph.rowptr[graph.begin + r + 1]; ++e) {
        const int64_t c = graph.col[e] - graph.begin;
        if (c != r) links[start[r] + count[r]++] = {static_cast<int32_t>(c), graph.weight[e]};
      }
    }
  });
  set_rows(level, links, start, count, loop);
  return level;
}

std::vector<Preference> preferences(const Level& level, int64_t max_size, const Loop& loop) {
  std::vector<Preference> preference(level.size());
  loop(level.size(), [&](int64_t first, int64_t last) {
    for (int64_t a = first; a < last; ++a) {
      for (int64_t e = level.rowptr[a]; e < level.rowptr[a + 1]; ++e) {
        const auto [b, link] = level.links[e];
        if (max_size > 0 && level.count[a] + level.count[b] > max_size) continue;
        // Symmetric in both, so that the best pair of all prefers each other.
        const double apart = level.ratio[a] + level.ratio[b];
        const double together = (level.cut[a] + level.cut[b] - 2 * link) / (level.mass[a] + level.mass[b]);
        Preference other{b, on_grid(together - apart)};
        if (preference[a].asks() && other.change > preference[a].change) continue;
        other.tie = mix((std::min(level.key[a], level.key[b]) << 32) + std::max(level.key[a], level.key[b]));
        if (!preference[a].asks() || other < preference[a]) preference[a] = other;
      }
    }
  });
  return preference;
}

// The cluster that each cluster joins in this round, itself if it joins none; nothing if none prefers another.
std::vector<int32_t> join(const Level& level, int64_t excess, int64_t max_size, int64_t number, const Loop& loop) {
  const int64_t size = level.size();
  const std::vector<Preference> preference = preferences(level, max_size, loop);
  if (std::none_of(preference.begin(), preference.end(), [](const Preference& p) { return p.asks(); })) return {};
  std::vector<int8_t> keeps(size), stays(size);
  const auto mutual = [&](int64_t a) { return preference[preference[a].partner].partner == a; };
  for (int64_t a = 0; a < size; ++a) {
    const int32_t b = preference[a].partner;
    keeps[a] = preference[a].asks() && mutual(a) &&
               (level.mass[a] > level.mass[b] || (level.mass[a] == level.mass[b] && level.key[a] < level.key[b]));
  }
  for (int64_t a = 0; a < size; ++a) {
    stays[a] = keeps[a] || (preference[a].asks() && !mutual(a) && !keeps[preference[a].partner] &&
                            (mix(level.key[a] + (number << 32)) & 1) == 1);
  }
  std::vector<int32_t> joining, target(size);
  std::iota(target.begin(), target.end(), 0);
  for (int64_t a = 0; a < size; ++a) {
    if (preference[a].asks() && !stays[a] && stays[preference[a].partner]) joining.push_back(a);
  }
  std::sort(joining.begin(), joining.end(), [&](int32_t a, int32_t b) { return preference[a] < preference[b]; });

  std::vector<double> gained(size, 0);
  std::vector<int64_t> count = level.count;
  int64_t fitting = 0;
  for (const int32_t a : joining) {
    const int32_t b = preference[a].partner;
    const bool first = gained[b] == 0;
    gained[b] += level.mass[a];
    count[b] += level.count[a];
    const bool fits = max_size == 0 || count[b] <= max_size;
    if (fits && (first || gained[b] <= kMostGain * level.mass[b])) joining[fitting++] = a;
  }
  const int64_t accepted = std::min(excess, (fitting + 1) / 2);
  for (int64_t j = 0; j < accepted; ++j) target[joining[j]] = preference[joining[j]].partner;
  return target;
}

// Without links, the second lightest cluster joins the lightest, the fourth the third, and so on. With a max_size, the
// smallest come first: if those two do not fit, no others do.
std::vector<int32_t> pair_up(const Level& level, int64_t excess, int64_t max_size) {
  std::vector<int32_t> order(level.size()), target(level.size());
  std::iota(order.begin(), order.end(), 0);
  std::iota(target.begin(), target.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    if (max_size > 0) return std::tie(level.count[a], level.key[a]) < std::tie(level.count[b], level.key[b]);
    return std::tie(level.mass[a], level.key[a]) < std::tie(level.mass[b], level.key[b]);
  });
  for (int64_t j = 0; j < excess && 2 * j + 1 < level.size(); ++j) {
    const int32_t a = order[2 * j + 1], b = order[2 * j];
    if (max_size == 0 || level.count[a] + level.count[b] <= max_size) target[a] = b;
  }
  return target;
}

// The next level, in which cluster a has become part of cluster label[a].
Level contract(const Level& level, const std::vector<int32_t>& label, int64_t size, const Loop& loop) {
  Level next;
  next.key.assign(size, std::numeric_limits<int64_t>::max());
  next.mass.assign(size, 0);
  next.count.assign(size, 0);
  std::vector<int64_t> begin(size + 1, 0), start(size + 1, 0), count(size);
  for (int64_t a = 0; a < level.size(); ++a) {
    const int32_t r = label[a];
    next.key[r] = std::min(next.key[r], level.key[a]);
    next.mass[r] += level.mass[a];
    next.count[r] += level.count[a];
    ++begin[r + 1];
    start[r + 1] += level.rowptr[a + 1] - level.rowptr[a];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<int32_t> member(level.size());
  std::vector<int64_t> place(begin.begin(), begin.end() - 1);
  for (int64_t a = 0; a < level.size(); ++a) member[place[label[a]]++] = a;

  std::vector<Link> links(level.links.size());
  loop(size, [&](int64_t first, int64_t last) {
    Combiner combine(size);
    for (int64_t r = first; r < last; ++r) {
      int64_t end = start[r];
      for (int64_t m = begin[r]; m < begin[r + 1]; ++m) {
        for (int64_t e = level.rowptr[member[m]]; e < level.rowptr[member[m] + 1]; ++e) {
          const int32_t c = label[level.links[e].first];
          if (c != r) links[end++] = {c, level.links[e].second};
        }
      }
      count[r] = combine(links.data() + start[r], end - start[r]);
    }
  });
  set_rows(next, links, start, count, loop);
  return next;
}

}  // namespace

void merge_clusters(const ClusterGraph& graph, int64_t first, int64_t num_clusters, int64_t max_size, const Loop& loop,
                    int64_t* cluster) {
  std::vector<int32_t> of(graph.size());
  std::iota(of.begin(), of.end(), 0);
  Level level = first_level(graph, loop);
  for (int64_t number = 0; level.size() > num_clusters; ++number) {
    const int64_t excess = level.size() - num_clusters;
    std::vector<int32_t> target = join(level, excess, max_size, number, loop);
    if (target.empty()) target = pair_up(level, excess, max_size);
    std::vector<int32_t> label(level.size());
    int32_t size = 0;
    for (int64_t a = 0; a < level.size(); ++a) label[a] = target[a] == a ? size++ : -1;
    if (size == level.size()) break;  // no two fit; of a graph that is not symmetric, no two agree
    for (int64_t a = 0; a < level.size(); ++a) label[a] = label[target[a]];
    for (int32_t& c : of) c = label[c];
    level = contract(level, label, size, loop);
  }

  std::vector<int64_t> order(level.size()), number(level.size(), -1);
  std::iota(order.begin(), order.end(), 0);
  if (level.size() > num_clusters) {  // the largest stay
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::tie(level.count[b], level.key[a]) < std::tie(level.count[a], level.key[b]);
    });
    order.resize(num_clusters);
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return level.key[a] < level.key[b]; });
  for (size_t j = 0; j < order.size(); ++j) number[order[j]] = first + static_cast<int64_t>(j);
  for (int64_t i = 0; i < graph.size(); ++i) cluster[graph.begin + i] = number[of[i]];
}

}  // namespace torch_gic
