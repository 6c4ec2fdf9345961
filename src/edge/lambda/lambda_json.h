// Function records and the JSON of AWS Lambda's control API: the field names and values its SDKs, waiters and tools
// expect.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "edge/json_body.h"
#include "edge/node_service.h"
#include "model/function.h"

namespace fairlead {

// FunctionConfiguration: what Create, Update, GetFunctionConfiguration and ListFunctions return.
nlohmann::json configuration_json(const FunctionRecord& record);

// GetFunction's answer: configuration, code, tags, concurrency.
nlohmann::json function_json(const FunctionRecord& record);

// Fields that ask for what a node does not have (layers, file systems, versions, another architecture) are
// kInvalidArgument. Fields without meaning here (VpcConfig, KMSKeyArn, TracingConfig, ...) are accepted and ignored.
Status check_supported(const nlohmann::json& body);

// Applies the configuration fields of a CreateFunction or UpdateFunctionConfiguration body: what is absent stays.
// Includes check_supported(); bounds are the node's to check.
Status apply_configuration(const nlohmann::json& body, FunctionConfig& config);

// PackageType of a CreateFunction body: Zip when absent.
Result<PackageType> read_package_type(const nlohmann::json& body);

// Code of CreateFunction (`body` is its Code object, `path` "Code.") or UpdateFunctionCode (`body` is all of it): ImageUri
// for an image, else ZipFile, or Folder. Folders of the node's machine, also as an image's layout, only when
// `may_name_paths`.
Result<CodeSource> read_code(const nlohmann::json& body, const std::string& path, PackageType type,
                             bool may_name_paths);

std::string lambda_timestamp(std::int64_t epoch_ms);  // "2026-01-31T23:59:59.123+0000"

}  // namespace fairlead
