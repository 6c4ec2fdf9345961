// How nodes know each other: a key that all of them have.
//
//   A: hello, I am A, nonce n, seal ──────────> B
//   A <── I am B, session s, seal over n and s ─ B      from now on A knows that B has the key
//   A: request 1 of s, seal over it ──────────> B       from now on B knows that A has the key, and that this is no old request
//   A: request 2 of s ...
//
// A seal is HMAC-SHA-256 under the cluster's key of what the request is for, its session, its number and its head. A session belongs to one
// connection, where requests come in order, so a number that is not above the last is a copy. No clock is asked. A payload is not
// sealed: on
// loopback nobody but root changes bytes of a connection, elsewhere there is TLS.
//
// Threads: the io_context's.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

namespace fairlead {

inline constexpr std::size_t kLeastClusterKeyBytes = 32, kMostClusterKeyBytes = 4096;
inline constexpr const char* kPeerHeader = "X-Fairlead-Peer";  // SESSION NUMBER SEAL

// The bytes of the file, without the newline at its end. kInvalidArgument: too short or too long, or others of the machine may read it.
Result<std::string> read_cluster_key(const std::string& path);

// 16 random bytes in hexadecimal.
std::string random_token();

class PeerSeal {
 public:
  explicit PeerSeal(std::string key) : key_(std::move(key)) {}

  std::string hello(std::string_view from, std::string_view nonce, std::string_view advertised) const;
  struct Welcome {
    std::string_view from, to, nonce, session;  // `from` welcomes `to`
  };
  std::string welcome(const Welcome& welcome) const;
  std::string request(std::string_view session, std::uint64_t number, std::string_view target,
                      std::string_view head) const;

 private:
  std::string seal(std::string_view purpose, std::initializer_list<std::string_view> parts) const;
  const std::string key_;
};

// Sessions that others opened here. At most kMost: the one that was not used for longest goes.
class PeerSessions {
 public:
  static constexpr std::size_t kMost = 16'384;

  explicit PeerSessions(const PeerSeal& seal) : seal_(seal) {}

  std::string open(std::string peer);  // the session
  // Whose request it is. `header`: kPeerHeader's value; `head`: what is sealed of the body. kUnauthenticated: it is not sealed, or
  // with another key, or
  // no session of now; kConflict: a copy.
  Result<std::string> accept(std::string_view header, std::string_view target, std::string_view head);
  // Whose session the header names, before the body is there; "": nobody's.
  std::string_view peer_of(std::string_view header) const;
  std::size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    std::string peer;
    std::uint64_t last = 0;
    std::list<std::string>::iterator used;
  };
  const PeerSeal& seal_;
  std::unordered_map<std::string, Session> sessions_;
  std::list<std::string> by_use_;  // the longest unused first
};

}  // namespace fairlead
