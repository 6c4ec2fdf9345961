// One message as gRPC frames it: a byte that says whether it is compressed, four with its length, then so many bytes.
//
//   00 00 00 00 03 'a' 'b' 'c'  ->  "abc"
//
// Collected as it arrives, whatever its pieces. No allocation before bytes are there.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/grpc/grpc_status.h"

namespace fairlead::net {

inline constexpr std::size_t kGrpcPrefixBytes = 5;

class GrpcMessage {
 public:
  // Nothing: all is well. kResourceExhausted: it says that it has more bytes than `most`. kUnimplemented: it is compressed, or there
  // is more behind it. After a failure nothing more is to be appended.
  std::optional<GrpcFailure> append(std::string_view bytes, std::size_t most);
  // kInvalidArgument: its sender ended it in the middle.
  std::optional<GrpcFailure> finish() const;

  std::size_t size() const { return text_.size(); }  // so far
  std::string& text() { return text_; }
  const std::string& text() const { return text_; }

 private:
  char prefix_[kGrpcPrefixBytes] = {};
  std::size_t prefix_size_ = 0;
  std::uint32_t wanted_ = 0;  // bytes; once the prefix is there
  std::string text_;
};

// What stands before a message of so many bytes. REQUIRES: bytes < 2^32.
std::string grpc_prefix(std::size_t bytes);

}  // namespace fairlead::net
