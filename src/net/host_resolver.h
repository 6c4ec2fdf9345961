// Looks hosts up beside an event loop. The C library's resolver cannot be stopped, and a name server that says nothing holds it for a
// minute; so each look-up has a thread of its own that nobody waits for: neither other look-ups, nor who stops.
//
//   resolver.ask("hooks.example", "443", [](Result<std::vector<SocketAddress>> found) { ... });
//
// Threads: the io_context's.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http_listener.h"

namespace fairlead::net {

// All addresses of a host, at least one. Blocks. kUnavailable: the resolver's reason.
Result<std::vector<SocketAddress>> look_up_host(const std::string& host, const std::string& port);

class HostResolver {
 public:
  using LookUp = std::function<Result<std::vector<SocketAddress>>(const std::string& host, const std::string& port)>;
  using Done = std::function<void(Result<std::vector<SocketAddress>>)>;
  static constexpr std::size_t kMost = 128;  // look-ups at once, those that nobody wants any more among them

  // REQUIRES: `io` outlives this.
  explicit HostResolver(boost::asio::io_context& io, LookUp look_up = look_up_host);
  HostResolver(const HostResolver&) = delete;
  HostResolver& operator=(const HostResolver&) = delete;
  ~HostResolver();  // waits for nothing; whom nobody told yet is not told

  // `done` is called once, later, from the loop. kResourceExhausted: kMost are under way.
  void ask(const std::string& host, const std::string& port, Done done);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // with the threads
};

}  // namespace fairlead::net
