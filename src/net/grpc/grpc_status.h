// How an answer of HTTP is said in gRPC: 404 is NOT_FOUND (5), its body the message.
//
// Plain functions, for any thread. The numbers are those of gRPC's status codes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace fairlead::net {

enum class GrpcStatus : int {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

GrpcStatus grpc_status_of(unsigned http_status);  // 200 to 299: kOk; what it does not know: kInternal
GrpcStatus grpc_status_of(Errc code);

// Why a call is not carried out.
struct GrpcFailure {
  GrpcStatus status = GrpcStatus::kInternal;
  std::string text;
};

// As the header grpc-message has it: bytes that are no printable ASCII, and '%', as %XX; so many bytes of the text at most.
inline constexpr std::size_t kMaxGrpcMessage = 4 << 10;
std::string grpc_message_of(std::string_view text);

// The header grpc-timeout, at most eight digits and a unit: "250m" is a quarter of a second. Nothing: it is not of this form.
// Units are H, M, S, m, u and n; what is longer than a year is a year.
std::optional<Duration> parse_grpc_timeout(std::string_view text);

}  // namespace fairlead::net
