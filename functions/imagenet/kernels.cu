// Inference of a small convolutional classifier. Pictures are stored as [image][channel][side + 2][side + 2] with a border
// of zeros, so that a convolution reads its nine neighbours without a test. See network.h for the shape.
#include "fairlead/device.h"
#include "fairlead/random.h"

struct Plane {
  int side;
  __device__ int pitch() const { return side + 2; }
  __device__ int size() const { return pitch() * pitch(); }
  __device__ int at(int y, int x) const { return (y + 1) * pitch() + x + 1; }
};

// One thread per pixel of each of the pictures' 3 channels.
extern "C" __global__ void generate_pictures(float* pictures, int side, int images, unsigned seed) {
  const int i = global_thread();
  if (i >= images * 3 * side * side) return;
  const Plane plane = {side};
  const int pixel = i % (side * side);
  pictures[i / (side * side) * plane.size() + plane.at(pixel / side, pixel % side)] = random_uniform(seed, i);
}

// 3x3 convolution, bias and rectifier. blockIdx.y is the output channel, blockIdx.z the picture.
extern "C" __global__ void convolve(const float* in, const float* weights, const float* bias, float* out, int side,
                                    int in_channels, int out_channels) {
  const int pixel = global_thread();
  if (pixel >= side * side) return;
  const Plane plane = {side};
  const int channel = blockIdx.y;
  const int picture = blockIdx.z;
  const int centre = plane.at(pixel / side, pixel % side);
  const float* source = in + picture * in_channels * plane.size() + centre;
  const float* w = weights + channel * in_channels * 9;
  float sum = bias[channel];
  for (int c = 0; c < in_channels; ++c) {
    for (int dy = 0; dy < 3; ++dy) {
      for (int dx = 0; dx < 3; ++dx) sum += w[dy * 3 + dx] * source[(dy - 1) * plane.pitch() + dx - 1];
    }
    source += plane.size();
    w += 9;
  }
  out[(picture * out_channels + channel) * plane.size() + centre] = fmaxf(sum, 0.0f);
}

// 2x2 maximum pooling to half the side. blockIdx.y is the channel over all pictures.
extern "C" __global__ void max_pool(const float* in, float* out, int side) {
  const int half = side / 2;
  const int pixel = global_thread();
  if (pixel >= half * half) return;
  const Plane from = {side};
  const Plane to = {half};
  const int y = pixel / half;
  const int x = pixel % half;
  const float* source = in + (int)blockIdx.y * from.size() + from.at(2 * y, 2 * x);
  const float top = fmaxf(source[0], source[1]);
  const float bottom = fmaxf(source[from.pitch()], source[from.pitch() + 1]);
  out[(int)blockIdx.y * to.size() + to.at(y, x)] = fmaxf(top, bottom);
}

// Mean of each channel; one warp per channel over all pictures.
extern "C" __global__ void mean_pool(const float* in, float* out, int side) {
  const Plane plane = {side};
  const float* source = in + (int)blockIdx.x * plane.size();
  float sum = 0;
  for (int pixel = threadIdx.x; pixel < side * side; pixel += kWarpSize) {
    sum += source[plane.at(pixel / side, pixel % side)];
  }
  sum = warp_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum / (float)(side * side);
}

// Scores of all classes; blockIdx.y is the picture.
extern "C" __global__ void classify(const float* features, const float* weights, const float* bias, float* scores,
                                    int feature_count, int classes) {
  const int label = global_thread();
  if (label >= classes) return;
  const float* feature = features + (int)blockIdx.y * feature_count;
  float sum = bias[label];
  for (int i = 0; i < feature_count; ++i) sum += feature[i] * weights[i * classes + label];
  scores[(int)blockIdx.y * classes + label] = sum;
}
