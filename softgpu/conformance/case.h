// A case: one kernel or one rule of the driver, checked against what CUDA promises.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace softgpu::conformance {

class Test;

// Whether CUDA promises the same bits on every device and in every order of blocks. It does not where floating-point
// atomics meet in any order, or where an .approx instruction is involved: then only the tolerance holds.
enum class Bits { kSame, kFree };

struct Case {
  const char* name;
  const char* kernels;  // the stem of a file in kernels/, or null for a case that loads none
  void (*run)(Test&);
  Bits bits = Bits::kSame;
  int capability = 70;    // the least compute capability, major * 10 + minor
  bool isolated = false;  // runs in a process of its own: it leaves its context unusable
};

// All cases of a field. A field is a file in cases/.
struct Field {
  const char* name;
  std::span<const Case> cases;
};

// Every field, in the order of the report.
std::span<const Field> all_fields();

// The PTX of kernels/<stem>.cu or .ptx, or null.
const char* ptx_of(const std::string& stem);

enum class Status {
  kPass,
  kFail,     // a wrong result, an unexpected error code
  kRefused,  // the driver said that it does not support this
  kSkipped,  // the device is too old for it or lacks it
};

struct CaseResult {
  Status status = Status::kPass;
  std::string detail;        // what failed, was refused or skipped
  double max_error = 0;      // the largest |got - want| / max(1, |want|) of inexact comparisons
  std::uint64_t digest = 0;  // of the bits of all results; 0 when none were compared
  double milliseconds = 0;   // host time of the case
  std::vector<std::pair<std::string, std::string>> observed;  // what the driver reported: (what, value)
};

}  // namespace softgpu::conformance
