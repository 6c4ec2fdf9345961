#include "imagenet/network.h"

#include <cmath>

#include "fairlead/random.h"

namespace fairlead::sample::imagenet {
namespace {

Layer make_layer(unsigned seed, int inputs, int outputs) {
  Layer layer;
  const float scale = std::sqrt(6.0f / static_cast<float>(inputs));
  for (int i = 0; i < inputs * outputs; ++i) {
    layer.weights.push_back(scale * random_uniform(seed, static_cast<unsigned>(i)));
  }
  for (int i = 0; i < outputs; ++i) {
    layer.bias.push_back(0.1f * random_uniform(seed + 1, static_cast<unsigned>(i)));
  }
  return layer;
}

}  // namespace

Network make_network() {
  constexpr unsigned kWeightSeed = 1000;
  Network network;
  unsigned seed = kWeightSeed;
  for (const auto& [in, out] : kConvolutions) {
    network.convolutions.push_back(make_layer(seed, in * 9, out));
    seed += 2;
  }
  network.dense = make_layer(seed, kFeatures, kClasses);
  return network;
}

float picture_value(unsigned seed, int image, int channel, int y, int x, int side) {
  return random_uniform(seed, static_cast<unsigned>(((image * 3 + channel) * side + y) * side + x));
}

}  // namespace fairlead::sample::imagenet
