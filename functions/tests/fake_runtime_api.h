// A Runtime API played by hand: the test listens, accepts, reads requests and sends answers, step by step, while the
// client under test runs in its own thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fairlead/runtime.h"

namespace fairlead {

struct ReceivedRequest {
  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Each call blocks until it is done; all fail the test (and return something empty) after 10 seconds.
class FakeRuntimeApi {
 public:
  enum class Transport { kUnix, kTcp };

  explicit FakeRuntimeApi(Transport transport);
  ~FakeRuntimeApi();
  FakeRuntimeApi(const FakeRuntimeApi&) = delete;
  FakeRuntimeApi& operator=(const FakeRuntimeApi&) = delete;

  const Endpoint& endpoint() const { return endpoint_; }

  void accept();
  void stop_listening();
  void close_connection();

  ReceivedRequest read_request();
  // What one recv() delivers, for tests of how requests are grouped.
  std::string receive_once();

  void send(std::string_view bytes);
  void send_bytewise(std::string_view bytes);
  void send_event(std::string_view request_id, std::string_view payload) { send(event(request_id, payload)); }
  void send_accepted() { send(accepted()); }

  static std::string event(std::string_view request_id, std::string_view payload);
  static std::string accepted();

 private:
  bool receive_more();

  std::string folder_;
  Endpoint endpoint_;
  int listener_ = -1;
  int connection_ = -1;
  std::string received_;
};

}  // namespace fairlead
