// Keys as the node's operator changes them: each change is on disk before it is told of, or has not happened.
//
// Blocks while the file is synced, some milliseconds: for the rare changes of an operator.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "identity/key_file.h"
#include "identity/keyring.h"

namespace fairlead::identity {

class KeyDesk {
 public:
  using Clock = std::function<std::int64_t()>;  // milliseconds since the epoch

  KeyDesk(KeyFile file, Keyring keyring, Clock clock)
      : file_(std::move(file)), keyring_(std::move(keyring)), clock_(std::move(clock)) {}

  Keyring& keyring() { return keyring_; }
  std::int64_t now_ms() const { return clock_(); }

  // As Keyring has them, with fresh ids; and what writing the file says.
  Result<IssuedKey> issue(const KeyRequest& request);
  Result<IssuedKey> rotate(const std::string& id, std::int64_t grace_ms);
  Status revoke(const std::string& id);

 private:
  Status save_or_restore(const Keyring& before);

  const KeyFile file_;
  Keyring keyring_;
  const Clock clock_;
};

}  // namespace fairlead::identity
