#include "store/weights_json.h"

#include <nlohmann/json.hpp>

#include "model/version.h"

namespace fairlead::store {

std::string encode_weights(const std::map<std::uint64_t, double>& weights) {
  nlohmann::json encoded = nlohmann::json::object();
  for (const auto& [version, weight] : weights) encoded[version_name(version)] = weight;
  return encoded.dump();
}

std::map<std::uint64_t, double> decode_weights(const std::string& text) {
  std::map<std::uint64_t, double> weights;
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) return weights;
  for (const auto& [version, weight] : parsed.items()) {
    if (const std::uint64_t number = version_number(version); number > 0 && weight.is_number()) {
      weights[number] = weight.get<double>();
    }
  }
  return weights;
}

}  // namespace fairlead::store
