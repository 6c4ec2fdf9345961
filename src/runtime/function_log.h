// The log file of one function, shared by its instances: <dir>/<function>.log, rotated once to .log.1 at `limit`, so
// that it never takes more than twice the limit. Writes are buffered; whoever owns it calls flush() now and then.
//
// Errors: a write that fails (a full disk) loses the buffered bytes and counts them; nothing else stops.
// Threads: not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "base/units.h"

namespace fairlead {

class FunctionLog {
 public:
  FunctionLog(std::string dir, std::string_view function, Bytes limit);
  ~FunctionLog() { flush(); }
  FunctionLog(const FunctionLog&) = delete;
  FunctionLog& operator=(const FunctionLog&) = delete;

  void append(std::string_view bytes);
  void flush();
  bool dirty() const { return !buffer_.empty(); }
  std::uint64_t lost_bytes() const { return lost_bytes_; }
  const std::string& path() const { return path_; }

 private:
  bool open();
  void rotate();

  std::string path_;
  std::int64_t limit_;
  UniqueFd file_;
  std::int64_t size_ = 0;
  std::string buffer_;
  std::uint64_t lost_bytes_ = 0;
};

}  // namespace fairlead
