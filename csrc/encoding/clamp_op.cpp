// Mean and deviation of each channel, and the clamp of what is far from the mean.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/check.h"
#include "common/ops.h"
#include "common/parallel.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

constexpr int64_t kGrain = 512;
// The same as in torch_gic/encoding/clamp.py, and RELATIVE_EPS and MIN_VARIANCE in torch_gic/encoding/normalize.py.
constexpr double kMinLength = 1, kMaxLength = 8, kZeroLength = 1e-15, kRelativeEps = 1e-10, kMinVariance = 1e-30;

void check_features(const Tensor& x, const char* name) {
  STD_TORCH_CHECK(x.scalar_type() == ScalarType::Float || x.scalar_type() == ScalarType::Double, "Expected '", name,
                  "' to hold float32 or float64 values");
  STD_TORCH_CHECK(x.dim() == 2, "Expected '", name, "' to have 2 dimensions (got ", x.dim(), ")");
}

// The bounds of each channel and the factor of all channels, from the running statistics.
template <typename T>
struct Limits {
  std::vector<T> lower, upper;
  T factor;

  Limits(const Tensor& running, int64_t channels, double bound, T* reciprocal) : lower(channels), upper(channels) {
    STD_TORCH_CHECK(bound > 0 && bound <= std::numeric_limits<double>::max(),
                    "Expected 'bound' to be positive and finite (got ", bound, ")");
    check_tensor(running, "running", 2, sizeof(T) == 4 ? ScalarType::Float : ScalarType::Double);
    check_size(running, "running", 0, 3);
    check_size(running, "running", 1, channels);
    const Tensor values = torch::stable::contiguous(running);
    const T *mean = values.const_data_ptr<T>(), *deviation = mean + channels, *weight = deviation + channels;
    double square = 0;
    std::vector<double> inverse(channels);
    for (int64_t c = 0; c < channels; ++c) {
      const bool fresh = weight[c] == 0;  // before any batch: mean 0 and deviation 1
      const double m = fresh ? 0 : static_cast<double>(mean[c]) / weight[c],
                   s = fresh ? 1 : static_cast<double>(deviation[c]) / weight[c];
      lower[c] = static_cast<T>(m - bound * s);
      upper[c] = static_cast<T>(m + bound * s);
      square += m * m + s * s;
      inverse[c] = s * s > kRelativeEps * m * m + kMinVariance ? 1 / std::abs(s) : 0;
    }
    const double length = std::sqrt(square);
    // NaN stays: comparisons with it are false.
    const double scale = length <= kZeroLength ? 1 : std::clamp(length, kMinLength, kMaxLength) / length;
    factor = static_cast<T>(scale);
    if (!reciprocal) return;
    for (int64_t c = 0; c < channels; ++c) reciprocal[c] = static_cast<T>(inverse[c] / scale);
  }
};

}  // namespace

Tensor channel_statistics_cpu(Tensor x) {
  check_features(x, "x");
  x = torch::stable::contiguous(x);
  const int64_t rows = x.size(0), channels = x.size(1);
  STD_TORCH_CHECK(rows > 0, "Expected 'x' to have at least one row");
  Tensor out = torch::stable::new_empty(x, {3, channels});
  const auto run = [&]<typename T>(T) {
    const T* values = x.const_data_ptr<T>();
    T* result = out.mutable_data_ptr<T>();
    constexpr int64_t strip = 16;  // channels per thread, so no sum depends on the number of threads
    const int64_t grain = std::max<int64_t>(1, 4096 / rows);
    parallel_for(0, (channels + strip - 1) / strip, grain, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin * strip; first < std::min(end * strip, channels); first += strip) {
        const int64_t count = std::min(strip, channels - first);
        double mean[strip] = {}, square[strip] = {};
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t c = 0; c < count; ++c) mean[c] += values[i * channels + first + c];
        }
        for (int64_t c = 0; c < count; ++c) mean[c] /= rows;
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t c = 0; c < count; ++c) {
            const double d = values[i * channels + first + c] - mean[c];
            square[c] += d * d;
          }
        }
        for (int64_t c = 0; c < count; ++c) {
          result[first + c] = static_cast<T>(mean[c]);
          result[channels + first + c] = static_cast<T>(std::sqrt(square[c] / rows));
          result[2 * channels + first + c] = 1;
        }
      }
    });
  };
  x.scalar_type() == ScalarType::Float ? run(float{}) : run(double{});
  return out;
}

std::tuple<Tensor, Tensor> outlier_clamp_cpu(Tensor x, Tensor running, double bound) {
  check_features(x, "x");
  x = torch::stable::contiguous(x);
  const int64_t rows = x.size(0), channels = x.size(1);
  Tensor out = torch::stable::empty_like(x), reciprocal = torch::stable::new_empty(x, {channels});
  const auto run = [&]<typename T>(T) {
    const T* from = x.const_data_ptr<T>();
    T* to = out.mutable_data_ptr<T>();
    const Limits<T> limits(running, channels, bound, reciprocal.mutable_data_ptr<T>());
    parallel_for(0, rows, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t c = 0; c < channels; ++c) {
          const T value = from[i * channels + c];  // NaN stays: comparisons with it are false
          const T raised = value < limits.lower[c] ? limits.lower[c] : value;
          to[i * channels + c] = (raised > limits.upper[c] ? limits.upper[c] : raised) * limits.factor;
        }
      }
    });
  };
  x.scalar_type() == ScalarType::Float ? run(float{}) : run(double{});
  return {out, reciprocal};
}

Tensor outlier_clamp_backward_cpu(Tensor grad, Tensor x, Tensor running, double bound) {
  check_features(x, "x");
  check_tensor(grad, "grad", 2, x.scalar_type());
  const int64_t rows = x.size(0), channels = x.size(1);
  check_size(grad, "grad", 0, rows);
  check_size(grad, "grad", 1, channels);
  grad = torch::stable::contiguous(grad);
  x = torch::stable::contiguous(x);
  Tensor to_x = torch::stable::empty_like(x);
  const auto run = [&]<typename T>(T) {
    const T *from = x.const_data_ptr<T>(), *g = grad.const_data_ptr<T>();
    T* to = to_x.mutable_data_ptr<T>();
    const Limits<T> limits(running, channels, bound, static_cast<T*>(nullptr));
    parallel_for(0, rows, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t at = i * channels + c;
          to[at] = from[at] >= limits.lower[c] && from[at] <= limits.upper[c] ? g[at] * limits.factor : T(0);
        }
      }
    });
  };
  x.scalar_type() == ScalarType::Float ? run(float{}) : run(double{});
  return to_x;
}

}  // namespace torch_gic
