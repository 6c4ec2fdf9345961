// One connection of a function: bytes from its socket to the server's and back, until both have ended. A flow reads on only when
// what it read has gone, so a slow end holds the other up and a tunnel holds at most two buffers of kMostHeldBytes.
//
// Does not block. Not thread-safe.
#pragma once

#include <string>

#include "base/unique_fd.h"
#include "base/units.h"

namespace fairlead {

class Tunnel {
 public:
  static constexpr std::size_t kMostHeldBytes = 32 << 10;
  static constexpr Duration kConnectPatience = std::chrono::seconds(20);
  // Without a byte, once one end has said its last.
  static constexpr Duration kHalfClosedPatience = std::chrono::seconds(60);

  // Both do not block; `server` may still be connecting.
  Tunnel(UniqueFd client, UniqueFd server, Instant now);

  // What poll(2) shall wait for; -1: the socket has said and heard its last.
  int client() const { return up_.has_ended && down_.is_done ? -1 : client_.get(); }
  int server() const { return down_.has_ended && up_.is_done ? -1 : server_.get(); }
  short client_events() const;
  short server_events() const;

  // Does what can be done now. false: it is over, and both ends are closed with it.
  bool serve(short client_ready, short server_ready, Instant now);
  // It waits too long for the server, or for the rest.
  bool is_late(Instant now) const;

 private:
  struct Flow {
    std::string held;
    bool has_ended = false;  // nothing more will be read
    bool is_done = false;    // and the other end knows
  };
  bool finish_connect();
  bool pull(Flow& flow, int from, int to, Instant now);
  bool push(Flow& flow, int to, Instant now);

  UniqueFd client_, server_;
  bool is_connecting_ = true;
  Instant last_;
  Flow up_, down_;
};

// So that the other end sees a reset, not an orderly end: what was asked for did not come to be.
void reset_at_close(int socket);

}  // namespace fairlead
