// Writes a small file as a whole or not at all, and durably: a reader sees the old text or the new one, after a power cut too.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead {

// FOLDER/NAME, readable by this user alone; FOLDER/NAME.new is overwritten on the way. REQUIRES: one writer at a time, and the
// folder is only this user's to write. Blocks until the disk has it.
Status replace_file(const std::string& folder, const std::string& name, std::string_view text);

}  // namespace fairlead
