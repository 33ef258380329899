#include "coarsening/merge.h"

#include <limits>
#include <numeric>
#include <tuple>

namespace torch_gic {
namespace {

constexpr int64_t kAhead = 16;  // links ahead of which memory is asked for

}  // namespace

void Merger::sum_row(Level& level, int64_t r) const {
  Cluster& cluster = level.clusters[r];
  cluster.cut = 0;
  for (int64_t e = level.start[r]; e < level.end[r]; ++e) cluster.cut += level.links[e].second;
  cluster.ratio = cluster.cut / cluster.mass;
}

void Merger::set_first_level(const Graph& graph) {
  const int64_t size = graph.size(), base = graph.rowptr[graph.begin];
  level_.clusters.resize(size);
  level_.count.assign(size, 1);
  level_.start.resize(size);
  level_.end.resize(size);
  level_.links.resize(graph.rowptr[graph.end] - base);
  for_each(loop_, size, [&](int64_t r) {
    int64_t end = level_.start[r] = graph.rowptr[graph.begin + r] - base;
    graph.each_neighbor(r, [&](int64_t c, double weight) { level_.links[end++] = {static_cast<int32_t>(c), weight}; });
    level_.end[r] = end;
    level_.clusters[r] = {0, graph.node_weight[graph.begin + r], 0, graph.rank[graph.begin + r]};
    sum_row(level_, r);
  });
}

void Merger::prefer(int64_t a) {
  const Cluster& own = level_.clusters[a];
  const int64_t last = level_.end.back();
  Preference best{-1, 0, 0};
  for (int64_t e = level_.start[a]; e < level_.end[a]; ++e) {
    const auto [b, link] = level_.links[e];
    if (e + kAhead < last) __builtin_prefetch(&level_.clusters[level_.links[e + kAhead].first]);
    const Cluster& other = level_.clusters[b];
    if (settings_.max_size > 0 && level_.count[a] + level_.count[b] > settings_.max_size) continue;
    // Symmetric in both, so that the best pair of all prefers each other.
    const double apart = own.ratio + other.ratio;
    const double together = (own.cut + other.cut - 2 * link) / (own.mass + other.mass);
    const int64_t change = on_grid(together - apart);
    if (best.asks() && change > best.change) continue;
    const int64_t tie = mix((std::min(own.key, other.key) << 32) + std::max(own.key, other.key));
    const Preference found{b, change, tie};
    if (!best.asks() || found < best) best = found;
  }
  preference_[a] = best;
}

// Sets the cluster that each cluster joins in this round, itself if it joins none. False if none prefers another.
bool Merger::join(int64_t excess, int64_t round) {
  const int64_t size = level_.size();
  const LargeVector<Cluster>& clusters = level_.clusters;
  preference_.resize(size);
  for_each(loop_, size, [&](int64_t a) { prefer(a); });
  if (std::none_of(preference_.begin(), preference_.end(), [](const Preference& p) { return p.asks(); })) return false;
  keeps_.resize(size);
  stays_.resize(size);
  const auto mutual = [&](int64_t a) { return preference_[preference_[a].partner].partner == a; };
  for_each(loop_, size, [&](int64_t a) {
    const int32_t b = preference_[a].partner;
    keeps_[a] = preference_[a].asks() && mutual(a) &&
                (clusters[a].mass > clusters[b].mass ||
                 (clusters[a].mass == clusters[b].mass && clusters[a].key < clusters[b].key));
  });
  for_each(loop_, size, [&](int64_t a) {
    stays_[a] = keeps_[a] || (preference_[a].asks() && !mutual(a) && !keeps_[preference_[a].partner] &&
                              (mix(clusters[a].key + (round << 32)) & 1) == 1);
  });
  accept(excess);
  return true;
}

// Of those that would join, as many as fit join, and of these the better half.
void Merger::accept(int64_t excess) {
  const int64_t size = level_.size();
  const auto joins = [&](int64_t a) { return preference_[a].asks() && !stays_[a] && stays_[preference_[a].partner]; };
  place_.assign(size + 1, 0);
  for (int64_t a = 0; a < size; ++a) {
    if (joins(a)) ++place_[preference_[a].partner + 1];
  }
  std::partial_sum(place_.begin(), place_.end(), place_.begin());
  joining_.resize(place_[size]);
  for (int64_t a = size - 1; a >= 0; --a) {  // side by side with the others that join the same
    if (joins(a)) joining_[--place_[preference_[a].partner + 1]] = static_cast<int32_t>(a);
  }
  const auto before = [&](int32_t a, int32_t b) { return preference_[a] < preference_[b]; };
  auto fitting = joining_.begin();
  for (auto begin = joining_.begin(); begin != joining_.end();) {
    const int32_t b = preference_[*begin].partner;
    auto end = begin;
    while (end != joining_.end() && preference_[*end].partner == b) ++end;
    if (end - begin > 1) std::sort(begin, end, before);
    double gained = 0;
    int64_t count = level_.count[b];
    for (auto a = begin; a != end; ++a) {
      gained += level_.clusters[*a].mass;
      count += level_.count[*a];
      const bool fits = settings_.max_size == 0 || count <= settings_.max_size;
      if (fits && (a == begin || gained <= (1 + settings_.rounding) * level_.clusters[b].mass)) *fitting++ = *a;
    }
    begin = end;
  }
  joining_.erase(fitting, joining_.end());
  const int64_t accepted = std::min(excess, (static_cast<int64_t>(joining_.size()) + 1) / 2);
  if (accepted < static_cast<int64_t>(joining_.size())) {
    std::nth_element(joining_.begin(), joining_.begin() + accepted, joining_.end(), before);
  }
  target_.resize(size);
  std::iota(target_.begin(), target_.end(), 0);
  for (int64_t j = 0; j < accepted; ++j) target_[joining_[j]] = preference_[joining_[j]].partner;
}

// Without links, the second lightest cluster joins the lightest, the fourth the third, and so on. With a max_size, the
// smallest come first: if those two do not fit, no others do.
void Merger::pair_up(int64_t excess) {
  const LargeVector<Cluster>& clusters = level_.clusters;
  std::vector<int32_t>& order = joining_;
  order.resize(level_.size());
  target_.resize(level_.size());
  std::iota(order.begin(), order.end(), 0);
  std::iota(target_.begin(), target_.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Cluster &one = clusters[a], &two = clusters[b];
    if (settings_.max_size == 0) return std::tie(one.mass, one.key) < std::tie(two.mass, two.key);
    return std::tie(level_.count[a], one.key) < std::tie(level_.count[b], two.key);
  });
  for (int64_t j = 0; j < excess && 2 * j + 1 < level_.size(); ++j) {
    const int32_t a = order[2 * j + 1], b = order[2 * j];
    if (settings_.max_size == 0 || level_.count[a] + level_.count[b] <= settings_.max_size) target_[a] = b;
  }
}

