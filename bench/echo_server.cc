#include "bench/echo_server.h"

#include <boost/asio/io_context.hpp>
#include <cstdio>

#include "net/http_server.h"

namespace fairlead::bench {

Status run_echo_server() {
  boost::asio::io_context io(1);
  net::HttpServer server(io, {}, [](net::HttpExchange exchange) {
    std::string body = exchange.request().take_body();
    exchange.respond({.body = std::move(body)});
  });
  const auto address = server.listen("127.0.0.1:0");
  if (!address) return fail(address.error());
  std::printf("listening on %s\n", address->c_str());
  std::fflush(stdout);
  io.run();
  return {};
}

}  // namespace fairlead::bench
