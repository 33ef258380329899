#include "coarsening/level.h"

#include <limits>
#include <numeric>

namespace torch_gic {
namespace {

constexpr size_t kFew = 24;  // links that are sorted by insertion, which needs no memory

}  // namespace

void Level::sum_row(int64_t r) {
  Cluster& cluster = clusters[r];
  cluster.cut = 0;
  for (int64_t e = start[r]; e < end[r]; ++e) cluster.cut += links[e].second;
  cluster.ratio = cluster.cut / cluster.mass;
}

// Every node is a cluster.
void Level::set(const Graph& graph, const Loop& loop) {
  const int64_t size = graph.size(), base = graph.rowptr[graph.begin];
  clusters.resize(size);
  count.assign(size, 1);
  changed.assign(size, 1);
  start.resize(size);
  end.resize(size);
  links.resize(graph.rowptr[graph.end] - base);
  for_each(loop, size, [&](int64_t r) {
    int64_t last = start[r] = graph.rowptr[graph.begin + r] - base;
    graph.each_neighbor(r, [&](int64_t c, double weight) { links[last++] = {static_cast<int32_t>(c), weight}; });
    end[r] = last;
    clusters[r] = {0, graph.node_weight[graph.begin + r], 0, graph.rank[graph.begin + r]};
    sum_row(r);
  });
}

// The members of each cluster of the next level, side by side and in their order, and what they are together.
void Contraction::gather(const Level& level, const LargeVector<int32_t>& label, int64_t size, Level& next) {
  next.clusters.assign(size, {0, 0, 0, std::numeric_limits<int64_t>::max()});
  next.count.assign(size, 0);
  next.start.assign(size + 1, 0);
  next.end.resize(size);
  next.changed.resize(size);
  begin_.assign(size + 1, 0);
  for (int64_t a = 0; a < level.size(); ++a) {
    const Level::Cluster& part = level.clusters[a];
    const int32_t r = number_of(label[a]);
    Level::Cluster& whole = next.clusters[r];
    whole.key = std::min(whole.key, part.key);
    whole.mass += part.mass;
    if (!joins(label[a])) whole.cut = part.cut, whole.ratio = part.ratio;
    next.count[r] += level.count[a];
    ++begin_[r + 1];
    next.start[r + 1] += level.end[a] - level.start[a];
  }
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  std::partial_sum(next.start.begin(), next.start.end(), next.start.begin());
  member_.resize(level.size());
  place_.assign(begin_.begin(), begin_.end() - 1);
  for (int64_t a = 0; a < level.size(); ++a) member_[place_[number_of(label[a])]++] = static_cast<int32_t>(a);
}

void Contraction::operator()(const Level& level, const LargeVector<int32_t>& label, int64_t size, const Loop& loop,
                             Level& next) {
  gather(level, label, size, next);
  next.links.resize(next.start.back());
  const Link *links = level.links.data(), *last = links + level.end.back();
  loop(size, [&](Blocks& blocks) {
    Scratch scratch(size);
    for (int64_t r, stop; blocks.next(r, stop);) {
      for (; r < stop; ++r) {
        Link* row = next.links.data() + next.start[r];
        next.changed[r] = begin_[r + 1] - begin_[r] > 1;
        if (!next.changed[r]) {
          const int32_t a = member_[begin_[r]];
          next.end[r] = next.start[r] + rename(links + level.start[a], links + level.end[a], last, label, scratch, row);
          continue;
        }
        int64_t count = 0;
        for (int64_t m = begin_[r]; m < begin_[r + 1]; ++m) {
          for (int64_t e = level.start[member_[m]]; e < level.end[member_[m]]; ++e) {
            const int32_t c = number_of(label[links[e].first]);
            if (c != r) row[count++] = {c, links[e].second};
          }
        }
        next.end[r] = next.start[r] + scratch.combine(row, count);
        next.sum_row(r);
      }
    }
  });
}

// Writes the row of a cluster whom nobody has joined. Links whose other end stays are in order.
int64_t Contraction::rename(const Link* begin, const Link* end, const Link* last, const LargeVector<int32_t>& label,
                            Scratch& scratch, Link* row) {
  scratch.renamed.clear();
  int64_t count = 0;
  for (const Link* link = begin; link != end; ++link) {
    if (link + kAhead < last) __builtin_prefetch(&label[link[kAhead].first]);
    const int32_t to = label[link->first];
    if (joins(to)) {
      scratch.renamed.push_back({number_of(to), static_cast<int32_t>(count), link->second});
    } else {
      row[count++] = {to, link->second};
    }
  }
  return scratch.renamed.empty() ? count : weave(scratch, row, count);
}

// Puts the others in their places. Links to the same cluster add up in the order in which they stood.
int64_t Contraction::weave(Scratch& scratch, Link* row, int64_t count) {
  auto& [combine, renamed, kept] = scratch;
  const auto before = [](const Renamed& a, const Renamed& b) { return a.to < b.to; };
  if (renamed.size() > kFew) {
    std::stable_sort(renamed.begin(), renamed.end(), before);
  } else {
    for (auto at = renamed.begin(); at != renamed.end(); ++at) {
      std::rotate(std::upper_bound(renamed.begin(), at, *at, before), at, at + 1);
    }
  }
  const int32_t lowest = renamed.front().to;
  int64_t k =
      std::lower_bound(row, row + count, lowest, [](const Link& link, int32_t c) { return link.first < c; }) - row;
  kept.assign(row + k, row + count);
  const int64_t skipped = k;
  Link* out = row + k;
  k = 0;
  const auto size = static_cast<int64_t>(kept.size());
  for (auto other = renamed.begin(); other != renamed.end();) {
    const int32_t c = other->to;
    while (k < size && kept[k].first < c) *out++ = kept[k++];
    bool waits = k < size && kept[k].first == c;  // the link that did not have to be renamed
    double sum = 0;
    for (; other != renamed.end() && other->to == c; ++other) {
      if (waits && other->place > skipped + k) {
        sum += kept[k].second;
        ++k;
        waits = false;
      }
      sum += other->weight;
    }
    if (waits) sum += kept[k++].second;
    *out++ = {c, sum};
  }
  out = std::copy(kept.begin() + k, kept.end(), out);
  return out - row;
}

}  // namespace torch_gic
