// A zip archive in memory, written by anyone, into a FileTree. Every bound is enforced while inflating, not taken from
// the archive's own headers.
#pragma once

#include <string_view>

#include "base/result.h"
#include "store/file_tree.h"

namespace fairlead::store {

// kInvalidArgument: not a zip file, damaged, encrypted, an entry of a kind or name that is refused (the message names
// it); kTooLarge; kIo and kResourceExhausted from writing. Executable bits are kept, all other modes and times are not.
Status unzip(std::string_view zip, FileTree& tree);

}  // namespace fairlead::store
