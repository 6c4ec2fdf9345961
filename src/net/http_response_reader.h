// Parses answers from a byte stream, one after the other: the client's side of RequestParser, for the blocking
// client and for connections that an event loop reads.
//
// Threads: not thread-safe. Hides Beast.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "net/http_client.h"

namespace fairlead::net {

class ResponseReader {
 public:
  explicit ResponseReader(std::size_t most_body_bytes);
  ~ResponseReader();

  enum class Progress { kNeedMore, kDone, kFailed };
  struct Step {
    std::size_t consumed = 0;
    Progress progress = Progress::kNeedMore;
    Error error = {};  // kFailed: kTooLarge, or kCorrupt where it is no HTTP
  };

  // The next answer; `response` outlives its parsing. Interim answers (1xx) are skipped.
  void begin(ClientResponse& response, bool is_head = false);  // is_head: the answer to HEAD, which has no body
  Step feed(std::string_view data);                            // REQUIRES: begin(), and not kDone or kFailed since
  // The connection has ended. True: so has the answer, which said no length.
  bool ends_here();
  bool keeps_alive() const;  // after kDone: the connection may carry another request

 private:
  class Parser;
  const std::size_t most_body_bytes_;
  ClientResponse* response_ = nullptr;
  bool is_head_ = false;
  std::unique_ptr<Parser> parser_;
};

}  // namespace fairlead::net
