// A container for the tests, static, so that an image needs nothing else: an HTTP/1.1 server on $PORT that does what the
// payload says and answers with what it saw. Called with "exit N" or "crash" as arguments it ends at once.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace {

std::string joined_arguments;

// A real one: signals that the first process of a pid namespace sends itself are ignored.
[[noreturn]] void fault() {
  __builtin_trap();
}

std::string try_to_write(const std::string& path) {
  std::ofstream out(path);
  out << "x";
  out.close();
  return out ? "written" : std::string("refused: ") + strerror(errno);
}

std::string answer_to(const std::string& command, const std::string& argument) {
  if (command == "echo") return argument;
  if (command == "arguments") return joined_arguments;
  if (command == "pid") return std::to_string(getpid());
  if (command == "ids") return std::to_string(getuid()) + ":" + std::to_string(getgid());
  if (command == "env") return getenv(argument.c_str()) != nullptr ? getenv(argument.c_str()) : "(unset)";
  if (command == "cwd") return get_current_dir_name();
  if (command == "write") return try_to_write(argument);
  if (command == "owner") {
    struct stat info {};
    return stat(argument.c_str(), &info) == 0 ? std::to_string(info.st_uid) : strerror(errno);
  }
  if (command == "read") {
    std::ifstream in(argument);
    std::stringstream text;
    text << in.rdbuf();
    return in ? text.str() : strerror(errno);
  }
  if (command == "setuid") return setuid(1234) == 0 ? "changed" : strerror(errno);
  if (command == "unshare") return ::syscall(272, 0x10000000) == 0 ? "made" : strerror(errno);  // CLONE_NEWUSER
  if (command == "sleep") return sleep(static_cast<unsigned>(atoi(argument.c_str()))), "slept";
  if (command == "fork") {
    if (fork() == 0) pause();
    return "forked";
  }
  if (command == "allocate") {
    const std::size_t bytes = static_cast<std::size_t>(atoi(argument.c_str())) << 20;
    volatile char* memory = static_cast<char*>(malloc(bytes));
    for (std::size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
    return "allocated";
  }
  if (command == "exit") _exit(atoi(argument.c_str()));
  if (command == "fault") fault();
  return "unknown command " + command;
}

void reply(int client, int status, const std::string& body) {
  const std::string text = "HTTP/1.1 " + std::to_string(status) +
                           " X\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) +
                           "\r\nConnection: close\r\n\r\n" + body;
  if (write(client, text.data(), text.size()) < 0) std::cerr << "client gone\n";
}

void serve(int client) {
  std::string request;
  char buffer[4096];
  std::size_t body = std::string::npos;
  std::size_t length = 0;
  while (body == std::string::npos || request.size() < body + length) {
    const ssize_t size = read(client, buffer, sizeof buffer);
    if (size <= 0) return;
    request.append(buffer, static_cast<std::size_t>(size));
    body = request.find("\r\n\r\n");
    if (body == std::string::npos) continue;
    body += 4;
    const std::size_t header = request.find("Content-Length: ");
    if (header < body) length = strtoul(request.c_str() + header + 16, nullptr, 10);
  }
  std::istringstream words(request.substr(body));
  std::string command, argument;
  words >> command;
  std::getline(words >> std::ws, argument);
  if (command == "hangup") return;
  std::cout << "command " << command << std::endl;
  if (command == "status") return reply(client, atoi(argument.c_str()), "as asked");
  reply(client, 200, answer_to(command, argument));
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 0; i < count; ++i) joined_arguments += (i > 0 ? "|" : "") + std::string(arguments[i]);
  if (count > 2 && std::strcmp(arguments[1], "exit") == 0) return atoi(arguments[2]);
  if (count > 1 && std::strcmp(arguments[1], "crash") == 0) fault();
  signal(SIGCHLD, SIG_IGN);
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
