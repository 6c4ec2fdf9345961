// Opens what a user may open, in a node that is run by root: a path that somebody names must not be read with rights that he
// does not have.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace fairlead::store {

class UserRights {
 public:
  // Of that user and his groups. Empty, root, or the node's own user: the node's. kForbidden: the node is not root, and cannot
  // tell what another user may read.
  static Result<UserRights> of(std::optional<std::uint32_t> uid);

  bool are_anothers() const { return uid_.has_value(); }  // than the node's

  // While it lives the calling thread opens files as the user; other threads do not.
  class Acting {
   public:
    explicit Acting(const UserRights& rights);
    ~Acting();
    Acting(const Acting&) = delete;
    Acting& operator=(const Acting&) = delete;

   private:
    const bool is_other_;
    std::vector<gid_t> groups_;  // the thread's own
  };

 private:
  std::optional<uid_t> uid_;  // empty: the node's own rights
  gid_t gid_ = 0;
  std::vector<gid_t> groups_;
};

}  // namespace fairlead::store
