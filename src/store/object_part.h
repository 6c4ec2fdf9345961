// A part of a sealed object, as bytes.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/object_store.h"

namespace fairlead {

// `bytes` from `first` on. kInvalidArgument: the object has not so many. kIo: its file has not. For any thread; may wait for a disk.
Result<std::string> read_part(const OpenObject& object, std::uint64_t first, std::uint64_t bytes);

}  // namespace fairlead
