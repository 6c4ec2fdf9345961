// Mappings of the state folder's files that cannot kill the process. When a page of one is not to be had any more,
// because somebody truncated the file or the file system under it is full, the kernel sends SIGBUS. The handler puts an
// empty page of the process's own in its place and notes the loss: the program goes on, what it computes from now on is
// worthless, and the driver says so with every call.
//
// Example: a container's /dev/shm of 64 MiB holds a device of 16 GiB, which is sparse. The store that touches the 65th
// MiB would end the process; so it ends the context, with advice.
//
// Faults elsewhere go to the handler that was installed before, or end the process as ever. A program that installs its
// own handler afterwards only loses this protection.
#pragma once

#include <cstddef>

namespace softgpu {

// From now on [begin, begin + bytes) is protected, until the process ends. Thread-safe. At most 64 ranges are; more are
// not protected.
void guard_mapping(void* begin, std::size_t bytes);

// Whether a page was lost. Thread-safe, one load.
bool mapping_lost();

}  // namespace softgpu
