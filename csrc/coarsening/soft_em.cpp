#include "coarsening/soft_em.h"

#include <limits>
#include <vector>

namespace torch_gic {
namespace {

constexpr double kTiny = std::numeric_limits<double>::min();  // a cluster may lose all its weight: 0 instead of 0 / 0

// Responsibilities p and products B of one graph, both [num_nodes, num_clusters], and what an iteration sums over
// nodes.
class Mixture {
 public:
  Mixture(const AffinityGraph& graph, int64_t num_clusters, const Loop& loop)
      : graph_(graph),
        loop_(loop),
        num_clusters_(num_clusters),
        p_(graph.size() * num_clusters, 0),
        b_(graph.size() * num_clusters),
        mass_(num_clusters),
        spread_(num_clusters),
        log_pi_(num_clusters) {}

  double* p(int64_t i) { return p_.data() + i * num_clusters_; }

  void step() {
    multiply();
    sum();
    for_each(loop_, graph_.size(), [&](int64_t i) { assign(i); });
  }

 private:
  double weight(int64_t i) const { return graph_.node_weight[graph_.begin + i]; }

  // B = K diag(w) P.
  void multiply() {
    for_each(loop_, graph_.size(), [&](int64_t i) {
      double* b = b_.data() + i * num_clusters_;
      std::fill(b, b + num_clusters_, 0);
      graph_.each_neighbor(i, [&](int64_t j, double affinity) { add(b, affinity * weight(j), p(j)); });
      add(b, graph_.diagonal[graph_.begin + i] * weight(i), p(i));
    });
  }

  void add(double* sum, double factor, const double* value) const {
    for (int64_t c = 0; c < num_clusters_; ++c) sum[c] += factor * value[c];
  }

  // Over the nodes, always in their order, for blocks of clusters at once.
  void sum() {
    loop_(num_clusters_, [&](Blocks& blocks) {
      for (int64_t first, last; blocks.next(first, last);) sum(first, last);
    });
  }

  void sum(int64_t first, int64_t last) {
    for (auto* sums : {&mass_, &spread_, &log_pi_}) std::fill(sums->begin() + first, sums->begin() + last, 0);
    for (int64_t i = 0; i < graph_.size(); ++i) {
      const double w = weight(i);
      const double *p = this->p(i), *b = b_.data() + i * num_clusters_;
      for (int64_t c = first; c < last; ++c) {
        mass_[c] += w * p[c];
        spread_[c] += w * p[c] * b[c];
        log_pi_[c] += p[c];
      }
    }
    for (int64_t c = first; c < last; ++c) {
      mass_[c] = std::max(mass_[c], kTiny);
      spread_[c] = spread_[c] / mass_[c] / mass_[c];
      log_pi_[c] = std::log(std::max(log_pi_[c] / static_cast<double>(graph_.size()), kTiny));
    }
  }

  void assign(int64_t i) {
    const double factor = graph_.beta / 2 * weight(i), diagonal = graph_.diagonal[graph_.begin + i];
    double *p = this->p(i), *b = b_.data() + i * num_clusters_;
    double highest = -std::numeric_limits<double>::infinity(), total = 0;
    for (int64_t c = 0; c < num_clusters_; ++c) {
      p[c] = log_pi_[c] - factor * (diagonal - 2 * b[c] / mass_[c] + spread_[c]);
      highest = std::max(highest, p[c]);
    }
    for (int64_t c = 0; c < num_clusters_; ++c) {
      p[c] = std::exp(p[c] - highest);
      total += p[c];
    }
    for (int64_t c = 0; c < num_clusters_; ++c) p[c] /= total;
  }

  const AffinityGraph& graph_;
  const Loop& loop_;
  int64_t num_clusters_;
  std::vector<double> p_, b_, mass_, spread_, log_pi_;
};

}  // namespace

void soft_em(const AffinityGraph& graph, int64_t first, int64_t num_clusters, int64_t num_iterations, const Loop& loop,
             int64_t* cluster) {
  int64_t* of = cluster + graph.begin;
  std::vector<int64_t> seed(num_clusters, -1), size(num_clusters, 0);
  Mixture mixture(graph, num_clusters, loop);
  for (int64_t i = 0; i < graph.size(); ++i) {
    int64_t& s = seed[of[i] - first];
    if (s < 0 || graph.rank[graph.begin + i] < graph.rank[graph.begin + s]) s = i;
    mixture.p(i)[of[i] - first] = 1;
  }
  for (int64_t t = 0; t < num_iterations; ++t) mixture.step();
  for (int64_t i = 0; i < graph.size(); ++i) {
    int64_t highest = -1;
    for (int64_t c = 0; c < num_clusters; ++c) {
      const int64_t p = on_grid(mixture.p(i)[c]);
      if (p > highest) {
        highest = p;
        of[i] = first + c;
      }
    }
    ++size[of[i] - first];
  }

  // A cluster without a node takes back the one it started with. That may have been the last of another.
  for (bool again = true; again;) {
    again = false;
    for (int64_t c = 0; c < num_clusters; ++c) {
      if (size[c] > 0) continue;
      --size[of[seed[c]] - first];
      of[seed[c]] = first + c;
      ++size[c];
      again = true;
    }
  }
}

}  // namespace torch_gic
