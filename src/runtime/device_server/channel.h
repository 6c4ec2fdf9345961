// One end of the connection between the node and a device server: frames of any size with any number of descriptors, in
// order. A frame that does not fit a packet travels as a memory file, or in parts where the process is out of
// descriptors; descriptors that do not fit one go ahead of it, in packets of their own.
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

class DeviceChannel {
 public:
  explicit DeviceChannel(UniqueFd socket) : socket_(std::move(socket)) {}

  // Never blocks: what the socket has no room for waits for flush(). The descriptors are duplicated; where that fails,
  // for want of descriptors, the connection ends for both sides, so that neither waits for a frame that never comes.
  void send(std::string_view frame, std::span<const int> descriptors = {});
  // True: nothing waits any more, or the other end has gone.
  bool flush();
  bool has_unsent() const { return !unsent_.empty(); }

  // 0, EAGAIN, or why nothing will come any more.
  int receive(std::string& frame, std::vector<UniqueFd>& descriptors);

  int socket() const { return socket_.get(); }

 private:
  struct Packet {
    std::string bytes;
    std::vector<UniqueFd> descriptors;
  };
  void send_in_parts(std::string_view frame, std::span<const int> descriptors);
  void send_ahead(std::span<const int>& descriptors);
  void post(std::string bytes, std::span<const int> descriptors);

  UniqueFd socket_;
  std::deque<Packet> unsent_;
  std::vector<UniqueFd> ahead_;  // received, of the frame that follows
  std::string parts_;            // received, of the frame that goes on
  FdMessage message_;            // reused
};

}  // namespace fairlead
