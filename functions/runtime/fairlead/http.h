// A blocking HTTP/1.1 client connection, as small as the Runtime API allows: requests are written by the caller, several
// at once if it likes; responses are read one by one. Internal to the runtime library.
#pragma once

#include <sys/uio.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fairlead/runtime.h"

namespace fairlead {

// One response. The views are valid until the next read() of its connection.
struct HttpResponse {
  int status = 0;
  std::string_view headers;  // header lines, each ended by CRLF
  std::string_view body;

  // The value of the header, compared without regard to case; empty where there is none.
  std::string_view header(std::string_view name) const;
};

// The connection was refused, closed or broken: worth another attempt on a new one. What the peer sent wrongly is an
// Error("Runtime.Protocol") instead.
class ConnectionLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class HttpConnection {
 public:
  explicit HttpConnection(const Endpoint& endpoint);  // throws ConnectionLost
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Writes all parts, in one system call where the kernel takes them. Throws ConnectionLost.
  void write(std::span<const iovec> parts);

  // Waits for the next response. Throws ConnectionLost and Error.
  HttpResponse read();

 private:
  void receive(std::size_t at_least);
  std::size_t find_end_of_headers();
  std::string_view read_sized(std::size_t header_size, std::size_t body_size);
  void read_chunked(std::size_t header_size);
  std::string_view chunk_line(std::size_t& at);
  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }

  int fd_ = -1;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // [begin_, end_) of buffer_ is received and belongs to this response or a later one
  std::size_t end_ = 0;
  std::size_t consumed_ = 0;  // bytes of the response handed out last, dropped by the next read()
  std::string chunked_body_;
};

}  // namespace fairlead
