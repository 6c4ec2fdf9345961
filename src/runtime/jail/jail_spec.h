// What a program in a jail has. A jail is a sandbox (../sandbox_root.h) for programs of the node that read what strangers wrote:
// device servers, module trials, the tools that fetch and unpack images. `fairlead jail --spec JSON -- PROGRAM ...` runs one;
// whoever starts it has a plain child process with its streams, descriptor 3 and exit status.
//
//   node ──> fairlead jail (outside: control group, id maps, the way out) ──clone──> init (pid 1) ──spawn──> program (pid 2)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "runtime/cgroup.h"
#include "runtime/spawn_protocol.h"

namespace fairlead {

struct JailSpec {
  // An empty folder of the host, where the jail's file tree is put together, in a mount namespace of its own.
  std::string root_dir;
  // On the host, where the node is run by root; else the jail is the node's user.
  std::uint32_t uid = 0, gid = 0;
  // More than one: the program is root of a user namespace with the ids from `uid` on, and may give files of these ids to one
  // another. Else it is one ordinary user without any capability. In a node that is not run by root it always is.
  std::uint32_t ids = 1;
  // The program may read whatever there is in the jail, also what is its owner's alone to read. It is in no user namespace of its
  // own then. In a node that is not run by root it means nothing.
  bool reads_all = false;
  // The system's programs and libraries are there, read-only; beside them these.
  std::vector<MountBind> binds;
  // Files and folders of the host that are copied, for those that the jail's user may not read. What is not there is left out.
  std::vector<std::string> copies;

  Bytes memory{0};               // of all processes: control group, else RLIMIT_DATA of each; 0: no limit
  bool reserves_memory = false;  // much more than it uses, as GPU drivers do: no RLIMIT_DATA
  Bytes tmp = mib(64);           // /tmp, and /dev/shm
  Bytes written{0};              // into files, by the program and in each file; 0: no limit
  std::uint64_t processes = 64;
  CpuShare cpu;

  // The way out: none, or connections to what these rules (model/registry_rules.h) allow, through a proxy that resolves names
  // and looks at the addresses itself (egress_proxy.h).
  bool has_network = false;
  std::vector<std::string> registries;
  // localhost:PORT or 127.0.0.1:PORT of the host, which is at the same place inside: programs send no proxy what goes to their
  // own machine. "": none. The rules hold for it too.
  std::string registry;
};

// As one argument of a command line. Nothing in it is secret.
std::string encode(const JailSpec& spec);
// kCorrupt: it is not what encode() makes.
Result<JailSpec> decode_jail_spec(std::string_view text);

// The command line that runs `program` in such a jail; `fairlead` is this program's file.
std::vector<std::string> jail_command(const std::string& fairlead, const JailSpec& spec,
                                      const std::vector<std::string>& program);

}  // namespace fairlead
