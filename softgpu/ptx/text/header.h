// What PTX text says of itself before any code: the version of the language and the architecture it was written for.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace softgpu::ptx {

struct Header {
  int version = 0;       // 75 for `.version 7.5`
  int architecture = 0;  // 90 for `.target sm_90a`
  char variant = '\0';   // 'a': runs on exactly this architecture; 'f': on this major version from here on; else 0
};

// The header, or nothing when the text does not begin with `.version` and `.target`. Reads no further.
std::optional<Header> read_header(std::string_view text);

// Whether code of this header runs on a device of `architecture` (75 for compute capability 7.5).
bool runs_on(const Header& header, int architecture);

// The variables declared with `.attribute(.managed)`: memory that the host shares. Views into the text.
std::vector<std::string_view> managed_variables(std::string_view text);

}  // namespace softgpu::ptx
