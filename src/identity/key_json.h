// A key as JSON, without its secret: as files and the common store have it.
//
// Pure. Threads: any.
#pragma once

#include <nlohmann/json.hpp>

#include "identity/keyring.h"

namespace fairlead::identity {

nlohmann::json to_json(const ApiKey& key);
ApiKey key_from_json(const nlohmann::json& entry);  // throws as the library does, or std::invalid_argument

}  // namespace fairlead::identity
