// Packets of programs that ask for models, checked.
#pragma once

#include <string_view>

#include "abi/model_store.h"
#include "base/result.h"

namespace fairlead {

// What a packet says, or what is wrong with it: field, value and bound. Its id ends in NUL.
Result<ModelRequest> decode_model_request(std::string_view bytes);

}  // namespace fairlead
