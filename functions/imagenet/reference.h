// Host reference: the network, value by value, in double precision.
#pragma once

#include <vector>

#include "imagenet/network.h"

namespace fairlead::sample::imagenet {

// The kClasses scores of picture `image` of a generated batch.
std::vector<float> classify(const Network& network, unsigned seed, int image, int side);

}  // namespace fairlead::sample::imagenet
