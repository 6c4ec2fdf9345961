// A folder of files that a node's functions share with the node: the software GPU's state.
//
// In a node run by root, functions are another user's processes, and strangers' ones. The folder therefore stays root's
// and is shared with the functions' group: mode 2710, so that functions open files in it by their names and neither list
// it, nor make, replace, rename or remove one. All names in it are the node's, and a path in it leads where the node put
// it. The set-group-id bit tells the software GPU to make its files for the group (softgpu/device/files.h).
//
// Example: /dev/shm/softgpu-0 of root and group 65530; a function opens `clients`, mode 660, reads and writes it; its
// unlink, mkfifo and symlink fail with EACCES.
//
// In a node run by an ordinary user functions are that user's processes, which no mode keeps from his folder.
#pragma once

#include <string>

#include "base/result.h"

namespace fairlead {

// Makes `path` such a folder, creating it and its parents when absent; its owner and mode are set through a descriptor.
// A folder that functions of an earlier release owned is emptied, because what its files are is for them to say. Error:
// it is a link, belongs to somebody else, or holds what is no software GPU's.
Status share_with_functions(const std::string& path);

}  // namespace fairlead
