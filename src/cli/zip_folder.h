// A folder as a zip archive, for a node on another machine. Modes and symbolic links are kept.
#pragma once

#include <string>

#include "base/result.h"

namespace fairlead::cli {

// kNotFound, kIo; kTooLarge beyond kMaxZippedCodeBytes, with what to do instead.
Result<std::string> zip_folder(const std::string& folder);

// Whether `folder` can be deployed: it exists and has an executable `bootstrap`. The message explains what that is.
Status check_function_folder(const std::string& folder);

}  // namespace fairlead::cli
