// A function for tests, without any library: it does what _HANDLER says at its start, then serves the Runtime API over
// TCP and treats every payload as a command to try something in its sandbox.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

extern char** environ;

namespace {

struct Reply {
  int status = 0;
  std::string request_id;
  std::string body;
};

class Client {
 public:
  explicit Client(bool over_unix) {
    if (over_unix) {
      fd_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strcpy(address.sun_path, std::getenv("FAIRLEAD_RUNTIME_SOCKET"));
      check(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address));
    } else {
      fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(9001);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      check(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address));
    }
  }
  ~Client() { ::close(fd_); }

  Reply call(const std::string& method, const std::string& path, const std::string& body = {},
             const std::string& headers = {}) {
    const std::string request = method + " /2018-06-01/" + path + " HTTP/1.1\r\nHost: runtime\r\n" + headers +
                                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    for (std::size_t sent = 0; sent < request.size();) {
      const ssize_t n = ::write(fd_, request.data() + sent, request.size() - sent);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    return read_reply();
  }

 private:
  static void check(int result) {
    if (result != 0) _exit(40);
  }
  Reply read_reply() {
    std::size_t head = 0;
    while ((head = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) return {};
    }
    Reply reply;
    reply.status = std::atoi(in_.c_str() + 9);
    reply.request_id = header(head, "Lambda-Runtime-Aws-Request-Id: ");
    const std::size_t length = std::strtoul(header(head, "Content-Length: ").c_str(), nullptr, 10);
    while (in_.size() < head + 4 + length) {
      if (!more()) return {};
    }
    reply.body = in_.substr(head + 4, length);
    in_.erase(0, head + 4 + length);
    return reply;
  }
  std::string header(std::size_t head, const char* name) {
    const std::size_t at = in_.find(name);
    if (at == std::string::npos || at > head) return {};
    const std::size_t begin = at + std::strlen(name);
    return in_.substr(begin, in_.find("\r\n", begin) - begin);
  }
  bool more() {
    char buffer[65536];
    const ssize_t n = ::read(fd_, buffer, sizeof buffer);
    if (n > 0) in_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  int fd_ = -1;
  std::string in_;
};

std::string outcome(long result) {
  return result >= 0 ? "ok" : strerrorname_np(errno);
}

std::string read_file(const char* path) {
  std::string text;
  const int fd = ::open(path, O_RDONLY);
  if (fd < 0) return outcome(-1);
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  return text;
}

std::string list_dir(const char* path) {
  DIR* dir = ::opendir(path);
  if (dir == nullptr) return outcome(-1);
  std::map<std::string, int> names;
  while (const dirent* entry = ::readdir(dir)) names[entry->d_name] = 1;
  ::closedir(dir);
  std::string text;
  for (const auto& [name, one] : names) text += (name[0] == '.') ? "" : name + " ";
  return text;
}

std::string environment() {
  std::string text;
  for (char** entry = environ; *entry != nullptr; ++entry) text += std::string(*entry) + "\n";
  return text;
}

std::string create(const std::string& path) {
  return outcome(::open(path.c_str(), O_CREAT | O_WRONLY, 0644));
}

// Writes until it fails: "<MiB> <error>".
std::string fill(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_WRONLY, 0644);
  if (fd < 0) return outcome(-1);
  const std::string block(1 << 20, 'x');
  int written = 0;
  while (written < 4096 && ::write(fd, block.data(), block.size()) == static_cast<ssize_t>(block.size())) ++written;
  return std::to_string(written) + " " + outcome(-1);
}

std::string connect_out(int family, const char* address) {
  const int fd = ::socket(family, SOCK_DGRAM, 0);
  if (fd < 0) return outcome(-1);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(53);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  return outcome(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to));
}

