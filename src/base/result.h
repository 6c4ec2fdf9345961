// Expected failures as values. Result<T> is tl::expected<T, Error>, made [[nodiscard]]. The message of an Error names the
// field, the value and the bound, and what to do.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace fairlead {

// Closed on purpose: edges map every code to a status of their protocol.
enum class Errc {
  kInvalidArgument,  // the caller's input is wrong; retrying the same call cannot succeed
  kNotFound,
  kAlreadyExists,
  kConflict,           // the object is busy or in another state
  kTooLarge,           // a size limit
  kResourceExhausted,  // a queue, pool or quota is full; retrying later may succeed
  kDeadlineExceeded,
  kUnauthenticated,  // no credential, or none that is valid
  kForbidden,        // the caller is known, and may not do this
  kUnavailable,      // a part of the system is not there (no GPU, node shutting down)
  kCorrupt,          // stored data is not what was written
  kIo,
  kInternal,
};

std::string_view errc_name(Errc code);

struct Error {
  Errc code = Errc::kInternal;
  std::string message;
};

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

// return fail(Errc::kTooLarge, "payload is {} bytes, the limit is {}", size, limit);
template <typename... Args>
tl::unexpected<Error> fail(Errc code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

inline tl::unexpected<Error> fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

// errno as an Error: "open /var/x: No such file or directory".
Error errno_error(int error_number, std::string_view what);

}  // namespace fairlead
