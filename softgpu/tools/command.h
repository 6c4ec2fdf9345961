// The commands of the tool `softgpu`: one function each, in a file of its own, and what they share.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/device/machine.h"
#include "softgpu/device/result.h"

namespace softgpu::tools {

// What follows the command's name on the command line.
using Arguments = std::span<const std::string>;

// A command returns the exit status: 0, or fail()'s.
int smi(Arguments arguments);
int profiles(Arguments arguments);
int reset(Arguments arguments);
int add_gpu(Arguments arguments);
int set_profile(Arguments arguments);
int fault(Arguments arguments);
int mps(Arguments arguments);
int time(Arguments arguments);
int mig(Arguments arguments);

// Explains on stderr; 1.
int fail(const std::string& message);

// Words, and options of the form `--name value` or, for a flag, `--name`.
struct CommandLine {
  std::vector<std::string> words;
  std::map<std::string, std::string, std::less<>> options;  // a flag's value is empty

  bool has(std::string_view name) const { return options.contains(name); }
};

// Error: an option that is neither in `valued` nor in `flags`, given twice, or without its value.
Result<CommandLine> parse_command_line(Arguments arguments, std::vector<std::string_view> valued,
                                       std::vector<std::string_view> flags = {});

// The device that --gpu names, 0 without it. Error: names the bounds.
Result<unsigned> gpu_of(const CommandLine& line, const Machine& machine);

// Whether any process uses the machine. False also when the table of clients is damaged.
bool has_clients(const Machine& machine);

}  // namespace softgpu::tools
