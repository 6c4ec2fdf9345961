// Which instances are warm, where each is, what it takes, until when it is kept and how it is pinned: from GET
// /fairlead/v1/status and /fairlead/v1/warmth, whose fields may be missing or of another type (an older node).
//
//   FUNCTION  TENANT   INSTANCE  WHERE    DEVICE     HOST  KEPT     PINNED
//   chat      default         7  device  5.0 GiB      0 B  9m 40s   device
//   hello     default         -  cold          -        -  -        -
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fairlead::cli {

// {"functions": [{"function", "tenant", "instances": [{"id", "gpu", "state", "where", "device_bytes", "host_bytes", "seated", "pinned",
// "over_pin_bound", "kept_seconds"}]}], "device_bytes", "host_bytes"}. One without instances is cold.
nlohmann::json warmth_of(const nlohmann::json& status);
std::string warmth_text(const nlohmann::json& status);

// The status with what GET /fairlead/v1/warmth says of each instance in it (pinned, over_pin_bound, kept_seconds), by id.
nlohmann::json with_holds(nlohmann::json status, const nlohmann::json& warmth);

// Of one instance of the status, with_holds(): "always" of one in a seat, "9m 40s", "-" where nobody said.
std::string kept_text(const nlohmann::json& instance);
std::string pinned_text(const nlohmann::json& instance);  // "device", "none: pins take all they may (--pin-memory)"

}  // namespace fairlead::cli
