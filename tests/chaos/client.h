// A client that speaks HTTP over the node's Unix socket without ever waiting: it sends as much as it is told to, and may hang up at
// any time.
//
// Threads: one at a time.
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace fairlead::chaos {

class Client {
 public:
  // `word` names what is sent: "e12" an event, "c13" a call. REQUIRES: somebody listens at the socket
  Client(const std::string& socket, const std::string& function, const std::string& tenant, std::string word,
         std::size_t bytes);

  void send(std::size_t most);
  // True once the answer is whole, or the connection has ended.
  bool receive();

  const std::string& word() const { return word_; }
  bool is_event() const { return word_.starts_with('e'); }
  int status() const;  // 0: none came
  std::string header(const std::string& name) const;
  std::string body() const;

 private:
  std::string word_;
  UniqueFd fd_;
  std::string unsent_, received_;
};

}  // namespace fairlead::chaos
