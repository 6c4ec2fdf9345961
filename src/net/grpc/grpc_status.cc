#include "net/grpc/grpc_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace fairlead::net {

GrpcStatus grpc_status_of(unsigned http_status) {
  if (http_status >= 200 && http_status < 300) return GrpcStatus::kOk;
  switch (http_status) {
    case 400: return GrpcStatus::kInvalidArgument;
    case 401: return GrpcStatus::kUnauthenticated;
    case 403: return GrpcStatus::kPermissionDenied;
    case 404: return GrpcStatus::kNotFound;
    case 405:
    case 415:
    case 501: return GrpcStatus::kUnimplemented;
    case 408:
    case 504: return GrpcStatus::kDeadlineExceeded;
    case 409: return GrpcStatus::kFailedPrecondition;
    case 410:
    case 499: return GrpcStatus::kCancelled;
    case 413:
    case 429: return GrpcStatus::kResourceExhausted;
    case 502:
    case 503: return GrpcStatus::kUnavailable;
    default: return GrpcStatus::kInternal;
  }
}

GrpcStatus grpc_status_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument: return GrpcStatus::kInvalidArgument;
    case Errc::kNotFound: return GrpcStatus::kNotFound;
    case Errc::kAlreadyExists:
    case Errc::kConflict: return GrpcStatus::kFailedPrecondition;
    case Errc::kTooLarge:
    case Errc::kResourceExhausted: return GrpcStatus::kResourceExhausted;
    case Errc::kDeadlineExceeded: return GrpcStatus::kDeadlineExceeded;
    case Errc::kUnauthenticated: return GrpcStatus::kUnauthenticated;
    case Errc::kForbidden: return GrpcStatus::kPermissionDenied;
    case Errc::kUnavailable: return GrpcStatus::kUnavailable;
    case Errc::kCorrupt:
    case Errc::kIo:
    case Errc::kInternal: return GrpcStatus::kInternal;
  }
  return GrpcStatus::kInternal;
}

std::string grpc_message_of(std::string_view text) {
  std::string message;
  for (const char c : text.substr(0, kMaxGrpcMessage)) {
    if (c >= ' ' && c <= '~' && c != '%') {
      message += c;
    } else {
      message += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return message;
}

std::optional<Duration> parse_grpc_timeout(std::string_view text) {
  constexpr std::size_t kMaxDigits = 8;
  constexpr std::chrono::hours kYear{365 * 24};
  if (text.size() < 2 || text.size() > kMaxDigits + 1) return std::nullopt;
  const std::string_view digits = text.substr(0, text.size() - 1);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 0) return std::nullopt;
  switch (text.back()) {
    case 'H': return std::chrono::hours(std::min<std::int64_t>(count, kYear.count()));
    case 'M': return std::chrono::minutes(std::min<std::int64_t>(count, std::chrono::minutes(kYear).count()));
    case 'S': return std::chrono::seconds(std::min<std::int64_t>(count, std::chrono::seconds(kYear).count()));
    case 'm': return std::chrono::milliseconds(count);
    case 'u': return std::chrono::microseconds(count);
    case 'n': return std::chrono::nanoseconds(count);
    default: return std::nullopt;
  }
}

}  // namespace fairlead::net
