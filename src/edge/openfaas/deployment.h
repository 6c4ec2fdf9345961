// FunctionDeployment and FunctionStatus: the JSON in which OpenFaaS's clients say what a function is, and are told.
//
//   {"service": "f", "image": "ghcr.io/x/f:1", "namespace": "acme", "envVars": {"A": "b"}, "secrets": ["s1"],
//    "labels": {"com.openfaas.scale.min": "1"}, "annotations": {"faasshare/sm_partition": "12"}, "limits": {"memory": "256Mi"}}
//
// becomes the configuration of a function: MemorySize 256, the variables A and SECRET_S1, and the tags gpu:replicas = 1:1000,
// gpu:compute-percent = 12 and gpu:tenant = acme. What has no meaning for a node (labels, annotations, requests of processors) is kept
// in tags, so that it is told again as it was said.
//
// Source: reference fronts.md 3.1; FaST-GShare, Figure 4, for `faasshare/`. Plain functions, for any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "edge/node_service.h"
#include "model/function.h"

namespace fairlead::openfaas {

struct Deployment {
  std::string service;
  std::string space;      // the namespace; "": the usual one
  std::string image;      // a reference, as images.md has it
  FunctionConfig config;  // without its tenant
};

// kInvalidArgument names the field, the value and what it must be. What is read is a valid configuration.
Result<Deployment> read_deployment(const nlohmann::json& body);

// The variable in which a function finds a secret: "db-password" is in SECRET_DB_PASSWORD.
std::string secret_variable(std::string_view name);

// What a node knows of a function beside its record.
struct FunctionCounts {
  std::uint64_t invocations = 0;
  std::size_t replicas =
      1;  // that there are or should be; a function without an instance is ready to be called, and counts as 1
  std::size_t available = 1;  // of these, ready
  Bytes memory{0};            // on devices
};
FunctionCounts counts_of(const FunctionRecord& record, const FunctionStatus* status);

nlohmann::json status_json(const FunctionRecord& record, const FunctionCounts& counts, bool with_usage);

std::string rfc3339(std::int64_t epoch_ms);  // "2026-01-31T23:59:59.123Z"

}  // namespace fairlead::openfaas
