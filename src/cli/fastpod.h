// Manifests of FaST-GShare: a FaSTPod says what a function's pods are and what part of a GPU each has. Source: the paper's Figure 4.
//
//   apiVersion: faasshare.com/v1
//   kind: FaSTPod
//   metadata: {name: fastsvc-rnnt, annotations: {faasshare/sm_partition: "12", faasshare/quota_limit: "0.8"}}
//   spec:
//     podSpec: {containers: [{image: xxxx/mlperf-faas-rnnt:latest, env: [{name: MODEL_NAME, value: rnnt}]}]}
//     replicas: 2
//
// becomes what OpenFaaS's API takes (POST /system/functions): image, envVars, annotations as they stand, and the annotation gpu:replicas
// for the replicas, all of which are kept. The node reads faasshare/ itself.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/node_client.h"

namespace fairlead::cli {

inline constexpr std::size_t kMostManifestBytes = 1 << 20;
inline constexpr std::size_t kMostManifests = 100;  // of a file

// One FunctionDeployment for each document of the file. kInvalidArgument names the document, the field and what it must be: another kind,
// no container or several, a variable that is no text.
Result<std::vector<Json>> deployments_of(std::string_view yaml);

}  // namespace fairlead::cli