std::string system_call(const std::string& name) {
  if (name == "mount") return outcome(::mount("none", "/tmp", "tmpfs", 0, nullptr));
  if (name == "umount") return outcome(::umount("/tmp"));
  if (name == "unshare") return outcome(::unshare(CLONE_NEWUSER));
  if (name == "clone-newuser") return outcome(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  if (name == "clone3") return outcome(::syscall(SYS_clone3, nullptr, 0));
  if (name == "ptrace") return outcome(::ptrace(PTRACE_ATTACH, 1, nullptr, nullptr));
  if (name == "bpf") return outcome(::syscall(SYS_bpf, 0, nullptr, 0));
  if (name == "io_uring") return outcome(::syscall(SYS_io_uring_setup, 1, nullptr));
  if (name == "keyctl") return outcome(::syscall(SYS_keyctl, 0, 0, 0, 0, 0));
  if (name == "vsock") return outcome(::socket(AF_VSOCK, SOCK_STREAM, 0));
  if (name == "unknown") return outcome(::syscall(462));
  if (name == "setuid") return outcome(::setuid(0));
  if (name == "socket") return outcome(::socket(AF_INET, SOCK_STREAM, 0));
  return "no such test";
}

// Starts children that ignore what they can, until the limit; each stays.
std::string fork_children(int count) {
  int made = 0;
  for (; made < count; ++made) {
    const pid_t child = ::fork();
    if (child < 0) return std::to_string(made) + " " + outcome(-1);
    if (child == 0) {
      ::setsid();
      ::signal(SIGTERM, SIG_IGN);
      while (true) ::pause();
    }
  }
  return std::to_string(made) + " ok";
}

std::string touch_memory(std::size_t mib) {
  for (std::size_t i = 0; i < mib; ++i) {
    void* block = std::malloc(1 << 20);
    if (block == nullptr) return "ENOMEM";
    std::memset(block, 1, 1 << 20);
  }
  return "ok";
}

std::string print(std::size_t mib) {
  const std::string line = std::string(1023, 'z') + "\n";
  for (std::size_t i = 0; i < mib * 1024; ++i) {
    if (::write(1, line.data(), line.size()) < 0) return outcome(-1);
  }
  return "ok";
}

std::string facts() {
  return "pid=" + std::to_string(::getpid()) + " uid=" + std::to_string(::getuid()) +
         " no_new_privs=" + std::to_string(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) + " root=" + list_dir("/") +
         "interfaces=" + list_dir("/proc/sys/net/ipv4/conf") + "processes=" + list_dir("/proc").substr(0, 4);
}

std::string run_command(const std::string& command) {
  const std::size_t space = command.find(' ');
  const std::string verb = command.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : command.substr(space + 1);
  const int number = std::atoi(argument.c_str());
  if (verb == "echo") return argument;
  if (verb == "facts") return facts();
  if (verb == "env") return environment();
  if (verb == "list") return list_dir(argument.c_str());
  if (verb == "read") return read_file(argument.c_str());
  if (verb == "create") return create(argument);
  if (verb == "fill") return fill(argument);
  if (verb == "connect") return connect_out(AF_INET, argument.c_str());
  if (verb == "call") return system_call(argument);
  if (verb == "fork") return fork_children(number);
  if (verb == "memory") return touch_memory(static_cast<std::size_t>(number));
  if (verb == "print") return print(static_cast<std::size_t>(number));
  if (verb == "write") return outcome(::write(1, argument.data(), argument.size()));
  if (verb == "exit") ::_exit(number);
  if (verb == "crash") ::abort();
  while (verb == "hang") ::pause();
  return "unknown command " + command;
}

void serve(Client& client) {
  while (true) {
    const Reply next = client.call("GET", "runtime/invocation/next");
    if (next.status != 200) ::_exit(41);
    const std::string path = "runtime/invocation/" + next.request_id;
    if (next.body == "fail") {
      client.call("POST", path + "/error", R"({"errorMessage":"no"})",
                  "Lambda-Runtime-Function-Error-Type: My.Error\r\n");
    } else if (next.body == "misbehave") {
      const int before = client.call("POST", "runtime/invocation/wrong/response", "x").status;
      const int running = client.call("GET", "runtime/invocation/next").status;
      const std::string seen = std::to_string(before) + " " + std::to_string(running);
      client.call("POST", path + "/response", seen);
      const int twice = client.call("POST", path + "/response", "second").status;
      if (twice != 403) ::_exit(42);
    } else if (next.body == "big") {
      const int status = client.call("POST", path + "/response", std::string((6 << 20) + 1, 'b')).status;
      if (status != 413) ::_exit(43);
    } else if (next.body == "answer-and-exit") {
      client.call("POST", path + "/response", "last words");
      ::_exit(7);
    } else {
      client.call("POST", path + "/response", run_command(next.body));
    }
  }
}

}  // namespace

// CLOCK_MONOTONIC, which is the machine's in every sandbox, in nanoseconds.
void print_time() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string text = std::to_string(now.tv_sec * 1'000'000'000 + now.tv_nsec) + "\n";
  ::write(1, text.data(), text.size());
}

int main() {
  const std::string handler = std::getenv("_HANDLER");
  if (handler == "clock") print_time();
  if (handler.starts_with("exit")) {
    ::write(2, "giving up\n", 10);
    ::_exit(std::atoi(handler.c_str() + 4));
  }
  if (handler == "true") return 0;
  if (handler == "hang") ::pause();
  Client client(handler == "unix");
  if (handler.starts_with("init-error")) {
    client.call("POST", "runtime/init/error", R"({"errorMessage":"no model"})");
    if (handler == "init-error-hang") ::pause();
    return 1;
  }
  if (handler == "forks") fork_children(3);
  serve(client);
}
