// An alias' weights by version, as JSON text in a store.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fairlead::store {

// {"4": 0.1}. What cannot be read has no weight: all calls go where the alias leads.
std::string encode_weights(const std::map<std::uint64_t, double>& weights);
std::map<std::uint64_t, double> decode_weights(const std::string& text);

}  // namespace fairlead::store
