// A node's HTTP API as the commands use it: JSON in, JSON out, its error answers as Error.
//
// Errors: kUnavailable names the endpoint and how to reach a node; an answer above 399 becomes the code that its status
// stands for, with the node's own message.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/http_client.h"

namespace fairlead::cli {

using Json = nlohmann::json;

class NodeClient {
 public:
  // `token` is sent with each request, unless it is empty. For https:// the files that FAIRLEAD_CA, FAIRLEAD_CLIENT_CERTIFICATE
  // and FAIRLEAD_CLIENT_KEY name say whom to believe and what to show.
  explicit NodeClient(const std::string& endpoint, std::string token = "");

  // `path` is percent-encoded by the caller. No body and an empty answer are JSON null.
  Result<Json> call(const std::string& method, const std::string& path, const Json& body = nullptr);

  // Whether the node sees this machine's folders and reads them for this client: it is on this machine, and whoever calls it
  // does so as its operator and not with a key that was given to somebody.
  bool may_name_folders() const;

  // Any request; an answer above 399 is an error.
  Result<net::ClientResponse> send(net::ClientRequest request);

  Result<std::string> get_text(const std::string& path);
  Result<net::ClientResponse> get(const std::string& path) { return send({.method = "GET", .target = path}); }

  struct InvokeOptions {
    bool event = false;  // asynchronous: accepted is all there is to hear
    bool log_tail = false;
    std::string client_context;  // JSON, may be empty
    std::string qualifier;       // of a version or an alias; empty: $LATEST
  };
  struct InvokeAnswer {
    std::string payload;
    std::string content_type;
    std::string function_error;  // empty: success
    std::string log_tail;
    std::string request_id;
    std::string start;     // "cold", "warm"; empty when the node did not say
    std::string queue_ms;  // as the node wrote them
    std::string exec_ms;
    std::string first_byte_ms;  // of an answer that was streamed
    std::string version;        // that ran
  };
  Result<InvokeAnswer> invoke(const std::string& function, std::string payload, const InvokeOptions& options);

  // A call whose answer's bytes are given to `take` as they come; the answer has none of them then. Where the function failed before its
  // first byte, they are its error, and `function_error` is set before the first is given.
  using TakePart = std::function<void(const InvokeAnswer& so_far, std::string_view part)>;
  Result<InvokeAnswer> stream(const std::string& function, std::string payload, const InvokeOptions& options,
                              const TakePart& take);

 private:
  Result<net::ClientResponse> checked(Result<net::ClientResponse> response) const;

  std::string endpoint_;
  std::string token_;
  net::HttpClient http_;
};

// Whether the endpoint is a Unix socket or a loopback address.
bool is_local_endpoint(std::string_view endpoint);

// Where nobody named an endpoint: the operator's socket in the state folder (FAIRLEAD_SERVE_STATE, or default_state_dir()) if a
// node serves it, and nobody gave a key; who listens there is this user or root. Else `otherwise`.
std::string nearest_endpoint(const std::string& otherwise);

std::string token_of_environment();  // FAIRLEAD_TOKEN; "": none

// The API key for a node: FAIRLEAD_TOKEN; else, at a loopback address, the operator's key in the state folder if it is this user's to read; else none.
std::string token_for(const std::string& endpoint);

// "/2015-03-31/functions/NAME" + suffix.
std::string function_path(const std::string& name, const std::string& suffix = "");

// An answer above 399 as Error. Understands {"Message"}, {"message"}, {"error"}; else quotes the body.
Error error_of(const net::ClientResponse& response);

}  // namespace fairlead::cli
