// Bytes as a file of this process that lies on no disk and is gone with its last owner, the process's death included.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace fairlead {

class MemoryFile {
 public:
  // Nobody can change it afterwards. kResourceExhausted: no memory or descriptor is left.
  static Result<std::shared_ptr<const MemoryFile>> make(std::string_view bytes);

  // For this process's open(), while this object lives.
  std::string path() const;
  Result<UniqueFd> open() const;  // a descriptor of its own, read only
  Bytes bytes() const { return bytes_; }

 private:
  MemoryFile(UniqueFd file, Bytes bytes) : file_(std::move(file)), bytes_(bytes) {}

  UniqueFd file_;
  Bytes bytes_;
};

}  // namespace fairlead
