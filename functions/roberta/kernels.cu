// Inference of a transformer encoder. Activations are [token][width]; weights [in][out], so that neighbouring threads read
// neighbouring weights. See model.h for the shape.
#include "fairlead/device.h"

// One thread per token and dimension.
extern "C" __global__ void embed(const int* tokens, const float* token_embedding, const float* position_embedding,
                                 float* out, int count, int width) {
  const int i = global_thread();
  if (i >= count * width) return;
  const int token = i / width;
  const int dimension = i % width;
  out[i] = token_embedding[tokens[token] * width + dimension] + position_embedding[i];
}

// out = in x weights + bias, then the Gaussian error linear unit if `gelu`. blockIdx.y is the row.
extern "C" __global__ void linear(const float* in, const float* weights, const float* bias, float* out, int inputs,
                                  int outputs, int gelu) {
  const int column = global_thread();
  if (column >= outputs) return;
  const float* row = in + (int)blockIdx.y * inputs;
  float sum = bias[column];
  for (int i = 0; i < inputs; ++i) sum += row[i] * weights[i * outputs + column];
  if (gelu) sum = 0.5f * sum * (1.0f + tanhf(0.797884561f * (sum + 0.044715f * sum * sum * sum)));
  out[(int)blockIdx.y * outputs + column] = sum;
}

// Softmax-weighted mean of the values of all tokens for one query (blockIdx.x) and head (blockIdx.y); one warp, whose
// lanes first share the tokens, then the dimensions.
extern "C" __global__ void attend(const float* query, const float* key, const float* value, float* out, int count,
                                  int width, int head_width) {
  constexpr int kMaxTokens = 128;
  __shared__ float weight[kMaxTokens];
  const int lane = threadIdx.x;
  const int head = (int)blockIdx.y * head_width;
  const float* q = query + (int)blockIdx.x * width + head;
  const float scale = rsqrtf((float)head_width);

  float largest = -3e38f;
  for (int token = lane; token < count; token += kWarpSize) {
    const float* k = key + token * width + head;
    float score = 0;
    for (int d = 0; d < head_width; ++d) score += q[d] * k[d];
    weight[token] = score * scale;
    largest = fmaxf(largest, score * scale);
  }
  largest = warp_max(largest);
  float total = 0;
  for (int token = lane; token < count; token += kWarpSize) {
    weight[token] = expf(weight[token] - largest);
    total += weight[token];
  }
  total = warp_sum(total);
  __syncthreads();

  if (lane >= head_width) return;
  float sum = 0;
  for (int token = 0; token < count; ++token) sum += weight[token] * value[token * width + head + lane];
  out[(int)blockIdx.x * width + head + lane] = sum / total;
}

// in += added, then every row is brought to mean 0 and variance 1, scaled and shifted. One warp per row.
extern "C" __global__ void add_and_normalise(float* in, const float* added, const float* gain, const float* offset,
                                             int width) {
  float* row = in + (int)blockIdx.x * width;
  const float* other = added + (int)blockIdx.x * width;
  float sum = 0;
  for (int i = threadIdx.x; i < width; i += kWarpSize) {
    row[i] += other[i];
    sum += row[i];
  }
  const float mean = warp_sum(sum) / (float)width;
  float squares = 0;
  for (int i = threadIdx.x; i < width; i += kWarpSize) squares += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(warp_sum(squares) / (float)width + 1e-5f);
  for (int i = threadIdx.x; i < width; i += kWarpSize) row[i] = (row[i] - mean) * scale * gain[i] + offset[i];
}
