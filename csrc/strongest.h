// The largest items of a list, with one answer among equals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace torch_gic {

// Keeps the 'count' items that are largest in 'value', of equals the first, in the order in which they stood.
template <typename Item, typename Value>
void strongest(std::vector<Item>& items, int64_t count, Value value) {
  if (int64_t(items.size()) <= count) return;
  std::vector<int64_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::nth_element(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    const double first = value(items[a]), second = value(items[b]);
    return first > second || (first == second && a < b);
  });
  order.resize(count);
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < count; ++i) items[i] = items[order[i]];
  items.resize(count);
}

}  // namespace torch_gic
