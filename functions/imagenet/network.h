// The classifier's shape and its generated weights.
//
// Three blocks of 3x3 convolution, bias, rectifier and 2x2 maximum pooling; the mean over the picture; one dense layer
// with a score for each of the 1000 classes. For a 64 x 64 picture: 64x64x3 -> 32x32x16 -> 16x16x32 -> 8x8x64 -> 64 -> 1000,
// about 11.5 million multiplications.
#pragma once

#include <array>
#include <vector>

namespace fairlead::sample::imagenet {

struct ConvolutionShape {
  int in_channels;
  int out_channels;
};
constexpr std::array<ConvolutionShape, 3> kConvolutions = {{{3, 16}, {16, 32}, {32, 64}}};
constexpr int kFeatures = kConvolutions.back().out_channels;
constexpr int kClasses = 1000;
constexpr int kSideMultiple = 1 << kConvolutions.size();  // each block halves the picture

struct Layer {
  std::vector<float> weights;  // convolution: [out][in][3][3]; dense: [in][out]
  std::vector<float> bias;     // [out]
};

struct Network {
  std::vector<Layer> convolutions;
  Layer dense;
};

// Uniform weights scaled so that activations keep their size from layer to layer.
Network make_network();

// Value of the generated picture `image` of a batch. As the kernel computes it.
float picture_value(unsigned seed, int image, int channel, int y, int x, int side);

}  // namespace fairlead::sample::imagenet
