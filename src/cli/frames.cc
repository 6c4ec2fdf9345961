#include "cli/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>

#include "cli/frame_pictures.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::optional<std::uint64_t> gpu;
  std::string output;
};

// The picture is of one device: the one that was named, or the only one.
Result<std::string> drawn(const Json& gpus, const std::string& file) {
  if (file.ends_with(".json")) return frames_trace(gpus);
  if (!file.ends_with(".svg")) {
    return fail(Errc::kInvalidArgument, "--output is {}; it must end in .svg (a picture) or .json (a trace)", file);
  }
  if (gpus.size() != 1) {
    return fail(Errc::kInvalidArgument, "a picture is of one device, and {} have frames: name one with --gpu",
                gpus.size());
  }
  return frames_svg(gpus.front());
}

int run(Cli& cli, const Options& options) {
  const Result<Json> answer = cli.node().call("GET", "/fairlead/v1/frames");
  if (!answer) return cli.report(answer.error());
  Json gpus = Json::array();
  for (const Json& gpu : answer->value("gpus", Json::array())) {
    if (!options.gpu || gpu.value("gpu", std::uint64_t{0}) == *options.gpu) gpus.push_back(gpu);
  }
  if (!options.output.empty() && !options.gpu && gpus.empty()) {
    return cli.report({Errc::kNotFound, "no GPU has frames: nobody has a quota (fairlead deploy --gpu-request)"});
  }
  if (options.gpu && gpus.empty()) {
    return cli.report({Errc::kNotFound, fmt::format("--gpu: GPU {} has no frames: nobody on it has a quota (fairlead "
                                                    "deploy --gpu-request), or there is no such GPU (fairlead status)",
                                                    *options.gpu)});
  }
  if (!options.output.empty()) {
    const Result<std::string> picture = drawn(gpus, options.output);
    if (!picture) return cli.report(picture.error());
    std::ofstream file(options.output, std::ios::trunc);
    file << *picture << std::flush;
    if (!file) return cli.report({Errc::kInvalidArgument, "--output: " + options.output + " cannot be written"});
  }
  cli.out() << (cli.json() ? gpus.dump(2) + "\n" : frames_text(gpus));
  return kOk;
}

}  // namespace

void add_frames(Cli& cli) {
  const auto options = std::make_shared<Options>();
  CLI::App& frames =
      cli.add_command("frames", "Show who put kernels on each GPU when, of GPUs where somebody has a quota",
                      [&cli, options] { return run(cli, *options); });
  frames.add_option("--gpu", options->gpu, "Only this GPU, by its number in fairlead status");
  frames.add_option("-o,--output", options->output,
                    "Also write this file: a picture (.svg), or a trace that ui.perfetto.dev opens (.json)");
}

}  // namespace fairlead::cli
