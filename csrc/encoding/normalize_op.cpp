// Normalises each channel over the rows and bounds it softly, forward and backward.
#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <cmath>

#include "common/check.h"
#include "common/ops.h"
#include "common/parallel.h"

namespace torch_gic {
namespace {

using torch::headeronly::ScalarType;

// Channels per thread. Their rows are read together, and no sum depends on the number of threads.
constexpr int64_t kStrip = 16;
// The same as RELATIVE_EPS and MIN_VARIANCE in torch_gic/encoding/normalize.py.
constexpr double kRelativeEps = 1e-10, kMinVariance = 1e-30;

// One over the deviation; zero for a channel that is constant up to rounding.
double scale_of(double mean, double var) {
  return var > kRelativeEps * mean * mean + kMinVariance ? 1 / std::sqrt(var) : 0;
}

template <typename T>
void forward_strip(const T* x, int64_t rows, int64_t channels, int64_t first, T bound, T* y, T* mean, T* var) {
  const int64_t count = std::min(kStrip, channels - first);
  double sum[kStrip] = {}, square[kStrip] = {}, centre[kStrip];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < count; ++c) sum[c] += x[i * channels + first + c];
  }
  for (int64_t c = 0; c < count; ++c) centre[c] = sum[c] / rows;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < count; ++c) {
      const double d = x[i * channels + first + c] - centre[c];
      square[c] += d * d;
    }
  }
  T shift[kStrip], scale[kStrip];
  for (int64_t c = 0; c < count; ++c) {
    mean[first + c] = static_cast<T>(centre[c]);
    var[first + c] = static_cast<T>(square[c] / rows);
    shift[c] = mean[first + c];
    scale[c] = static_cast<T>(scale_of(centre[c], square[c] / rows));
  }
  const T excess = 1 / (bound * bound);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < count; ++c) {
      const T z = (x[i * channels + first + c] - shift[c]) * scale[c];
      y[i * channels + first + c] = z / std::sqrt(1 + z * z * excess);
    }
  }
}

// With z = (x - mean) scale and g the gradient to z: dx = scale (g - mean of g - z times the mean of g z).
template <typename T>
void backward_strip(const T* grad, const T* x, const T* mean, const T* var, int64_t rows, int64_t channels,
                    int64_t first, T bound, T* to_x) {
  const int64_t count = std::min(kStrip, channels - first);
  T shift[kStrip], scale[kStrip], constant[kStrip], slope[kStrip];
  double sum[kStrip] = {}, product[kStrip] = {};
  for (int64_t c = 0; c < count; ++c) {
    shift[c] = mean[first + c];
    scale[c] = static_cast<T>(scale_of(mean[first + c], var[first + c]));
  }
  const T excess = 1 / (bound * bound);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < count; ++c) {
      const int64_t at = i * channels + first + c;
      const T z = (x[at] - shift[c]) * scale[c];
      const T t = 1 / (1 + z * z * excess);
      const T g = grad[at] * t * std::sqrt(t);
      to_x[at] = g;
      sum[c] += g;
      product[c] += g * z;
    }
  }
  for (int64_t c = 0; c < count; ++c) {
    constant[c] = static_cast<T>(sum[c] / rows);
    slope[c] = static_cast<T>(product[c] / rows);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < count; ++c) {
      const int64_t at = i * channels + first + c;
      to_x[at] = (to_x[at] - constant[c] - (x[at] - shift[c]) * scale[c] * slope[c]) * scale[c];
    }
  }
}

template <typename Work>
void over_strips(int64_t rows, int64_t channels, const Work& work) {
  const int64_t strips = (channels + kStrip - 1) / kStrip;
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(rows, 1));
  parallel_for(0, strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) work(strip * kStrip);
  });
}

void check(const Tensor& x, const char* name, double bound) {
  STD_TORCH_CHECK(bound > 0, "Expected 'bound' to be positive (got ", bound, ")");
  STD_TORCH_CHECK(x.scalar_type() == ScalarType::Float || x.scalar_type() == ScalarType::Double, "Expected '", name,
                  "' to hold float32 or float64 values");
  STD_TORCH_CHECK(x.dim() == 2, "Expected '", name, "' to have 2 dimensions (got ", x.dim(), ")");
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> bounded_norm_cpu(Tensor x, double bound) {
  check(x, "x", bound);
  x = torch::stable::contiguous(x);
  const int64_t rows = x.size(0), channels = x.size(1);
  STD_TORCH_CHECK(rows > 0, "Expected 'x' to have at least one row");
  Tensor y = torch::stable::empty_like(x), mean = torch::stable::new_empty(x, {channels}),
         var = torch::stable::new_empty(x, {channels});
  const auto run = [&]<typename T>(T) {
    over_strips(rows, channels, [&](int64_t first) {
      forward_strip<T>(x.const_data_ptr<T>(), rows, channels, first, static_cast<T>(bound), y.mutable_data_ptr<T>(),
                       mean.mutable_data_ptr<T>(), var.mutable_data_ptr<T>());
    });
  };
  x.scalar_type() == ScalarType::Float ? run(float{}) : run(double{});
  return {y, mean, var};
}

Tensor bounded_norm_backward_cpu(Tensor grad, Tensor x, Tensor mean, Tensor var, double bound) {
  check(x, "x", bound);
  check_tensor(grad, "grad", 2, x.scalar_type());
  check_tensor(mean, "mean", 1, x.scalar_type());
  check_tensor(var, "var", 1, x.scalar_type());
  const int64_t rows = x.size(0), channels = x.size(1);
  check_size(grad, "grad", 0, rows);
  check_size(grad, "grad", 1, channels);
  check_size(mean, "mean", 0, channels);
  check_size(var, "var", 0, channels);
  grad = torch::stable::contiguous(grad);
  x = torch::stable::contiguous(x);
  mean = torch::stable::contiguous(mean);
  var = torch::stable::contiguous(var);
  Tensor to_x = torch::stable::empty_like(x);
  const auto run = [&]<typename T>(T) {
    over_strips(rows, channels, [&](int64_t first) {
      backward_strip<T>(grad.const_data_ptr<T>(), x.const_data_ptr<T>(), mean.const_data_ptr<T>(),
                        var.const_data_ptr<T>(), rows, channels, first, static_cast<T>(bound),
                        to_x.mutable_data_ptr<T>());
    });
  };
  x.scalar_type() == ScalarType::Float ? run(float{}) : run(double{});
  return to_x;
}

}  // namespace torch_gic
