#include "coarsening/merge.h"

#include <numeric>
#include <tuple>

namespace torch_gic {
int64_t Merger::change(int64_t a, int64_t e) const {
  const auto [b, link] = level_.links[e];
  const Level::Cluster &own = level_.clusters[a], &other = level_.clusters[b];
  if (settings_.max_size > 0 && level_.count[a] + level_.count[b] > settings_.max_size) return kNever;
  // Symmetric in both, so that the best pair of all prefers each other.
  const double apart = own.ratio + other.ratio;
  const double together = (own.cut + other.cut - 2 * link) / (own.mass + other.mass);
  return on_grid(together - apart);
}

Merger::Preference Merger::prefer(int64_t a, int64_t e, int64_t change) const {
  const int32_t b = level_.links[e].first;
  const int64_t one = level_.clusters[a].key, other = level_.clusters[b].key;
  return {b, change, mix((std::min(one, other) << 32) + std::max(one, other))};
}

// The best of all clusters around a cluster. If neither it nor the last best has changed, only those that have can be
// better.
void Merger::prefer(int64_t a, std::vector<int64_t>& changes) {
  const int64_t begin = level_.start[a], end = level_.end[a], last = level_.end.back();
  Preference& best = preference_[a];
  if (!level_.changed[a] && best.partner != kUnknown) {
    for (int64_t e = begin; e < end; ++e) {
      if (!level_.changed[level_.links[e].first]) continue;
      const int64_t found = change(a, e);
      if (found < kNever && found <= best.change) best = std::min(best, prefer(a, e, found));
    }
    return;
  }
  changes.resize(end - begin);
  int64_t lowest = kNever;
  for (int64_t e = begin; e < end; ++e) {  // without branches, as these are hard to foresee
    if (e + kAhead < last) __builtin_prefetch(&level_.clusters[level_.links[e + kAhead].first]);
    changes[e - begin] = change(a, e);
    lowest = std::min(lowest, changes[e - begin]);
  }
  best = {kNobody, kNever, kNever};
  for (int64_t e = begin; lowest < kNever && e < end; ++e) {
    if (changes[e - begin] == lowest) best = std::min(best, prefer(a, e, lowest));
  }
}

// Sets the cluster that each cluster joins in this round, itself if it joins none. False if none prefers another.
bool Merger::join(int64_t excess, int64_t round) {
  const int64_t size = level_.size();
  const LargeVector<Level::Cluster>& clusters = level_.clusters;
  loop_(size, [&](Blocks& blocks) {
    std::vector<int64_t> changes;
    for (int64_t a, last; blocks.next(a, last);) {
      for (; a < last; ++a) prefer(a, changes);
    }
  });
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
  const LargeVector<Level::Cluster>& clusters = level_.clusters;
  LargeVector<int32_t>& order = joining_;
  order.resize(level_.size());
  target_.resize(level_.size());
  std::iota(order.begin(), order.end(), 0);
  std::iota(target_.begin(), target_.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const Level::Cluster &one = clusters[a], &two = clusters[b];
    if (settings_.max_size == 0) return std::tie(one.mass, one.key) < std::tie(two.mass, two.key);
    return std::tie(level_.count[a], one.key) < std::tie(level_.count[b], two.key);
  });
  for (int64_t j = 0; j < excess && 2 * j + 1 < level_.size(); ++j) {
    const int32_t a = order[2 * j + 1], b = order[2 * j];
    if (settings_.max_size == 0 || level_.count[a] + level_.count[b] <= settings_.max_size) target_[a] = b;
  }
}

// The next level, in which cluster a has become part of the cluster that label[a] says.
void Merger::contract(int32_t size) {
  contract_(level_, label_, size, loop_, next_);
  next_preference_.resize(size);
  for_each(loop_, size, [&](int64_t r) {
    if (next_.changed[r]) return;
    Preference preference = preference_[contract_.only_member(r)];
    if (preference.asks()) {
      const int32_t partner = number_of(label_[preference.partner]);
      preference.partner = next_.changed[partner] ? kUnknown : partner;
    }
    next_preference_[r] = preference;
  });
  std::swap(preference_, next_preference_);
  std::swap(level_, next_);
}

// The clusters that are left in the order of their keys; if they are too many, only the largest.
void Merger::number(int64_t num_clusters, int64_t num_nodes, int32_t* cluster) {
  LargeVector<int32_t>& order = joining_;
  order.resize(level_.size());
  std::iota(order.begin(), order.end(), 0);
  const LargeVector<Level::Cluster>& clusters = level_.clusters;
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
  level_.set(graph, loop_);
  preference_.resize(graph.size());
  of_.resize(graph.size());
  std::iota(of_.begin(), of_.end(), 0);
  for (int64_t round = 0; level_.size() > num_clusters; ++round) {
    const int64_t excess = level_.size() - num_clusters;
    if (!join(excess, round)) pair_up(excess);
    label_.resize(level_.size());
    int32_t size = 0;
    for (int64_t a = 0; a < level_.size(); ++a) {
      if (target_[a] == a) label_[a] = size++;
    }
    if (size == level_.size()) break;  // no two fit; of a graph that is not symmetric, no two agree
    for (int64_t a = 0; a < level_.size(); ++a) {
      if (target_[a] != a) label_[a] = ~label_[target_[a]];
    }
    for_each(loop_, graph.size(), [&](int64_t i) { of_[i] = number_of(label_[of_[i]]); });
    contract(size);
  }
  number(num_clusters, graph.size(), cluster);
}

}  // namespace torch_gic
