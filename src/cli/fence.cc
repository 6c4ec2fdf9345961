// `fairlead fence`: what address fencing does to a module, without a node.
#include "gpu/fence/fence.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>

#include "base/read_file.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "gpu/fence/verifier.h"

namespace fairlead::cli {
namespace {

struct FenceCommand {
  std::string in, out;
  std::uint64_t base = 0x700000000000, bytes = std::uint64_t{1} << 32;
};

Result<std::string> read_text(const std::string& path) {
  auto text = read_whole_file(path);
  if (!text) return fail(Errc::kNotFound, "{} cannot be read", path);
  return text;
}

int run_fence(Cli& cli, const FenceCommand& command) {
  const Result<std::string> ptx = read_text(command.in);
  if (!ptx) return cli.report(ptx.error());
  const fence::FenceOptions options{.base = command.base, .bytes = command.bytes};
  const auto fenced = fence::fence_ptx(*ptx, options);
  if (!fenced) return cli.report(fenced.error());
  const Status verified = fence::verify_fenced(fenced->ptx, options);
  if (!verified) return cli.report(verified.error());
  if (!command.out.empty()) {
    std::ofstream file(command.out);
    file << fenced->ptx;
    file.close();
    if (!file) return cli.report(Error{Errc::kIo, fmt::format("{} cannot be written", command.out)});
  }
  Table table({{"FUNCTION"}, {"INSTRUCTIONS"}, {"ACCESSES"}, {"ADDED"}});
  for (const fence::FunctionReport& function : fenced->functions) {
    table.add_row({function.name, std::to_string(function.instructions), std::to_string(function.accesses),
                   std::to_string(function.added)});
  }
  cli.out() << table.text();
  if (!fenced->variables.empty())
    cli.out() << fmt::format("{} bytes of variables in the range\n", fenced->variables.size());
  for (const std::string& note : fenced->notes) cli.out() << note << "\n";
  return kOk;
}

}  // namespace

void add_fence(Cli& cli) {
  auto command = std::make_shared<FenceCommand>();
  CLI::App& app = cli.add_command("fence", "Show what address fencing does to a PTX module",
                                  [&cli, command]() -> int { return run_fence(cli, *command); });
  app.add_option("file", command->in, "A module in PTX")->required();
  app.add_option("-o,--output", command->out, "Where the fenced module goes");
  app.add_option("--base", command->base, "Start of the tenant's range");
  app.add_option("--bytes", command->bytes, "Size of the tenant's range, a power of two");
}

}  // namespace fairlead::cli
