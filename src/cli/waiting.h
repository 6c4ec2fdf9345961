// One line of a terminal that says what is waited for and since when: "pulling registry/app:1 12 s". Written after the first second, gone
// when the wait is over; nothing where stdout or stderr is no terminal.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace fairlead::cli {

class Cli;

class Waiting {
 public:
  Waiting(Cli& cli, std::string what);
  ~Waiting();
  Waiting(const Waiting&) = delete;

 private:
  void tell() const;

  const std::string what_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;  // none where nobody reads it
};

// "[=====     ]  50 %", 0 to 1. At most 26 columns.
std::string progress_bar(double done);

}  // namespace fairlead::cli
