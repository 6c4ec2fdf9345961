// A web application for the tests, static, so that an image needs nothing else: an HTTP/1.1 server on $PORT that answers with what it was
// asked: the request's first line, its headers and its body. What it does besides is in the path:
//
//   ?status=N       answers with that status, and with two cookies        /lines/N     N lines, each when it is written, in chunks
//   /environment/X  the variable X                                        /exit        ends in the middle of the answer
//   /file/PATH      what is in /PATH
//   /_/health       503 twice, then 200, and how often it was asked in /healths
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace {

int healths = 0;

void send_text(int client, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = write(client, text.data() + sent, text.size() - sent);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

void reply(int client, int status, const std::string& body, const std::string& headers = "") {
  send_text(client, "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: text/x-echo\r\n" + headers +
                        "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body);
}

void send_lines(int client, int count) {
  send_text(client,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
  for (int i = 0; i < count; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    char size[32];
    snprintf(size, sizeof size, "%zx\r\n", line.size());
    send_text(client, size + line + "\r\n");
    usleep(50'000);  // sleep: what is tested is that a line goes on before the next one is there
  }
  send_text(client, "0\r\n\r\n");
}

bool begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

void answer(int client, const std::string& head, const std::string& body) {
  const std::string line = head.substr(0, head.find("\r\n"));
  const std::string method = line.substr(0, line.find(' '));
  const std::string rest = line.substr(method.size() + 1), target = rest.substr(0, rest.find(' '));
  if (target == "/_/health") return reply(client, ++healths > 2 ? 200 : 503, "");
  std::cout << "asked " << method << " " << target << std::endl;
  if (target == "/healths") return reply(client, 200, std::to_string(healths));
  if (begins(target, "/lines/")) return send_lines(client, atoi(target.c_str() + 7));
  if (begins(target, "/environment/")) {
    const char* value = getenv(target.c_str() + 13);
    return reply(client, 200, value != nullptr ? value : "(unset)");
  }
  if (begins(target, "/file/")) {
    std::ifstream file(target.substr(5));
    std::ostringstream text;
    text << file.rdbuf();
    return reply(client, file.is_open() ? 200 : 404, text.str());
  }
  if (target == "/exit") {
    send_text(client, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
    _exit(3);
  }
  const std::size_t status = target.find("status=");
  if (status != std::string::npos) {
    return reply(client, atoi(target.c_str() + status + 7), head + "\r\n" + body,
                 "X-Own: yes\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n");
  }
  if (method == "HEAD") return reply(client, 200, "", "X-Own: head\r\n");
  reply(client, 200, head + "\r\n" + body);
}

void serve(int client) {
  std::string request;
  char buffer[65536];
  std::size_t end = std::string::npos, length = 0;
  while (end == std::string::npos || request.size() < end + 4 + length) {
    const ssize_t size = read(client, buffer, sizeof buffer);
    if (size <= 0) return;
    request.append(buffer, static_cast<std::size_t>(size));
    end = request.find("\r\n\r\n");
    const std::size_t header = request.find("Content-Length: ");
    if (end != std::string::npos && header < end) length = strtoul(request.c_str() + header + 16, nullptr, 10);
  }
  answer(client, request.substr(0, end + 2), request.substr(end + 4));
}

}  // namespace

int main() {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<unsigned short>(atoi(getenv("PORT"))));
  if (bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(server, 8) != 0) return 1;
  while (true) {
    const int client = accept(server, nullptr, nullptr);
    serve(client);
    close(client);
  }
}
