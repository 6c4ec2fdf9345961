// One end of the connection between the node and a device server: frames of any size with any number of descriptors, in
// order. A frame that does not fit a packet travels as a memory file, or in parts where the process is out of
// descriptors; descriptors that do not fit one go ahead of it, in packets of their own.
//
// What the other end may make this one hold has bounds: a device server runs what strangers compiled, and where they got hold of it, it
// ends its own connection and no more.
//
// Threads: not thread-safe.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/fd_socket.h"

namespace fairlead {

// Of a frame that is received.
struct ChannelLimits {
  std::size_t bytes = std::size_t{1} << 32;  // a node's call: inputs of 4 MiB each
  std::size_t descriptors = 1 << 15;         // its modules and constants
};
// Of what a device server says: outputs in an answer (64 MiB, model/kernel_task_call.cc), and no descriptor but that of the frame's own file.
inline constexpr ChannelLimits kServerSays{.bytes = 80 << 20, .descriptors = 1};

class DeviceChannel {
 public:
  explicit DeviceChannel(UniqueFd socket) : DeviceChannel(std::move(socket), ChannelLimits()) {}
  DeviceChannel(UniqueFd socket, ChannelLimits limits) : socket_(std::move(socket)), limits_(limits) {}

  // Never blocks: what the socket has no room for waits for flush(). The descriptors are duplicated; where that fails,
  // for want of descriptors, the connection ends for both sides, so that neither waits for a frame that never comes.
  void send(std::string_view frame, std::span<const int> descriptors = {});
  // True: nothing waits any more, or the other end has gone.
  bool flush();
  bool has_unsent() const { return !unsent_.empty(); }

  // 0; EAGAIN: wait until the socket can be read, which it may be already, since a call takes at most kPacketsAtOnce packets; or why
  // nothing will come any more, EMSGSIZE for a frame beyond the limits, after which the connection is of no use.
  int receive(std::string& frame, std::vector<UniqueFd>& descriptors);

  static constexpr int kPacketsAtOnce = 64;

  int socket() const { return socket_.get(); }

 private:
  struct Packet {
    std::string bytes;
    std::vector<UniqueFd> descriptors;
  };
  void send_in_parts(std::string_view frame, std::span<const int> descriptors);
  void send_ahead(std::span<const int>& descriptors);
  void post(std::string bytes, std::span<const int> descriptors);

  int take_packet();  // 0: a frame is whole

  UniqueFd socket_;
  const ChannelLimits limits_;
  std::deque<Packet> unsent_;
  std::vector<UniqueFd> ahead_;  // received, of the frame that follows
  std::string parts_;            // received, of the frame that goes on
  FdMessage message_;            // reused
};

}  // namespace fairlead
