// Handshakes of TLS on a thread of their own. A handshake costs some hundred microseconds of signing, which anybody who opens a
// connection can ask for; on the thread that serves, a flood of them would stand before everybody's calls.
//
//   accepted socket ──begin()──> thread: handshake, ten seconds at most ──done()──> a session that moves bytes
//
// Bounds: kMost handshakes at a time. Above that the oldest one gives its place to a new one once it has had two seconds; a
// connection that finds no place is closed. The thread runs at a lower priority than the one that serves.
// Threads: begin() and the destructor on one thread; callbacks on the desk's own.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "net/tls.h"

namespace fairlead::net {

class TlsHandshakes {
 public:
  static constexpr std::size_t kMost = 512;
  static constexpr Duration kPatience = std::chrono::seconds(10);

  // Called on the desk's thread with a socket, which is the callee's from then on, and its session. Not called for handshakes that
  // fail: their sockets are closed.
  using Done = std::function<void(int fd, std::unique_ptr<TlsSession> session)>;
  // New files were taken (success) or cannot be (error); on the desk's thread.
  using Renewed = std::function<void(const Status&)>;

  TlsHandshakes(std::shared_ptr<TlsIdentity> identity, Renewed renewed);
  ~TlsHandshakes();  // ends what is under way; no callback comes after it

  void begin(int fd, Done done);  // takes over `fd`, a connected socket that does not block

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::net
