// A small blocking HTTP/1.1 client: the command line's way to a node. One connection, kept alive between requests.
//
// Threads: not thread-safe; use one client per thread. Never on an io_context's thread: it blocks.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "net/http_server.h"
#include "net/tls.h"

namespace fairlead::net {

struct HttpClientOptions {
  Duration connect_timeout = std::chrono::seconds(5);
  Duration timeout = std::chrono::minutes(16);  // one request, from its first byte to the last one of the answer
  std::size_t response_bytes = 64 << 20;        // larger answers are kTooLarge
  TlsTrustFiles trust = {};                     // for https://
};

struct ClientRequest {
  std::string method = "GET";
  std::string target = "/";          // percent-encoded by the caller, see percent_encode()
  std::vector<Header> headers = {};  // Host and Content-Length are the client's
  std::string body = {};
};

struct ClientResponse {
  unsigned status = 0;
  std::vector<Header> headers;
  std::string body = {};

  std::string_view header(std::string_view name) const;  // case-insensitive; empty when absent
};

class HttpClient {
 public:
  // "127.0.0.1:9001", "localhost:9001", "http://host:9001", "https://host:9001", "[::1]:9001" or "unix:/path". Connects at
  // the first request.
  explicit HttpClient(std::string address, HttpClientOptions options = {});
  ~HttpClient();
  HttpClient(HttpClient&& other) noexcept;
  HttpClient& operator=(HttpClient&& other) noexcept;

  // Any status is success here. kUnavailable: nobody listens at the address; kUnauthenticated: the server's certificate is not
  // to be trusted, or it does not speak TLS; kDeadlineExceeded; kIo: the connection broke; kInvalidArgument: the address; kTooLarge; kCorrupt: the answer is not HTTP. A request is never sent twice.
  Result<ClientResponse> send(const ClientRequest& request);

  // The same, and the answer's bytes go to `take` as they come, with the answer's head; the response that is given in the end has none of
  // them, and they may be any number.
  using TakePart = std::function<void(const ClientResponse& head, std::string_view part)>;
  Result<ClientResponse> stream(const ClientRequest& request, const TakePart& take);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Encodes one path segment or query value: everything but letters, digits and -._~
std::string percent_encode(std::string_view text);

}  // namespace fairlead::net
