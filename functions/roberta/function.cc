// roberta: encodes a text with a small transformer and gives it one of three labels.
// Parameters: text, length (tokens; the text is repeated or cut).
#include <algorithm>

#include "common/workload.h"
#include "kernels_ptx.h"
#include "roberta/reference.h"

namespace fairlead::sample::roberta {
namespace {

constexpr unsigned kThreads = 64;
constexpr std::size_t kMaxTextBytes = 64 * 1024;
constexpr std::string_view kDefaultText = "a rope is only as fair as the lead that guides it";

using Array = DeviceArray<float>;

struct DeviceLinear {
  DeviceLinear(const Gpu& gpu, const Linear& linear)
      : inputs(linear.inputs), outputs(linear.outputs), weights(gpu, linear.weights), bias(gpu, linear.bias) {}
  int inputs;
  int outputs;
  Array weights;
  Array bias;
};

struct DeviceNorm {
  DeviceNorm(const Gpu& gpu, const Norm& norm) : gain(gpu, norm.gain), offset(gpu, norm.offset) {}
  Array gain;
  Array offset;
};

struct DeviceEncoderLayer {
  DeviceEncoderLayer(const Gpu& gpu, const EncoderLayer& layer)
      : query(gpu, layer.query),
        key(gpu, layer.key),
        value(gpu, layer.value),
        projection(gpu, layer.projection),
        attention_norm(gpu, layer.attention_norm),
        expand(gpu, layer.expand),
        contract(gpu, layer.contract),
        feed_forward_norm(gpu, layer.feed_forward_norm) {}
  DeviceLinear query, key, value, projection;
  DeviceNorm attention_norm;
  DeviceLinear expand, contract;
  DeviceNorm feed_forward_norm;
};

// The activations of one request.
struct Activations {
  Activations(const Gpu& gpu, const std::vector<int>& ids)
      : count(static_cast<unsigned>(ids.size())),
        tokens(gpu, ids),
        hidden(gpu, ids.size() * kWidth),
        query(gpu, ids.size() * kWidth),
        key(gpu, ids.size() * kWidth),
        value(gpu, ids.size() * kWidth),
        attended(gpu, ids.size() * kWidth),
        added(gpu, ids.size() * kWidth),
        inner(gpu, ids.size() * kInnerWidth),
        labels(gpu, kLabels) {}
  unsigned count;
  DeviceArray<int> tokens;
  Array hidden, query, key, value, attended, added, inner, labels;
};

class Roberta : public Workload {
 public:
  explicit Roberta(const Gpu& gpu)
      : gpu_(gpu),
        model_(make_model()),
        token_embedding_(gpu, model_.token_embedding),
        position_embedding_(gpu, model_.position_embedding),
        labels_(gpu, model_.labels) {
    layers_.reserve(model_.layers.size());
    for (const EncoderLayer& layer : model_.layers) layers_.emplace_back(gpu, layer);
  }

  std::string invoke(Parameters& parameters) override {
    const std::string text = parameters.text("text", kDefaultText, kMaxTextBytes);
    const int length = static_cast<int>(parameters.integer("length", 16, {1, kMaxTokens}));
    parameters.check_all_used();
    double gpu_ms = 0;
    const std::vector<float> encoded = encode_on_gpu(tokenise(text, length), gpu_ms);
    const auto labels = encoded.end() - kLabels;
    return JsonObject()
        .add("function", "roberta")
        .add("tokens", length)
        .add("label", std::int64_t{std::max_element(labels, encoded.end()) - labels})
        .add("checksum", checksum(encoded))
        .add("gpu_ms", gpu_ms)
        .str();
  }

  void self_test(SelfTest& test) override {
    for (const int length : {1, 7, 33, kMaxTokens}) {
      const std::vector<int> tokens = tokenise(kDefaultText, length);
      double gpu_ms = 0;
      test.compare("roberta tokens=" + std::to_string(length), encode_on_gpu(tokens, gpu_ms), encode(model_, tokens),
                   2e-5);
    }
  }

 private:
  // The encoded tokens, then the labels' scores.
  std::vector<float> encode_on_gpu(const std::vector<int>& tokens, double& gpu_ms) {
    Activations a(gpu_, tokens);
    timer_.start();
    const int count = static_cast<int>(a.count);
    embed_.launch({blocks(count * kWidth, kThreads)}, {kThreads}, a.tokens, token_embedding_, position_embedding_,
                  a.hidden, count, kWidth);
    for (const DeviceEncoderLayer& layer : layers_) run_layer(layer, a);
    project(labels_, a.hidden, a.labels, /*rows=*/1, /*gelu=*/0);
    gpu_ms = timer_.stop_ms();
    std::vector<float> result = a.hidden.download();
    const std::vector<float> labels = a.labels.download();
    result.insert(result.end(), labels.begin(), labels.end());
    return result;
  }

  void run_layer(const DeviceEncoderLayer& layer, Activations& a) const {
    project(layer.query, a.hidden, a.query, a.count, 0);
    project(layer.key, a.hidden, a.key, a.count, 0);
    project(layer.value, a.hidden, a.value, a.count, 0);
    attend_.launch({a.count, kHeads}, {32}, a.query, a.key, a.value, a.attended, static_cast<int>(a.count), kWidth,
                   kHeadWidth);
    project(layer.projection, a.attended, a.added, a.count, 0);
    add_and_normalise(layer.attention_norm, a);
    project(layer.expand, a.hidden, a.inner, a.count, 1);
    project(layer.contract, a.inner, a.added, a.count, 0);
    add_and_normalise(layer.feed_forward_norm, a);
  }

  void project(const DeviceLinear& linear, const Array& in, const Array& out, unsigned rows, int gelu) const {
    linear_.launch({blocks(linear.outputs, kThreads), rows}, {kThreads}, in, linear.weights, linear.bias, out,
                   linear.inputs, linear.outputs, gelu);
  }

  void add_and_normalise(const DeviceNorm& norm, const Activations& a) const {
    normalise_.launch({a.count}, {32}, a.hidden, a.added, norm.gain, norm.offset, kWidth);
  }

  const Gpu& gpu_;
  Module module_{gpu_, kernels_ptx};
  Kernel embed_ = module_.kernel("embed");
  Kernel linear_ = module_.kernel("linear");
  Kernel attend_ = module_.kernel("attend");
  Kernel normalise_ = module_.kernel("add_and_normalise");
  GpuTimer timer_{gpu_};
  Model model_;
  Array token_embedding_;
  Array position_embedding_;
  std::vector<DeviceEncoderLayer> layers_;
  DeviceLinear labels_;
};

}  // namespace
}  // namespace fairlead::sample::roberta

int main(int argc, char** argv) {
  using namespace fairlead::sample;
  return workload_main(argc, argv, "roberta",
                       [](const fairlead::Gpu& gpu) { return std::make_unique<roberta::Roberta>(gpu); });
}
