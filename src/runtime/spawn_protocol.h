// What node and spawner say to each other; the node's StartOrder goes on to the sandbox unchanged.
//   node -> spawner    StartOrder, fds: [log]
//   spawner -> sandbox StartOrder, fds: [log, one detached mount per entry of `binds`]
//   spawner -> node    StartedNote, fds: [pidfd, listening TCP socket, memory peak file if there is one], then ExitNote
// Both ends are one binary, so there is no version; decoding still checks every bound.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file_identity.h"
#include "base/result.h"
#include "base/units.h"
#include "model/secret_reference.h"

namespace fairlead {

struct MountBind {
  std::string source;  // on the host
  std::string target;  // absolute, in the sandbox
  bool writable = false;
  std::optional<FileIdentity> identity = {};  // of a folder that must be that one still, and not behind a link
  bool as_owner = false;                      // the function is the folder's owner there (writable_folder.h)
  bool operator==(const MountBind&) const = default;
};

struct StartOrder {
  std::uint64_t instance = 0;
  std::vector<std::string> environment;  // "NAME=value"
  std::vector<MountBind> binds;          // mounted in this order
  Bytes memory_limit{0};                 // 0: none
  Bytes tmp_limit{0};
  std::uint64_t max_processes = 0;
  std::string container = {};    // config.json of the container to run in place of /var/task/bootstrap; "": none
  std::uint64_t http_port = 0;   // of a container that takes invocations by HTTP; 0: it polls the Runtime API
  std::string http_health = {};  // as InstanceSpec has it
  std::uint64_t uid = 0;  // of the host, for this instance alone, where the node is root; 0: that of all functions
  // Lists as EgressList writes them; "": no way out.
  std::string egress_asked = {}, egress_granted = {};
  std::vector<SecretFile> secrets = {};  // in kSecretsDir
  bool operator==(const StartOrder&) const = default;
};

struct StartedNote {
  std::uint64_t instance = 0;
  std::int64_t pid = 0;  // of the sandbox's init
  bool operator==(const StartedNote&) const = default;
};

struct ExitNote {
  std::uint64_t instance = 0;
  bool ended = false;  // the function ran and `wait_status` is its own, as of waitpid(2)
  std::int64_t wait_status = 0;
  std::string failure = {};      // why it did not run, or was killed by the platform
  std::int64_t memory_peak = 0;  // bytes, 0: unknown
  bool is_nodes_fault = false;   // `failure` is nothing that the function did
  bool operator==(const ExitNote&) const = default;
};

std::string encode(const StartOrder& order);
std::string encode(const StartedNote& note);
std::string encode(const ExitNote& note);

// kCorrupt when the bytes are not what encode() makes.
Result<StartOrder> decode_start_order(std::string_view bytes);
Result<std::variant<StartedNote, ExitNote>> decode_note(std::string_view bytes);

}  // namespace fairlead
