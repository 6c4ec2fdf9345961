// The answer of GET /fairlead/v1/status as text for people. Fields that the node does not send are shown as zero: a
// newer program may watch an older node.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fairlead::cli {

std::string summary_text(const nlohmann::json& status);  // three lines
std::string gpus_text(const nlohmann::json& status);     // a table, one row per GPU
std::string pipelines_text(
    const nlohmann::json& status);  // a row for each stage, and why they are where they are; "": there are none
// One line for each tenant; empty where the policy has none.
std::string tenants_text(const nlohmann::json& status);
// One line for each function that has a share, then one for each that lacks seats; empty where none has.
std::string shares_text(const nlohmann::json& status);
// Whose last instance did not get ready, a line each; "" when nobody's.
std::string start_failures_text(const nlohmann::json& status);
std::string functions_text(const nlohmann::json& status);  // a table, one row per function: the queues

// Of one entry of its `functions`: "5 device-warm, 2 host-warm, 1 cold" and where its device memory is.
std::string starts_text(const nlohmann::json& function);
std::string memory_text(const nlohmann::json& function);

}  // namespace fairlead::cli
