// What a harness of libFuzzer begins with, made by code where a file of it would be binary or would have to be kept in step.
//
//   std::vector<std::string> fairlead::fuzz_seeds() { return {encode(order), encode(note)}; }
//
// Include it once, in a harness: the seeds are written into its first folder of inputs before it runs.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fairlead {

std::vector<std::string> fuzz_seeds();

}  // namespace fairlead

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  for (int i = 1; i < *count; ++i) {
    const std::filesystem::path folder((*arguments)[i]);
    if (!std::filesystem::is_directory(folder)) continue;
    const std::vector<std::string> seeds = fairlead::fuzz_seeds();
    for (std::size_t seed = 0; seed < seeds.size(); ++seed) {
      std::ofstream(folder / ("seed-" + std::to_string(seed)), std::ios::binary) << seeds[seed];
    }
    break;
  }
  return 0;
}
