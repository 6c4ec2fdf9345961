// Folders of the host that a function may write to. Instances are users of their own, whom no file of the host belongs to: the mount maps
// the instance's user to the folder's owner and back (an idmapped mount, Linux 5.12), so that what it writes is the owner's on the disk, and
// what is another's stays closed to it as it is to the owner.
//
// Where the node is no root, an instance is the node's own user, and nothing is mapped.
//
// Threads: any.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace fairlead {

struct MappedUser {  // of the host, as an instance has it
  uid_t uid = 0;
  gid_t gid = 0;
};

// A mount that is not attached yet shows files of `folder`'s owner and group as those of `user`. kUnavailable: the kernel or the file system
// has no such mounts. REQUIRES: root.
Status map_owner(int tree, const std::string& folder, const MappedUser& user);

// At the node's start, while it has all its rights. Whether functions may write to the folder: neither owner nor group is root (whose
// set-user-id files a function could make), a folder above it is closed to other users (who could run such files), and it can be mapped.
// kInvalidArgument, kUnavailable: what is wrong, and what to do.
Status check_writable_folder(const std::string& folder);

// Whether the file system of `folder` can be mapped. Makes and removes one mount that nobody sees.
Status try_mapped_mount(const std::string& folder);

}  // namespace fairlead
