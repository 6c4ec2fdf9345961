// A file's contents at once. Never throws, whatever the path turns out to be: std::istreambuf_iterator does, where a folder has the
// name, a disk fails, or a process ends while its /proc entry is read; on a thread that ends the program.
#pragma once

#include <string>

#include "base/result.h"

namespace fairlead {

// The error says which file and why, as the system does: kNotFound, kIo, ... Blocks as reading does. Threads: any.
Result<std::string> read_whole_file(const std::string& path);

}  // namespace fairlead
