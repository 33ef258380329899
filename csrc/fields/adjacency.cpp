#include "fields/adjacency.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "fields/strongest.h"

namespace torch_gic {
namespace {

double power_of_two(int32_t exponent) {
  if (exponent < -1022 || exponent > 1023) return std::ldexp(1.0, exponent);
  const uint64_t bits = uint64_t(exponent + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof(power));
  return power;
}

// The order that sorts 'entries' by key and keeps the order of equal keys. Sets 'first' to where each key begins.
std::vector<int64_t> sorted_by(const int64_t* key, const std::vector<int64_t>& entries, int64_t num_keys,
                               std::vector<int64_t>& first) {
  first.assign(num_keys + 1, 0);
  for (const int64_t e : entries) ++first[key[e] + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int64_t> next(first.begin(), first.end() - 1), order(entries.size());
  for (const int64_t e : entries) order[next[key[e]]++] = e;
  return order;
}

}  // namespace

template <typename T>
Adjacency::Adjacency(const int64_t* rows, const int64_t* cols, const T* weight, int64_t num_entries, int64_t num_nodes)
    : num_nodes(num_nodes), rowptr(num_nodes + 1) {
  std::vector<int64_t> order, first;
  for (int64_t e = 0; e < num_entries; ++e) {
    if (weight[e] > 0) order.push_back(e);
  }
  order = sorted_by(cols, order, num_nodes, first);
  order = sorted_by(rows, order, num_nodes, first);
  col.reserve(order.size());
  fraction.reserve(order.size());
  for (int64_t i = 0; i < num_nodes; ++i) {
    rowptr[i] = col.size();
    for (int64_t p = first[i]; p < first[i + 1]; ++p) {
      const int64_t to = cols[order[p]];
      if (int64_t(col.size()) > rowptr[i] && col.back() == to) {
        fraction.back() = std::min(fraction.back() + double(weight[order[p]]), kLargest);
      } else {
        col.push_back(to);
        fraction.push_back(weight[order[p]]);
      }
    }
  }
  rowptr[num_nodes] = col.size();
  exponent.resize(col.size());
  for (size_t e = 0; e < col.size(); ++e) fraction[e] = std::frexp(fraction[e], &exponent[e]);
}

void Adjacency::keep_strongest(const LargeVector<double>& value, int64_t count) {
  int64_t kept = 0;
  std::vector<int64_t> row;
  for (int64_t i = 0, begin = 0; i < num_nodes; ++i) {
    row.resize(rowptr[i + 1] - begin);
    std::iota(row.begin(), row.end(), begin);
    begin = rowptr[i + 1];
    strongest(row, count, [&](int64_t e) { return value[e]; }, [](int64_t e) { return e; });
    for (const int64_t e : row) {
      col[kept] = col[e];
      fraction[kept] = fraction[e];
      exponent[kept++] = exponent[e];
    }
    rowptr[i + 1] = kept;
  }
  col.resize(kept);
  fraction.resize(kept);
  exponent.resize(kept);
}

std::vector<int64_t> Adjacency::blocks() const {
  std::vector<int64_t> last(num_nodes), first{0};
  std::iota(last.begin(), last.end(), 0);
  for (int64_t i = 0; i < num_nodes; ++i) {
    for (int64_t e = rowptr[i]; e < rowptr[i + 1]; ++e) {
      int64_t& furthest = last[std::min(i, col[e])];
      furthest = std::max(furthest, std::max(i, col[e]));
    }
  }
  for (int64_t i = 0, furthest = 0; i < num_nodes; ++i) {
    furthest = std::max(furthest, last[i]);
    if (furthest == i) first.push_back(i + 1);
  }
  return first;
}

Degrees::Degrees(int64_t num_nodes, int64_t num_scales)
    : fraction((num_scales + 1) * num_nodes, 0.5), power((num_scales + 1) * num_nodes, 1) {}  // d_0 = 1 = 0.5 * 2

Degrees::Degrees(int64_t num_nodes, int64_t num_scales, const double* given) : Degrees(num_nodes, num_scales) {
  for (int64_t k = 1; k <= num_scales; ++k) {
    for (int64_t i = 0; i < num_nodes; ++i) {
      int exponent = 0;
      fraction[k * num_nodes + i] = std::frexp(given[i * num_scales + k - 1], &exponent);
      power[k * num_nodes + i] = exponent;
    }
  }
}

void Degrees::step(const Adjacency& a, int64_t k, int64_t begin, int64_t end) {
  const double* last = fraction.data() + (k - 1) * a.num_nodes;
  const int32_t* last_power = power.data() + (k - 1) * a.num_nodes;
  for (int64_t i = begin; i < end; ++i) {
    int32_t highest = std::numeric_limits<int32_t>::min();
    for (int64_t e = a.rowptr[i]; e < a.rowptr[i + 1]; ++e) {
      if (last[a.col[e]] > 0) highest = std::max(highest, a.exponent[e] + last_power[a.col[e]]);
    }
    double total = 0;
    for (int64_t e = a.rowptr[i]; e < a.rowptr[i + 1]; ++e) {
      const int64_t j = a.col[e];
      if (last[j] > 0) total += a.fraction[e] * last[j] * power_of_two(a.exponent[e] + last_power[j] - highest);
    }
    int32_t exponent = 0;
    fraction[k * a.num_nodes + i] = std::frexp(total, &exponent);
    power[k * a.num_nodes + i] = total > 0 ? exponent + highest : 0;
  }
}

namespace {

// Where no walk ends, the degree is replaced by 1: the edges that leave such a node still count.
std::pair<double, int32_t> or_one(double fraction, int32_t power) {
  return fraction > 0 ? std::pair{fraction, power} : std::pair{0.5, int32_t(1)};
}

}  // namespace

void transition(const Adjacency& a, const Degrees& d, int64_t k, int64_t begin, int64_t end, double* value) {
  const double *last = d.fraction.data() + (k - 1) * a.num_nodes, *next = last + a.num_nodes;
  const int32_t *last_power = d.power.data() + (k - 1) * a.num_nodes, *next_power = last_power + a.num_nodes;
  for (int64_t i = begin; i < end; ++i) {
    const auto [top, top_power] = or_one(last[i], last_power[i]);
    for (int64_t e = a.rowptr[i]; e < a.rowptr[i + 1]; ++e) {
      const auto [bottom, bottom_power] = or_one(next[a.col[e]], next_power[a.col[e]]);
      const double power = power_of_two(a.exponent[e] + top_power - bottom_power);
      value[e] = std::min(a.fraction[e] * top / bottom * power, kLargest);
    }
  }
}

template Adjacency::Adjacency(const int64_t*, const int64_t*, const float*, int64_t, int64_t);
template Adjacency::Adjacency(const int64_t*, const int64_t*, const double*, int64_t, int64_t);

}  // namespace torch_gic
