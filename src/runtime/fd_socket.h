// Messages with file descriptors over a SOCK_SEQPACKET socket pair (SCM_RIGHTS): one send is one receive.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace fairlead {

inline constexpr std::size_t kMaxMessageBytes = 64 << 10;
inline constexpr std::size_t kMaxMessageFds = 250;  // the kernel's own bound is 253

struct SocketPair {
  UniqueFd first;
  UniqueFd second;
};
Result<SocketPair> make_seqpacket_pair();  // both ends close-on-exec

struct FdMessage {
  std::string bytes;
  std::vector<UniqueFd> fds;  // close-on-exec
};

// 0 or errno; EMSGSIZE above the limits. Never raises SIGPIPE. `flags` as in send(2), for example MSG_DONTWAIT.
int send_message(int socket, std::string_view bytes, std::span<const int> fds = {}, int flags = 0);
// 0 or errno; an empty message without descriptors means that the other end has gone.
int receive_message(int socket, FdMessage& message, int flags = 0);

}  // namespace fairlead
