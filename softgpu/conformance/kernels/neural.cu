// Layers of neural networks.
#include "softgpu/conformance/kernels/common.h"

CUDA_DEVICE_INLINE float warp_max(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// A warp per row.
KERNEL softmax(int rows, int width, const float* in, float* out) {
  const int row = global_index() / warpSize, lane = (int)(threadIdx.x % warpSize);
  if (row >= rows) return;
  in += row * width;
  out += row * width;
  float greatest = -__builtin_inff();
  for (int i = lane; i < width; i += warpSize) greatest = fmaxf(greatest, in[i]);
  greatest = warp_max(greatest);
  float sum = 0;
  for (int i = lane; i < width; i += warpSize) sum += out[i] = fast_exp(in[i] - greatest);
  sum = warp_sum(sum);
  for (int i = lane; i < width; i += warpSize) out[i] /= sum;
}

// A block per row; mean and variance in one pass, by Welford's rule, merged across lanes and warps.
struct Moments {
  float count, mean, square;
};
CUDA_DEVICE_INLINE Moments merge(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0) return a;
  const float delta = b.mean - a.mean, share = b.count / count;
  return {count, fmaf(delta, share, a.mean), a.square + b.square + delta * delta * a.count * share};
}
KERNEL layernorm(int width, float epsilon, const float* gain, const float* bias, const float* in, float* out) {
  __shared__ Moments warps[32];
  in += blockIdx.x * width;
  out += blockIdx.x * width;
  Moments own = {0, 0, 0};
  for (int i = threadIdx.x; i < width; i += (int)blockDim.x) own = merge(own, {1, in[i], 0});
  for (int distance = 16; distance > 0; distance /= 2) {
    const Moments other = {__shfl_xor_sync(kAllLanes, own.count, distance),
                           __shfl_xor_sync(kAllLanes, own.mean, distance),
                           __shfl_xor_sync(kAllLanes, own.square, distance)};
    // Both partners merge in the same order, so that every lane has the same bits.
    own = (threadIdx.x & distance) != 0 ? merge(other, own) : merge(own, other);
  }
  if (threadIdx.x % warpSize == 0) warps[threadIdx.x / warpSize] = own;
  __syncthreads();
  own = warps[0];
  for (unsigned warp = 1; warp < blockDim.x / warpSize; ++warp) own = merge(own, warps[warp]);
  const float scale = 1.0f / sqrtf(own.square / (float)width + epsilon);
  for (int i = threadIdx.x; i < width; i += (int)blockDim.x)
    out[i] = fmaf((in[i] - own.mean) * scale, gain[i], bias[i]);
}

// Attention without the score matrix: a block per 16 queries of one head, keys and values in tiles of 16 through shared
// memory, softmax rescaled as larger scores appear. Causal. Head size 32: a warp per query, a lane per dimension.
KERNEL flash_attention(int length, float scale, const float* q, const float* k, const float* v, float* out) {
  __shared__ float keys[16][33], values[16][33];
  const int lane = threadIdx.x, query = (int)(blockIdx.x * 16 + threadIdx.y);
  const int base = (int)blockIdx.y * length * 32;
  const float own = query < length ? q[base + query * 32 + lane] * scale : 0.0f;
  float greatest = -__builtin_inff(), sum = 0, result = 0;
  for (int first = 0; first <= (int)(blockIdx.x * 16 + 15) && first < length; first += 16) {
    const int row = first + (int)threadIdx.y;
    __syncthreads();
    keys[threadIdx.y][lane] = row < length ? k[base + row * 32 + lane] : 0.0f;
    values[threadIdx.y][lane] = row < length ? v[base + row * 32 + lane] : 0.0f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
      if (first + i > query || first + i >= length) break;  // the same for the whole warp
      const float score = warp_sum(own * keys[i][lane]);
      const float next = fmaxf(greatest, score);
      const float correction = fast_exp(greatest - next), weight = fast_exp(score - next);
      sum = fmaf(sum, correction, weight);
      result = fmaf(result, correction, weight * values[i][lane]);
      greatest = next;
    }
  }
  if (query < length) out[base + query * 32 + lane] = result / sum;
}

KERNEL gelu(int n, const float* in, float* out) {
  const int i = global_index();
  if (i >= n) return;
  const float x = in[i];
  const float e = fast_exp(-2.0f * 0.797884561f * fmaf(0.044715f * x * x, x, x));
  out[i] = x / (1.0f + e);  // x/2 (1 + tanh(y)) = x / (1 + exp(-2y))
}

// Rotary position embedding: pairs (i, i + half) of a head turn by position * frequency.
KERNEL rope(int positions, int half, const float* frequencies, float* heads) {
  const int i = threadIdx.x, position = blockIdx.x;
  float* head = heads + (blockIdx.y * positions + position) * 2 * half;
  const float angle = (float)position * frequencies[i];
  const float c = __nvvm_cos_approx_f(angle), s = __nvvm_sin_approx_f(angle);
  const float a = head[i], b = head[i + half];
  head[i] = fmaf(a, c, -(b * s));
  head[i + half] = fmaf(a, s, b * c);
}

