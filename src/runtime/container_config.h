// Makes a plain sandbox's order one for a container: the config.json that crun reads (OCI runtime-spec 1.0), and binds
// that an image cannot redirect. The rights are those of every sandbox: one id of the host, no capability, no new
// privileges, the same system call filter, read-only but for /tmp and /dev/shm; loopback and the Runtime API's socket are
// the sandbox's.
//
//   a plain order's bind at          becomes
//   /var/task                        none: the image brings the code
//   /dev/...  /run/fairlead/...      the same in the sandbox, and from there in the container
//   anything else, /opt/gpu/lib      /run/fairlead/mounts/N in the sandbox, whose own tree is not the image's; crun binds
//                                    it on to /opt/gpu/lib in the container
//
// In front of them is the image at /run/fairlead/image, the lower layer of the container's root.
#pragma once

#include "runtime/instance_host.h"
#include "runtime/seccomp_filter.h"
#include "runtime/spawn_protocol.h"

namespace fairlead {

StartOrder container_order(StartOrder plain, const InstanceSpec::Container& container, const SeccompPrograms& seccomp);

}  // namespace fairlead
