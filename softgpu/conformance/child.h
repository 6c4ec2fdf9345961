// Another process of this program, for cases between processes. It gets the driver, the first device and a test of its own,
// with the kernels of driver.cu, and plays a role: a function that talks to the case over a socket.
//
//   void read_shared(Test& test, Socket& parent) {            void shared(Test& test) {
//     const auto handle = parent.receive<CUipcMemHandle>();     Child child(test, "read_shared");
//     ...                                                       child.socket().send(handle);
//     parent.send(sum);                                         test.expect_value("sum", child.socket().receive<int>(), 3);
//   }                                                           child.finish();
//                                                             }
#pragma once

#include <span>
#include <string>
#include <type_traits>

#include "softgpu/conformance/test.h"

namespace softgpu::conformance {

// One end of a connection between two processes; not thread-safe. After a failure, or 20 s without an answer, what is
// received is all zeros.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool ok() const { return ok_; }
  template <class T>
  void send(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    send_bytes(&value, sizeof value);
  }
  template <class T>
  T receive() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    receive_bytes(&value, sizeof value);
    return value;
  }
  void send_text(const std::string& text);
  std::string receive_text();
  // A duplicate of an open file arrives, which the receiver closes; -1 after a failure.
  void send_file(int fd);
  int receive_file();

 private:
  void send_bytes(const void* bytes, std::size_t count);
  void receive_bytes(void* bytes, std::size_t count);

  int fd_;
  bool ok_ = true;
};

struct Role {
  const char* name;
  void (*run)(Test& test, Socket& parent);
};
// All roles (cases/processes.cc).
std::span<const Role> all_roles();

class Child {
 public:
  Child(Test& test, const char* role);
  // Ends the process.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Socket& socket() { return socket_; }
  // Waits for the role's end; what failed there fails here.
  void finish();

 private:
  Test& test_;
  int pid_ = -1;
  Socket socket_;
};

// What the started process does; the exit status.
int run_as_child(const std::string& role, int socket_fd);

}  // namespace softgpu::conformance
