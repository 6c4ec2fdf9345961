// The encoder's shape, its generated weights and its tokeniser.
//
// Tokens are embedded with their position; each of three layers is self-attention with four heads, then a feed-forward
// network with a Gaussian error linear unit, each added to its input and normalised; the first token's vector gives the
// scores of three labels. For 32 tokens about 5.5 million multiplications.
#pragma once

#include <string_view>
#include <vector>

namespace fairlead::sample::roberta {

constexpr int kVocabulary = 4096;
constexpr int kMaxTokens = 128;
constexpr int kWidth = 64;
constexpr int kHeads = 4;
constexpr int kHeadWidth = kWidth / kHeads;
constexpr int kInnerWidth = 256;
constexpr int kLayers = 3;
constexpr int kLabels = 3;

struct Linear {
  int inputs;
  int outputs;
  std::vector<float> weights;  // [in][out]
  std::vector<float> bias;     // [out]
};

struct Norm {
  std::vector<float> gain;
  std::vector<float> offset;
};

struct EncoderLayer {
  Linear query, key, value, projection;
  Norm attention_norm;
  Linear expand, contract;
  Norm feed_forward_norm;
};

struct Model {
  std::vector<float> token_embedding;     // [kVocabulary][kWidth]
  std::vector<float> position_embedding;  // [kMaxTokens][kWidth]
  std::vector<EncoderLayer> layers;
  Linear labels;
};

Model make_model();

// The words of `text`, each hashed into the vocabulary, repeated or cut to `count` tokens; the first is the start token 0.
std::vector<int> tokenise(std::string_view text, int count);

}  // namespace fairlead::sample::roberta
