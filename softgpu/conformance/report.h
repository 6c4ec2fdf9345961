// What a run found, as a table for people and as JSON for tools/gpu-check.
#pragma once

#include <string>
#include <vector>

#include "softgpu/conformance/case.h"

namespace softgpu::conformance {

struct DeviceFacts {
  std::string name;
  int capability = 0;      // major * 10 + minor
  int driver_version = 0;  // 1000 * major + 10 * minor
  int devices = 0;
};

struct Entry {
  std::string name;  // field.case
  Bits bits = Bits::kSame;
  CaseResult result;
};

const char* text_of(Status status);

// One line of the table, without a line end.
std::string table_line(const Entry& entry);

// The whole run. False when the file cannot be written.
bool write_json(const std::string& path, const DeviceFacts& device, const std::vector<Entry>& entries);

}  // namespace softgpu::conformance
