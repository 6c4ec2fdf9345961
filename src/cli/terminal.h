// A terminal that a program draws on: keys one at a time, its size, and the screen of before when it is over, however the program ends.
//
// Threads: one owner.
#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"

namespace fairlead::cli {

struct TerminalSize {
  std::size_t columns = 80, lines = 24;
  bool operator==(const TerminalSize&) const = default;
};

// Whether colours are wanted there: NO_COLOR is not set or empty (no-color.org), and TERM is not "dumb".
bool wants_colour();

class Terminal {
 public:
  // kInvalidArgument: stdin or stdout is no terminal. One at a time in a process: signals are its own while it exists.
  static Result<Terminal> open();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();  // all is as it was

  TerminalSize size() const;  // now; 80 by 24 where it does not say
  // "q", "\r", "\x1b", or a name: "up", "down", "left", "right", "page-up", "page-down", "home", "end", "backspace". "": nothing came within
  // `wait`, or the size may be another. "end-of-input": there is no terminal any more, or a signal ends the program.
  std::string key(std::chrono::milliseconds wait);
  // The whole screen; each line ends with "\n" and fits.
  void draw(const std::string& frame);

 private:
  explicit Terminal(const termios& before) : before_(before) {}
  std::string sequence();

  termios before_{};
  bool is_open_ = true;
  std::string unread_;
};

}  // namespace fairlead::cli
