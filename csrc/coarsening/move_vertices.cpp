#include "coarsening/move_vertices.h"

#include <limits>
#include <tuple>
#include <vector>

#include "coarsening/combine.h"

namespace torch_gic {
namespace {

constexpr int64_t kMostTogether = 64;  // vertices that go from one cluster to another in one iteration
constexpr double kLeast = 1e-9;        // of its weight, what a cluster must keep

// Where a vertex wants to go: lower changes are better. A change of 0 is no wish.
struct Wish {
  int64_t change = 0;
  int32_t to = -1;
  double link;
};

class Mover {
 public:
  Mover(const ClusterGraph& graph, int64_t num_clusters, int64_t max_size, const Loop& loop,
        std::vector<int32_t>& cluster)
      : graph_(graph),
        max_size_(max_size > 0 ? max_size : std::numeric_limits<int64_t>::max()),
        loop_(loop),
        cluster_(cluster),
        degree_(graph.size(), 0),
        own_(graph.size()),
        wish_(graph.size()),
        cut_(num_clusters),
        mass_(num_clusters),
        count_(num_clusters) {
    loop_(graph.size(), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        each_neighbour(i, [&](int64_t, double weight) { degree_[i] += weight; });
      }
    });
  }

  // One iteration; false if no vertex wanted to move.
  bool step() {
    measure();
    loop_(graph_.size(), [&](int64_t first, int64_t last) {
      Combiner combine(static_cast<int64_t>(cut_.size()));
      std::vector<Link> links;
      for (int64_t i = first; i < last; ++i) wish_[i] = wish_of(i, links, combine);
    });
    std::vector<int32_t> wishing;
    for (int64_t i = 0; i < graph_.size(); ++i) {
      if (wish_[i].change < 0) wishing.push_back(i);
    }
    if (wishing.empty()) return false;
    serve(wishing);
    return true;
  }

 private:
  template <typename Visit>
  void each_neighbour(int64_t i, const Visit& visit) const {
    for (int64_t e = graph_.rowptr[graph_.begin + i]; e < graph_.rowptr[graph_.begin + i + 1]; ++e) {
      const int64_t j = graph_.col[e] - graph_.begin;
      if (j != i) visit(j, graph_.weight[e]);
    }
  }

  double weight(int64_t i) const { return graph_.vertex_weight[graph_.begin + i]; }
  int64_t rank(int64_t i) const { return graph_.rank[graph_.begin + i]; }

  // Cut and weight of the clusters, and the links of each vertex to its own.
  void measure() {
    loop_(graph_.size(), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        own_[i] = 0;
        each_neighbour(i, [&](int64_t j, double weight) {
          if (cluster_[j] == cluster_[i]) own_[i] += weight;
        });
      }
    });
    std::fill(cut_.begin(), cut_.end(), 0);
    std::fill(mass_.begin(), mass_.end(), 0);
    std::fill(count_.begin(), count_.end(), 0);
    for (int64_t i = 0; i < graph_.size(); ++i) {
      cut_[cluster_[i]] += degree_[i] - own_[i];
      mass_[cluster_[i]] += weight(i);
      ++count_[cluster_[i]];
    }
  }

  Wish wish_of(int64_t i, std::vector<Link>& links, Combiner& combine) const {
    const int32_t a = cluster_[i];
    const double d = degree_[i], w = weight(i);
    Wish wish;
    if (!(mass_[a] - w > kLeast * mass_[a])) return wish;
    links.clear();
    each_neighbour(i, [&](int64_t j, double weight) {
      if (cluster_[j] != a) links.push_back({cluster_[j], weight});
    });
    const int64_t count = combine(links.data(), static_cast<int64_t>(links.size()));
    const double leaving = (cut_[a] - d + 2 * own_[i]) / (mass_[a] - w) - cut_[a] / mass_[a];
    for (int64_t k = 0; k < count; ++k) {
      const auto [b, link] = links[k];
      if (count_[b] >= max_size_) continue;
      const int64_t change = on_grid(leaving + (cut_[b] + d - 2 * link) / (mass_[b] + w) - cut_[b] / mass_[b]);
      if (change < wish.change) wish = {change, b, link};
    }
    return wish;
  }

  bool before(int32_t i, int32_t j) const {
    return wish_[i].change != wish_[j].change ? wish_[i].change < wish_[j].change : rank(i) < rank(j);
  }

  // A pair of clusters is served if its best wish is the best of both, among all wishes to and from them.
  void serve(const std::vector<int32_t>& wishing) {
    std::vector<int32_t> best(cut_.size(), -1);
    for (const int32_t i : wishing) {
      for (const int32_t c : {cluster_[i], wish_[i].to}) {
        if (best[c] < 0 || before(i, best[c])) best[c] = i;
      }
    }
    std::vector<int32_t> group;
    for (const int32_t i : wishing) {
      const int32_t first = best[cluster_[i]];
      if (best[wish_[i].to] == first && wish_[first].to == wish_[i].to && cluster_[first] == cluster_[i]) {
        group.push_back(i);
      }
    }
    std::sort(group.begin(), group.end(), [&](int32_t i, int32_t j) {
      return cluster_[i] != cluster_[j] ? cluster_[i] < cluster_[j] : before(i, j);
    });
    for (auto begin = group.begin(); begin != group.end();) {
      const int32_t a = cluster_[*begin];
      auto end = begin;
      while (end != group.end() && cluster_[*end] == a) ++end;
      move(&*begin, std::min<int64_t>(end - begin, kMostTogether));
      begin = end;
    }
  }

  // Of vertices in the order of their wishes, all of the same, moves as many as together lower the objective the most.
  void move(const int32_t* group, int64_t count) {
    const int32_t a = cluster_[group[0]], b = wish_[group[0]].to;
    double leaving = 0, coming = 0, moved = 0;
    int64_t lowest = std::numeric_limits<int64_t>::max(), best = 0;
    for (int64_t k = 0; k < count; ++k) {
      const int32_t i = group[k];
      leaving += 2 * own_[i] - degree_[i];
      coming += degree_[i] - 2 * wish_[i].link;
      moved += weight(i);
      if (count_[b] + k >= max_size_ || !(mass_[a] - moved > kLeast * mass_[a])) break;
      const int64_t objective =
          on_grid((cut_[a] + leaving) / (mass_[a] - moved) + (cut_[b] + coming) / (mass_[b] + moved));
      if (objective < lowest) {
        lowest = objective;
        best = k + 1;
      }
    }
    for (int64_t k = 0; k < best; ++k) cluster_[group[k]] = b;
  }

  const ClusterGraph& graph_;
  const int64_t max_size_;
  const Loop& loop_;
  std::vector<int32_t>& cluster_;
  std::vector<double> degree_, own_;
  std::vector<Wish> wish_;
  std::vector<double> cut_, mass_;
  std::vector<int64_t> count_;  // of vertices
};

}  // namespace

void move_vertices(const ClusterGraph& graph, int64_t first, int64_t num_clusters, int64_t num_iterations,
                   int64_t max_size, const Loop& loop, int64_t* cluster) {
  std::vector<int32_t> of(graph.size());
  for (int64_t i = 0; i < graph.size(); ++i) of[i] = static_cast<int32_t>(cluster[graph.begin + i] - first);
  Mover mover(graph, num_clusters, max_size, loop, of);
  for (int64_t t = 0; t < num_iterations && mover.step(); ++t) {
  }
  for (int64_t i = 0; i < graph.size(); ++i) cluster[graph.begin + i] = first + of[i];
}

}  // namespace torch_gic
