// The answer of GET /fairlead/v1/status as text for people. Fields that the node does not send are shown as zero: a
// newer program may watch an older node.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fairlead::cli {

std::string summary_text(const nlohmann::json& status);    // one or two lines
std::string gpus_text(const nlohmann::json& status);       // a table, one row per GPU
std::string functions_text(const nlohmann::json& status);  // a table, one row per function: the queues

}  // namespace fairlead::cli
