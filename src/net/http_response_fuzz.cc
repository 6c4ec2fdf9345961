// libFuzzer: whatever a server answers, the client gives an answer within its bounds or an error, and comes back. The server
// is a thread at the other end of a Unix socket: it sends all of the bytes at once and hangs up.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/fuzz_seeds.h"
#include "net/http_client.h"

namespace fairlead {

std::vector<std::string> fuzz_seeds() {
  return {
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Type: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nab\r\n1;x=y\r\nc\r\n0\r\nT: 1\r\n\r\n",
      "HTTP/1.0 500 \r\n\r\nuntil the end",
      "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  };
}

namespace net {
namespace {

constexpr std::size_t kMostBody = 512;

void require(bool condition) {
  if (!condition) std::abort();
}

class Server {
 public:
  Server()
      : path_(std::string(getenv("TMPDIR") != nullptr ? getenv("TMPDIR") : "/tmp") + "/http_response_fuzz.socket") {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ::unlink(path_.c_str());
    require(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
            ::listen(listener_, 8) == 0);
  }

  void serve_one(std::string_view bytes) const {
    const int client = ::accept(listener_, nullptr, nullptr);
    require(client >= 0);
    (void)!::send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(client, SHUT_WR);
    char request[4096];  // read to its end, so that it is no broken pipe
    while (::recv(client, request, sizeof request, 0) > 0) {
    }
    ::close(client);
  }
  std::string address() const { return "unix:" + path_; }

 private:
  std::string path_;
  int listener_;
};

void exchange(std::string_view bytes) {
  static const Server server;
  std::thread serving([&] { server.serve_one(bytes); });
  {
    HttpClient client(server.address(), {.timeout = std::chrono::seconds(5), .response_bytes = kMostBody});
    const auto response = client.send({.method = bytes.size() % 7 == 0 ? "HEAD" : "GET"});
    if (response) {
      require(response->body.size() <= kMostBody && response->status / 100 != 1);
    } else {
      require(!response.error().message.empty() && response.error().code != Errc::kDeadlineExceeded);
    }
  }
  serving.join();
}

}  // namespace
}  // namespace net
}  // namespace fairlead

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fairlead::net::exchange({reinterpret_cast<const char*>(data), size});
  return 0;
}
