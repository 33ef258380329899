// The largest items of a list, with a rule for ties.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace torch_gic {

// Keeps the 'count' items with the largest 'value' and sorts them by key. Ties go to the lowest key.
template <typename Item, typename Value, typename Key>
void strongest(std::vector<Item>& items, int64_t count, Value value, Key key) {
  if (int64_t(items.size()) > count) {
    std::nth_element(items.begin(), items.begin() + count, items.end(), [&](const Item& a, const Item& b) {
      const double first = value(a), second = value(b);
      return first > second || (first == second && key(a) < key(b));
    });
    items.resize(count);
  }
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) { return key(a) < key(b); });
}

}  // namespace torch_gic
