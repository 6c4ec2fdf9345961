#include "net/grpc/grpc_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace fairlead::net {

std::optional<GrpcFailure> GrpcMessage::append(std::string_view bytes, std::size_t most) {
  if (prefix_size_ < kGrpcPrefixBytes) {
    const std::size_t count = std::min(bytes.size(), kGrpcPrefixBytes - prefix_size_);
    std::memcpy(prefix_ + prefix_size_, bytes.data(), count);
    prefix_size_ += count;
    bytes.remove_prefix(count);
    if (prefix_size_ < kGrpcPrefixBytes) return std::nullopt;
    if (prefix_[0] != 0) {
      return GrpcFailure{GrpcStatus::kUnimplemented,
                         "the message is compressed: send it as it is (grpc-encoding identity)"};
    }
    for (const char byte : std::string_view(prefix_, kGrpcPrefixBytes).substr(1)) {
      wanted_ = wanted_ << 8 | static_cast<unsigned char>(byte);
    }
    if (wanted_ > most) {
      return GrpcFailure{GrpcStatus::kResourceExhausted,
                         fmt::format("the message has {} bytes; it may have at most {}", wanted_, most)};
    }
  }
  if (bytes.size() > wanted_ - text_.size()) {
    return GrpcFailure{GrpcStatus::kUnimplemented,
                       fmt::format("there is more behind the message of {} bytes: a call has one", wanted_)};
  }
  text_.append(bytes);
  return std::nullopt;
}

std::optional<GrpcFailure> GrpcMessage::finish() const {
  if (prefix_size_ == kGrpcPrefixBytes && text_.size() == wanted_) return std::nullopt;
  if (prefix_size_ < kGrpcPrefixBytes) {
    return GrpcFailure{
        GrpcStatus::kInvalidArgument,
        fmt::format("there is no message: {} of the {} bytes before it arrived", prefix_size_, kGrpcPrefixBytes)};
  }
  return GrpcFailure{GrpcStatus::kInvalidArgument,
                     fmt::format("the message ends after {} of its {} bytes", text_.size(), wanted_)};
}

std::string grpc_prefix(std::size_t bytes) {
  FL_CHECK(bytes <= 0xffffffffu, "a message of {} bytes", bytes);
  std::string prefix(kGrpcPrefixBytes, '\0');
  for (std::size_t i = 1; i < kGrpcPrefixBytes; ++i) {
    prefix[i] = static_cast<char>(bytes >> (8 * (kGrpcPrefixBytes - 1 - i)));
  }
  return prefix;
}

}  // namespace fairlead::net
