// The text of a function that is written anew, as it grows, with its instructions counted: what a fence costs is told by them.
//
//   text.raw("{\n");  text.line("mov.b64 {}, 0x{:x};", "%__fence_t1", 0x7000);  text.line(instruction);     2 instructions
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "gpu/fence/ptx.h"

namespace fairlead::fence {

class FencedText {
 public:
  // Whoever writes asks has_room() after each statement, so that a module cannot take more memory than one statement beyond
  // `most_bytes`.
  explicit FencedText(std::size_t most_bytes) : most_bytes_(most_bytes) {}
  bool has_room() const { return text_.size() <= most_bytes_; }

  // One instruction.
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    end_line();
  }
  void line(const Instruction& instruction) {
    append_text(text_, instruction);
    end_line();
  }
  // One instruction, under the predicate of another, if that has one.
  template <class... Args>
  void guarded(const Instruction& by, fmt::format_string<Args...> format, Args&&... args) {
    append_guard(text_, by);
    line(format, std::forward<Args>(args)...);
  }
  // What is no instruction: scopes, labels, declarations; or is not to be counted.
  void raw(std::string_view text) { text_ += text; }

  std::size_t instructions() const { return instructions_; }
  const std::string& text() const { return text_; }

 private:
  void end_line() {
    text_ += '\n';
    ++instructions_;
  }

  const std::size_t most_bytes_;
  std::string text_;
  std::size_t instructions_ = 0;
};

}  // namespace fairlead::fence
