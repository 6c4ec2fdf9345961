// The result of an operation that can fail for reasons outside the program: a value, or a sentence for the user.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace softgpu {

template <typename T>
using Result = tl::expected<T, std::string>;
using Status = tl::expected<void, std::string>;

inline tl::unexpected<std::string> failure(std::string message) {
  return tl::unexpected<std::string>(std::move(message));
}

}  // namespace softgpu
