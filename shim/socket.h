// One connected SOCK_SEQPACKET unix socket whose descriptor lives in somebody else's process: the host may close every
// descriptor it does not know, or give the number to a file of its own. So it sits at a high number, is known by its
// inode, and is never written to once it is not ours.
//
// Threads: send() from any; the rest from the thread that owns the connection.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "wire/shim_frames.h"

namespace fairlead::shim {

class Socket {
 public:
  // False: nobody listens there. Not connected before.
  bool connect(const char* path);
  // False: the peer, or our descriptor, is gone.
  bool send(const wire::Frame& frame) const;
  // Waits for a frame, at most `limit_ms` (-1: for ever). Descriptors that came with it are the caller's; those that did
  // not come are -1. False: the connection is gone, the time is over, or it is no frame.
  bool receive(wire::Frame* frame, int descriptors[2], int limit_ms) const;
  void close();
  bool connected() const { return descriptor_.load(std::memory_order_acquire) >= 0; }

 private:
  // The number, while it still means our socket; -1 when not.
  int own_descriptor() const;

  std::atomic<int> descriptor_{-1};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
};

// `descriptor` moved to a high number, closed on exec, where programs do not look; as it was if there is no such number.
int move_out_of_the_way(int descriptor);

}  // namespace fairlead::shim
