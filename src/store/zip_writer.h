// A folder as a zip archive, for a node on another machine. Modes and symbolic links are kept.
#pragma once

#include <string>

#include "base/result.h"

namespace fairlead {

// kNotFound, kIo; kTooLarge beyond kMaxZippedCodeBytes, with what to do instead. Blocks. Threads: any.
Result<std::string> zip_folder(const std::string& folder);

}  // namespace fairlead
