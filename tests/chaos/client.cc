#include "chaos/client.h"

#include <fmt/format.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"

namespace fairlead::chaos {

Client::Client(const std::string& socket, const std::string& function, const std::string& tenant, std::string word,
               std::size_t bytes)
    : word_(std::move(word)), fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  FL_CHECK(socket.size() < sizeof address.sun_path, "{}", socket);
  socket.copy(address.sun_path, socket.size());
  FL_CHECK(::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "{}", errno);
  std::string payload = word_ + " ";
  payload.resize(std::max(payload.size(), bytes), 'x');
  unsent_ = fmt::format(
      "POST /2015-03-31/functions/{}/invocations HTTP/1.1\r\nHost: a\r\nX-Amz-Invocation-Type: "
      "{}\r\nX-Fairlead-Tenant: {}\r\n"
      "Content-Length: {}\r\n\r\n{}",
      function, is_event() ? "Event" : "RequestResponse", tenant, payload.size(), payload);
}

void Client::send(std::size_t most) {
  const ssize_t count = ::send(fd_.get(), unsent_.data(), std::min(most, unsent_.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count > 0) unsent_.erase(0, static_cast<std::size_t>(count));
}

bool Client::receive() {
  char piece[16384];
  while (true) {
    const ssize_t count = ::recv(fd_.get(), piece, sizeof piece, MSG_DONTWAIT);
    if (count == 0) return true;
    if (count < 0) break;
    received_.append(piece, static_cast<std::size_t>(count));
  }
  const std::size_t head = received_.find("\r\n\r\n");
  if (head == std::string::npos) return false;
  return received_.size() >= head + 4 + std::strtoul(header("Content-Length").c_str(), nullptr, 10);
}

int Client::status() const {
  return received_.starts_with("HTTP/1.1 ") ? std::atoi(received_.c_str() + 9) : 0;
}

std::string Client::header(const std::string& name) const {
  for (std::size_t at = received_.find("\r\n"); at != std::string::npos; at = received_.find("\r\n", at + 2)) {
    const char* const line = received_.c_str() + at + 2;
    if (::strncasecmp(line, (name + ": ").c_str(), name.size() + 2) != 0) continue;
    const std::size_t begin = at + 2 + name.size() + 2;
    return received_.substr(begin, received_.find("\r\n", begin) - begin);
  }
  return {};
}

std::string Client::body() const {
  const std::size_t head = received_.find("\r\n\r\n");
  return head == std::string::npos ? std::string() : received_.substr(head + 4);
}

}  // namespace fairlead::chaos
