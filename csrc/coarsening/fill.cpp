#include "coarsening/fill.h"

#include <tuple>

namespace torch_gic {
namespace {

// The cluster with room to which a node has the strongest links.
struct Wish {
  int32_t node, to;
  int64_t strength;
};

}  // namespace

void fill_clusters(const Graph& graph, int64_t num_clusters, int64_t max_size, int32_t* cluster) {
  const int64_t* rank = graph.rank + graph.begin;
  std::vector<int64_t> room(num_clusters, max_size);
  std::vector<int32_t> left;
  for (int64_t i = 0; i < graph.size(); ++i) {
    if (cluster[i] >= 0) --room[cluster[i]];
    if (cluster[i] < 0) left.push_back(static_cast<int32_t>(i));
  }
  Combiner combine(num_clusters);
  std::vector<Link> links;
  std::vector<Wish> wishes;
  while (true) {
    wishes.clear();
    for (const int32_t i : left) {
      links.clear();
      graph.each_neighbor(i, [&](int64_t j, double weight) {
        if (cluster[j] >= 0 && room[cluster[j]] > 0) links.push_back({cluster[j], weight});
      });
      const int64_t count = combine(links.data(), static_cast<int64_t>(links.size()));
      Wish wish{i, -1, 0};
      for (int64_t k = 0; k < count; ++k) {
        const int64_t strength = on_grid(links[k].second);
        if (wish.to < 0 || strength > wish.strength) wish = {i, links[k].first, strength};
      }
      if (wish.to >= 0) wishes.push_back(wish);
    }
    if (wishes.empty()) break;
    std::sort(wishes.begin(), wishes.end(), [&](const Wish& a, const Wish& b) {
      return std::tie(a.to, b.strength, rank[a.node]) < std::tie(b.to, a.strength, rank[b.node]);
    });
    for (const Wish& wish : wishes) {
      if (room[wish.to] == 0) continue;
      --room[wish.to];
      cluster[wish.node] = wish.to;
    }
    left.erase(std::remove_if(left.begin(), left.end(), [&](int32_t i) { return cluster[i] >= 0; }), left.end());
  }
  std::sort(left.begin(), left.end(), [&](int32_t a, int32_t b) { return rank[a] < rank[b]; });
  int32_t c = 0;
  for (const int32_t i : left) {  // no cluster with room among the neighbours
    while (room[c] == 0) ++c;
    --room[c];
    cluster[i] = c;
  }
}

}  // namespace torch_gic
