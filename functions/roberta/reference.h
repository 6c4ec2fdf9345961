// Host reference: the encoder, value by value, in double precision.
#pragma once

#include <vector>

#include "roberta/model.h"

namespace fairlead::sample::roberta {

// The encoded tokens, [token][kWidth], followed by the kLabels scores.
std::vector<float> encode(const Model& model, const std::vector<int>& tokens);

}  // namespace fairlead::sample::roberta