// The next level, in which cluster a has become part of cluster label[a].
void Merger::contract(int64_t size) {
  next_.clusters.assign(size, {0, 0, 0, std::numeric_limits<int64_t>::max()});
  next_.count.assign(size, 0);
  next_.start.assign(size + 1, 0);
  next_.end.resize(size);
  begin_.assign(size + 1, 0);
  for (int64_t a = 0; a < level_.size(); ++a) {
    const Cluster& part = level_.clusters[a];
    Cluster& whole = next_.clusters[label_[a]];
    whole.key = std::min(whole.key, part.key);
    whole.mass += part.mass;
    next_.count[label_[a]] += level_.count[a];
    ++begin_[label_[a] + 1];
    next_.start[label_[a] + 1] += level_.end[a] - level_.start[a];
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::partial_sum(next_.start.begin(), next_.start.end(), next_.start.begin());
  member_.resize(level_.size());
  place_.assign(begin_.begin(), begin_.end() - 1);
  for (int64_t a = 0; a < level_.size(); ++a) member_[place_[label_[a]]++] = static_cast<int32_t>(a);

  next_.links.resize(next_.start.back());
  loop_(size, [&](Blocks& blocks) {
    Combiner combine(size);
    for (int64_t r, last; blocks.next(r, last);) {
      for (; r < last; ++r) {
        Link* row = next_.links.data() + next_.start[r];
        int64_t count = 0;
        for (int64_t m = begin_[r]; m < begin_[r + 1]; ++m) {
          for (int64_t e = level_.start[member_[m]]; e < level_.end[member_[m]]; ++e) {
            const int32_t c = label_[level_.links[e].first];
            if (c != r) row[count++] = {c, level_.links[e].second};
          }
        }
        next_.end[r] = next_.start[r] + combine(row, count);
        sum_row(next_, r);
      }
    }
  });
  std::swap(level_, next_);
}

// The clusters that are left in the order of their keys; if they are too many, only the largest.
void Merger::number(int64_t num_clusters, int64_t num_nodes, int32_t* cluster) {
  std::vector<int32_t>& order = joining_;
  order.resize(level_.size());
  std::iota(order.begin(), order.end(), 0);
  const LargeVector<Cluster>& clusters = level_.clusters;
  if (level_.size() > num_clusters) {
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return std::tie(level_.count[b], clusters[a].key) < std::tie(level_.count[a], clusters[b].key);
    });
    order.resize(num_clusters);
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return clusters[a].key < clusters[b].key; });
  label_.assign(level_.size(), -1);
  for (size_t j = 0; j < order.size(); ++j) label_[order[j]] = static_cast<int32_t>(j);
  for (int64_t i = 0; i < num_nodes; ++i) cluster[i] = label_[of_[i]];
}

void Merger::operator()(const Graph& graph, int64_t num_clusters, int32_t* cluster) {
  set_first_level(graph);
  of_.resize(graph.size());
  std::iota(of_.begin(), of_.end(), 0);
  for (int64_t round = 0; level_.size() > num_clusters; ++round) {
    const int64_t excess = level_.size() - num_clusters;
    if (!join(excess, round)) pair_up(excess);
    label_.resize(level_.size());
    int32_t size = 0;
    for (int64_t a = 0; a < level_.size(); ++a) label_[a] = target_[a] == a ? size++ : -1;
    if (size == level_.size()) break;  // no two fit; of a graph that is not symmetric, no two agree
    for (int64_t a = 0; a < level_.size(); ++a) {
      if (target_[a] != a) label_[a] = label_[target_[a]];
    }
    for_each(loop_, graph.size(), [&](int64_t i) { of_[i] = label_[of_[i]]; });
    contract(size);
  }
  number(num_clusters, graph.size(), cluster);
}

}  // namespace torch_gic