// Rows of a table, plus positions, several tokens per block; token -1 is padding.
KERNEL embedding(int width, const int* tokens, const float* table, const float* positions, float* out) {
  const int at = (int)(blockIdx.x * blockDim.y + threadIdx.y), token = tokens[at];
  for (int i = threadIdx.x; i < width; i += (int)blockDim.x) {
    out[at * width + i] = token < 0 ? 0.0f : table[token * width + i] + positions[at * width + i];
  }
}

// The k greatest of a row with their places, ties to the lower place: k rounds of a block-wide maximum of
// (order-preserving key, complement of the place).
CUDA_DEVICE_INLINE unsigned long long rank_key(float value, unsigned place) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  const unsigned ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return (unsigned long long)ordered << 32 | ~place;
}
KERNEL top_k(int width, int k, const float* in, int* places) {
  __shared__ unsigned long long warps[32];
  unsigned long long bound = ~0ull;
  for (int round = 0; round < k; ++round) {
    unsigned long long best = 0;
    for (int i = threadIdx.x; i < width; i += (int)blockDim.x) {
      const unsigned long long key = rank_key(in[blockIdx.x * width + i], i);
      if (key < bound && key > best) best = key;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      const unsigned long long other = __shfl_down_sync(kAllLanes, best, distance);
      best = other > best ? other : best;
    }
    if (threadIdx.x % warpSize == 0) warps[threadIdx.x / warpSize] = best;
    __syncthreads();
    best = warps[0];
    for (unsigned warp = 1; warp < blockDim.x / warpSize; ++warp) best = warps[warp] > best ? warps[warp] : best;
    bound = best;
    if (threadIdx.x == 0) places[blockIdx.x * k + round] = (int)~(unsigned)best;
    __syncthreads();
  }
}

// One training step of a layer (Rodinia's backprop): forward with a sigmoid, then the weights' update with momentum.
KERNEL backprop_forward(int inputs, int outputs, const float* weights, const float* in, float* out) {
  __shared__ float partial[16][17];
  const int unit = (int)(blockIdx.x * 16 + threadIdx.x);
  float sum = 0;
  for (int i = threadIdx.y; i < inputs; i += 16) sum = fmaf(in[i], weights[i * outputs + unit], sum);
  partial[threadIdx.y][threadIdx.x] = sum;
  for (int half = 8; half > 0; half /= 2) {
    __syncthreads();
    if ((int)threadIdx.y < half) partial[threadIdx.y][threadIdx.x] += partial[threadIdx.y + half][threadIdx.x];
  }
  if (threadIdx.y == 0) out[unit] = 1.0f / (1.0f + fast_exp(-partial[0][threadIdx.x]));
}
KERNEL backprop_update(int outputs, float rate, float momentum, const float* delta, const float* in, float* weights,
                       float* previous) {
  const int unit = (int)(blockIdx.x * 16 + threadIdx.x), input = (int)(blockIdx.y * 16 + threadIdx.y);
  const int at = input * outputs + unit;
  const float change = fmaf(rate * delta[unit], in[input], momentum * previous[at]);
  weights[at] += change;
  previous[at] = change;
}

// Convolution of a batch (N, C, H, W) with 3 x 3 filters, padding 1, stride 2, then bias and ReLU.
KERNEL convolution_layer(int channels, int height, int width, const float* in, const float* weights, const float* bias,
                         float* out) {
  const int x = threadIdx.x, y = threadIdx.y, filter = blockIdx.x, image = blockIdx.y;
  float sum = bias[filter];
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < 9; ++i) {
      const int sy = 2 * y + i / 3 - 1, sx = 2 * x + i % 3 - 1;
      if (sy < 0 || sx < 0 || sy >= height || sx >= width) continue;
      sum =
          fmaf(weights[(filter * channels + c) * 9 + i], in[((image * channels + c) * height + sy) * width + sx], sum);
    }
  }
  out[((image * gridDim.x + filter) * blockDim.y + y) * blockDim.x + x] = fmaxf(sum, 0.0f);
}

// Cross entropy of logits, and its gradient; a warp per sample.
KERNEL cross_entropy(int classes, const float* logits, const int* labels, float* losses, float* gradient) {
  const int lane = threadIdx.x, sample = blockIdx.x;
  logits += sample * classes;
  gradient += sample * classes;
  float greatest = -__builtin_inff(), sum = 0;
  for (int i = lane; i < classes; i += warpSize) greatest = fmaxf(greatest, logits[i]);
  greatest = warp_max(greatest);
  for (int i = lane; i < classes; i += warpSize) sum += fast_exp(logits[i] - greatest);
  sum = warp_sum(sum);
  for (int i = lane; i < classes; i += warpSize) {
    gradient[i] = fast_exp(logits[i] - greatest) / sum - (i == labels[sample] ? 1.0f : 0.0f);
  }
  if (lane == 0) losses[sample] = __nvvm_lg2_approx_f(sum) * 0.693147181f + greatest - logits[labels[sample]];
}
