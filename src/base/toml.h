// TOML that somebody wrote, read by toml++: a table, or an error that names the line. It never ends the program.
//
// Threads: any.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead {

// toml++ asserts of some texts that are no TOML, "[=" among them, in place of refusing them.
struct TomlAssertion : std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace fairlead

#define TOML_ASSERT(expr) ((expr) ? void() : throw ::fairlead::TomlAssertion(#expr))
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate"  // where toml++ asserts in what may not throw, the program ends as before
#endif
#include <toml++/toml.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace fairlead {

// kInvalidArgument: "ORIGIN:LINE: what is wrong there".
inline Result<toml::table> parse_toml(std::string_view text, const std::string& origin) {
  try {
    return toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return fail(Errc::kInvalidArgument, "{}:{}: {}", origin, error.source().begin.line, error.description());
  } catch (const TomlAssertion&) {
    return fail(Errc::kInvalidArgument,
                "{} is no TOML: a key or a table's name is missing or has a character that none may have", origin);
  }
}

}  // namespace fairlead
