#include "roberta/model.h"

#include <cmath>

#include "fairlead/random.h"

namespace fairlead::sample::roberta {
namespace {

// Hands out generated values, a fresh seed for every tensor.
class WeightSource {
 public:
  std::vector<float> uniform(int count, float centre, float spread) {
    ++seed_;
    std::vector<float> values;
    for (int i = 0; i < count; ++i) {
      values.push_back(centre + spread * random_uniform(seed_, static_cast<unsigned>(i)));
    }
    return values;
  }

  Linear linear(int inputs, int outputs) {
    const float spread = std::sqrt(3.0f / static_cast<float>(inputs));
    return {inputs, outputs, uniform(inputs * outputs, 0, spread), uniform(outputs, 0, 0.1f)};
  }

  Norm norm() { return {uniform(kWidth, 1, 0.1f), uniform(kWidth, 0, 0.1f)}; }

 private:
  unsigned seed_ = 2000;
};

}  // namespace

Model make_model() {
  WeightSource source;
  Model model;
  model.token_embedding = source.uniform(kVocabulary * kWidth, 0, 1);
  model.position_embedding = source.uniform(kMaxTokens * kWidth, 0, 0.3f);
  for (int i = 0; i < kLayers; ++i) {
    model.layers.push_back({.query = source.linear(kWidth, kWidth),
                            .key = source.linear(kWidth, kWidth),
                            .value = source.linear(kWidth, kWidth),
                            .projection = source.linear(kWidth, kWidth),
                            .attention_norm = source.norm(),
                            .expand = source.linear(kWidth, kInnerWidth),
                            .contract = source.linear(kInnerWidth, kWidth),
                            .feed_forward_norm = source.norm()});
  }
  model.labels = source.linear(kWidth, kLabels);
  return model;
}

std::vector<int> tokenise(std::string_view text, int count) {
  std::vector<int> words;
  unsigned hash = 0;
  bool in_word = false;
  const auto end_word = [&] {
    if (in_word) words.push_back(1 + static_cast<int>(hash % (kVocabulary - 1)));
    hash = 0;
    in_word = false;
  };
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t') {
      end_word();
    } else {
      hash = random_bits(hash, static_cast<unsigned char>(c));
      in_word = true;
    }
  }
  end_word();
  if (words.empty()) words.push_back(1);

  std::vector<int> tokens = {0};
  for (std::size_t i = 0; tokens.size() < static_cast<std::size_t>(count); ++i)
    tokens.push_back(words[i % words.size()]);
  return tokens;
}

}  // namespace fairlead::sample::roberta
