#include "coarsening/move.h"

#include <limits>

namespace torch_gic {
namespace {

constexpr int8_t kBeside = 1, kInside = 2;  // a cluster that has changed: with links to it, one of its nodes

}  // namespace

void Mover::link_own(int64_t i) {
  own_[i] = 0;
  graph_->each_neighbor(i, [&](int64_t j, double weight) {
    if (cluster_[j] == cluster_[i]) own_[i] += weight;
  });
}

// Cut and weight of the clusters, and the links of each node to its own: of what the last iteration has changed. All
// sums run over the nodes in their order, so that it does not matter when they were taken.
void Mover::measure() {
  const int64_t size = graph_->size();
  for (const int32_t i : moved_) {
    link_own(i);
    graph_->each_neighbor(i, [&](int64_t j, double) {
      if (changed_[cluster_[j]]) link_own(j);  // elsewhere nobody has come or gone
    });
  }
  for (size_t c = 0; c < clusters_.size(); ++c) {
    if (changed_[c]) clusters_[c] = {0, 0, 0};
  }
  for (int64_t i = 0; i < size; ++i) {
    if (!changed_[cluster_[i]]) continue;
    Cluster& cluster = clusters_[cluster_[i]];
    cluster.cut += degree_[i] - own_[i];
    cluster.mass += weight(i);
  }
  for (size_t c = 0; c < clusters_.size(); ++c) {
    if (changed_[c]) clusters_[c].ratio = clusters_[c].cut / clusters_[c].mass;
  }
}

Mover::Wish Mover::wish_of(int64_t i, std::vector<Link>& links, Combiner& combine) const {
  const int32_t a = cluster_[i];
  const Cluster& origin = clusters_[a];
  const double d = degree_[i], w = weight(i);
  Wish wish = wish_[i];
  // The last wish still beats all clusters that are what they were, unless it is gone itself.
  const bool anew = changed_[a] || (wish.to >= 0 && changed_[wish.to]);
  if (anew) wish = {0, -1, 0};
  if (!(origin.mass - w > settings_.rounding * origin.mass)) return wish;
  links.clear();
  graph_->each_neighbor(i, [&](int64_t j, double weight) {
    if (!anew && !(stale_[j] & kInside)) return;
    const int32_t b = cluster_[j];
    if (b == a) return;
    __builtin_prefetch(&clusters_[b]);
    links.push_back({b, weight});
  });
  const int64_t count = combine.unsorted(links.data(), static_cast<int64_t>(links.size()));
  const double leaving = (origin.cut - d + 2 * own_[i]) / (origin.mass - w) - origin.ratio;
  for (int64_t k = 0; k < count; ++k) {
    const auto [b, link] = links[k];
    const Cluster& to = clusters_[b];
    const int64_t change = on_grid(leaving + (to.cut + d - 2 * link) / (to.mass + w) - to.ratio);
    if (change < wish.change || (change == wish.change && b < wish.to)) wish = {change, b, link};
  }
  return wish;
}

bool Mover::before(int32_t i, int32_t j) const {
  const int64_t* rank = graph_->rank + graph_->begin;
  return wish_[i].change != wish_[j].change ? wish_[i].change < wish_[j].change : rank[i] < rank[j];
}

// A pair of clusters is served if its best wish is the best of both, among all wishes to and from them.
void Mover::serve() {
  best_.assign(clusters_.size(), -1);
  for (const int32_t i : wishing_) {
    for (const int32_t c : {cluster_[i], wish_[i].to}) {
      if (best_[c] < 0 || before(i, best_[c])) best_[c] = i;
    }
  }
  group_.clear();
  for (const int32_t i : wishing_) {
    const int32_t first = best_[cluster_[i]];
    if (best_[wish_[i].to] == first && wish_[first].to == wish_[i].to && cluster_[first] == cluster_[i]) {
      group_.push_back(i);
    }
  }
  std::sort(group_.begin(), group_.end(), [&](int32_t i, int32_t j) {
    return cluster_[i] != cluster_[j] ? cluster_[i] < cluster_[j] : before(i, j);
  });
  moved_.clear();
  changed_.assign(clusters_.size(), 0);
  for (auto begin = group_.begin(); begin != group_.end();) {
    const int32_t a = cluster_[*begin];
    auto end = begin;
    while (end != group_.end() && cluster_[*end] == a) ++end;
    move(&*begin, std::min<int64_t>(end - begin, settings_.most_together));
    begin = end;
  }
}

// Of nodes in the order of their wishes, all of the same, moves as many as together lower the objective the most.
void Mover::move(const int32_t* group, int64_t count) {
  const int32_t a = cluster_[group[0]], b = wish_[group[0]].to;
  const Cluster &from = clusters_[a], &to = clusters_[b];
  double leaving = 0, coming = 0, moved = 0;
  int64_t lowest = std::numeric_limits<int64_t>::max(), best = 0;
  for (int64_t k = 0; k < count; ++k) {
    const int32_t i = group[k];
    leaving += 2 * own_[i] - degree_[i];
    coming += degree_[i] - 2 * wish_[i].link;
    moved += weight(i);
    if (!(from.mass - moved > settings_.rounding * from.mass)) break;
    const int64_t objective =
        on_grid((from.cut + leaving) / (from.mass - moved) + (to.cut + coming) / (to.mass + moved));
    if (objective < lowest) {
      lowest = objective;
      best = k + 1;
    }
  }
  for (int64_t k = 0; k < best; ++k) {
    cluster_[group[k]] = b;
    moved_.push_back(group[k]);
  }
  if (best > 0) changed_[a] = changed_[b] = 1;
}

void Mover::operator()(const Graph& graph, int64_t num_clusters, int32_t* cluster) {
  const int64_t size = graph.size();
  graph_ = &graph;
  cluster_ = cluster;
  degree_.assign(size, 0);
  own_.resize(size);
  wish_.resize(size);
  clusters_.resize(num_clusters);
  changed_.assign(num_clusters, 1);
  stale_.assign(size, kInside);
  moved_.clear();
  for_each(loop_, size, [&](int64_t i) {
    graph.each_neighbor(i, [&](int64_t, double weight) { degree_[i] += weight; });
    link_own(i);
  });
  for (int64_t t = 0; t < settings_.num_iterations; ++t) {
    measure();
    if (t > 0) {
      std::fill(stale_.begin(), stale_.end(), 0);
      for (int64_t i = 0; i < size; ++i) {
        if (!changed_[cluster_[i]]) continue;
        stale_[i] |= kInside;
        graph.each_neighbor(i, [&](int64_t j, double) { stale_[j] |= kBeside; });
      }
    }
    loop_(size, [&](Blocks& blocks) {
      Combiner combine(num_clusters);
      std::vector<Link> links;
      for (int64_t i, last; blocks.next(i, last);) {
        for (; i < last; ++i) {
          if (stale_[i]) wish_[i] = wish_of(i, links, combine);
        }
      }
    });
    wishing_.clear();
    for (int64_t i = 0; i < size; ++i) {
      if (wish_[i].change < 0) wishing_.push_back(static_cast<int32_t>(i));
    }
    if (wishing_.empty()) return;
    serve();
    if (moved_.empty()) return;  // nothing will change any more
  }
}

}  // namespace torch_gic
