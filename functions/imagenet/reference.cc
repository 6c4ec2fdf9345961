#include "imagenet/reference.h"

#include <algorithm>

namespace fairlead::sample::imagenet {
namespace {

// A stack of square planes that is zero outside.
class Picture {
 public:
  Picture(int channels, int side) : channels_(channels), side_(side) {
    values_.resize(static_cast<std::size_t>(channels * side * side));
  }
  int side() const { return side_; }
  int channels() const { return channels_; }
  double& at(int channel, int y, int x) { return values_[index(channel, y, x)]; }
  double get(int channel, int y, int x) const {
    const bool inside = y >= 0 && y < side_ && x >= 0 && x < side_;
    return inside ? values_[index(channel, y, x)] : 0;
  }

 private:
  std::size_t index(int channel, int y, int x) const {
    return static_cast<std::size_t>((channel * side_ + y) * side_ + x);
  }

  int channels_;
  int side_;
  std::vector<double> values_;
};

double convolved(const Picture& in, const Layer& layer, int out_channel, int y, int x) {
  double sum = layer.bias[static_cast<std::size_t>(out_channel)];
  auto weight = layer.weights.begin() + out_channel * in.channels() * 9;
  for (int channel = 0; channel < in.channels(); ++channel) {
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) sum += *weight++ * in.get(channel, y + dy, x + dx);
    }
  }
  return std::max(sum, 0.0);
}

Picture block(const Picture& in, const Layer& layer, int out_channels) {
  Picture pooled(out_channels, in.side() / 2);
  for (int channel = 0; channel < out_channels; ++channel) {
    for (int y = 0; y < in.side(); ++y) {
      for (int x = 0; x < in.side(); ++x) {
        double& largest = pooled.at(channel, y / 2, x / 2);
        largest = std::max(largest, convolved(in, layer, channel, y, x));
      }
    }
  }
  return pooled;
}

double mean(const Picture& picture, int channel) {
  double sum = 0;
  for (int y = 0; y < picture.side(); ++y) {
    for (int x = 0; x < picture.side(); ++x) sum += picture.get(channel, y, x);
  }
  return sum / (picture.side() * picture.side());
}

}  // namespace

std::vector<float> classify(const Network& network, unsigned seed, int image, int side) {
  Picture picture(kConvolutions.front().in_channels, side);
  for (int channel = 0; channel < picture.channels(); ++channel) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) picture.at(channel, y, x) = picture_value(seed, image, channel, y, x, side);
    }
  }
  for (std::size_t i = 0; i < kConvolutions.size(); ++i) {
    picture = block(picture, network.convolutions[i], kConvolutions[i].out_channels);
  }
  std::vector<float> scores;
  for (int label = 0; label < kClasses; ++label) {
    double sum = network.dense.bias[static_cast<std::size_t>(label)];
    for (int i = 0; i < kFeatures; ++i) {
      sum += mean(picture, i) * network.dense.weights[static_cast<std::size_t>(i * kClasses + label)];
    }
    scores.push_back(static_cast<float>(sum));
  }
  return scores;
}

}  // namespace fairlead::sample::imagenet
