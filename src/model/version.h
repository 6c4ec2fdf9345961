// Versions and aliases of a function, as AWS Lambda has them.
//
//   $LATEST ──publish──> 1, 2, 3, ...           what a version is never changes: its code, and its configuration
//   alias "live" ──> 3 (90 %), 4 (10 %)         what an alias leads to does
//
// Example: `live` leads to 3, and 10 % of its calls to 4. The call with the request id R goes to 4 where R's hash is in the last
// tenth of all hashes: the same id goes to the same version, everywhere and always.
//
// Plain values, pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fairlead {

inline constexpr std::size_t kMaxVersions = 100;  // of a function
inline constexpr std::size_t kMaxAliases = 100;   // of a function
inline constexpr std::size_t kMaxAliasNameLength = 128;
inline constexpr std::string_view kLatestVersion = "$LATEST";

struct FunctionAlias {
  std::string name;
  std::uint64_t version = 0;  // 0: $LATEST
  std::string description;
  std::map<std::uint64_t, double> weights;  // the parts of its calls that go to another version, above 0 to 1
  std::string revision_id;                  // changes with every update

  bool operator==(const FunctionAlias&) const = default;
};

// kInvalidArgument names the field, the value and the bound.
Status validate_alias(const FunctionAlias& alias);

// The version that the call with this request id goes to.
std::uint64_t choose_version(const FunctionAlias& alias, std::string_view request_id);

// A function, and which of its versions. The qualifier is "" where none is named.
struct QualifiedName {
  std::string name;
  std::string qualifier;
};
// As function_name_from(), with a qualifier: "name:3", "arn:...:name:live".
Result<QualifiedName> qualified_name_from(const std::string& name_or_arn);
// "$LATEST", a number without leading zeros or an alias' name.
Status validate_qualifier(std::string_view qualifier);

std::string version_name(std::uint64_t version);                              // "$LATEST", "3"
std::uint64_t version_number(std::string_view qualifier);                     // of "3"; 0: it is no number
std::string version_arn(const std::string& function, std::uint64_t version);  // of $LATEST without a qualifier

}  // namespace fairlead
