#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace fairlead {

std::string_view errc_name(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument: return "invalid argument";
    case Errc::kNotFound: return "not found";
    case Errc::kAlreadyExists: return "already exists";
    case Errc::kConflict: return "conflict";
    case Errc::kTooLarge: return "too large";
    case Errc::kResourceExhausted: return "resource exhausted";
    case Errc::kDeadlineExceeded: return "deadline exceeded";
    case Errc::kUnauthenticated: return "unauthenticated";
    case Errc::kForbidden: return "forbidden";
    case Errc::kUnavailable: return "unavailable";
    case Errc::kCorrupt: return "corrupt";
    case Errc::kIo: return "io error";
    case Errc::kInternal: return "internal";
  }
  return "unknown";
}

Error errno_error(int error_number, std::string_view what) {
  Errc code = Errc::kIo;
  if (error_number == ENOENT) code = Errc::kNotFound;
  if (error_number == EEXIST) code = Errc::kAlreadyExists;
  if (error_number == ENOSPC || error_number == EMFILE || error_number == ENOMEM) code = Errc::kResourceExhausted;
  return Error{code, fmt::format("{}: {}", what, std::generic_category().message(error_number))};
}

}  // namespace fairlead
