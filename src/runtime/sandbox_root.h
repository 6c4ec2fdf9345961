// The file tree a function sees. What all sandboxes share is built once, in the spawner's own mount namespace (the
// template): a tmpfs with bind mounts of the host's programs and libraries, a small /etc and /dev. A sandbox's mount
// namespace is a copy of the spawner's; it adds its own /proc, /tmp, /dev/shm and binds, makes the template its root
// and drops the host's tree. Read-only everywhere but in /tmp, /dev/shm and writable binds.
//
//   /usr /bin /lib ...  the host's     /var/task  the code       /run/fairlead/runtime.sock  the Runtime API
//                                                         /run/fairlead/shim.sock, libfairlead-shim.so  when preloaded
//   /etc                a few files    /opt       empty          /dev  null zero full random urandom, fd, shm
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "runtime/spawn_protocol.h"
#include "runtime/writable_folder.h"

namespace fairlead {

inline constexpr const char* kSandboxDevices[] = {"null", "zero", "full", "random", "urandom"};  // in /dev
inline constexpr const char* kTaskDir = "/var/task";
inline constexpr const char* kImageDir = "/run/fairlead/image";              // a container's root before the overlay
inline constexpr const char* kContainerDir = "/run/fairlead/container";      // what crun works on
inline constexpr const char* kOpenfaasSecretsDir = "/var/openfaas/secrets";  // the same files as in kSecretsDir
inline constexpr const char* kRuntimeSocketPath = "/run/fairlead/runtime.sock";
inline constexpr const char* kShimSocketPath = "/run/fairlead/shim.sock";
inline constexpr const char* kShimLibraryPath = "/run/fairlead/libfairlead-shim.so";

// In the spawner, once: builds the template on `dir`. REQUIRES: a mount namespace of its own and the right to mount,
// umask 022.
Status build_template(const std::string& dir);

// In the spawner: a detached copy of what is to be bound, with its flags set; survives the sender's closing it. `user`: whom the instance is on
// the host; none: the node's own user.
Result<UniqueFd> detach_bind(const MountBind& bind, const std::optional<MappedUser>& user);

// In a sandbox before its order is known: private mounts, then the template becomes the root.
Status enter_template(const std::string& dir);

// In the same, where its order gives it a way out: the C library and others ask a name server, of the sandbox itself.
Status use_name_server();

// In a process that looks names up for a sandbox, and has a mount namespace of its own: the root becomes an empty folder with
// /etc, and what its resolv.conf is a link to. Hides `dir`, which must be a folder.
Status enter_resolver_root(const std::string& dir);

// In the sandbox: the order's mounts; afterwards the root is read-only.
Status mount_order(const StartOrder& order, const std::vector<UniqueFd>& bind_mounts, std::size_t first_mount);

}  // namespace fairlead
