// fairlead new, fairlead dev: what python/fairlead/author does, under this program's name.
#include "cli/develop.h"

#include <memory>

#include "cli/author.h"

namespace fairlead::cli {
namespace {

struct NewOptions {
  std::string language = "python";
  std::string folder;
};

struct DevOptions {
  std::string what = ".";
  std::string name;
  bool removes = false;
  std::vector<std::string> deploy;  // arguments of `fairlead deploy`
};

int become(Cli& cli, const std::vector<std::string>& words, const std::string& endpoint) {
  const Result<int> failed = become_author(words, endpoint);
  return failed ? *failed : cli.report(failed.error());
}

int run_dev(Cli& cli, const DevOptions& options) {
  std::vector<std::string> words{"dev", options.what};
  if (!options.name.empty()) words.insert(words.end(), {"--name", options.name});
  if (options.removes) words.push_back("--remove");
  for (const std::string& word : options.deploy) words.push_back("--deploy=" + word);
  return become(cli, words, cli.endpoint());
}

}  // namespace

void add_new(Cli& cli) {
  auto options = std::make_shared<NewOptions>();
  CLI::App& command = cli.add_command("new", "Make a folder with a function to begin with", [&cli, options] {
    return become(cli, {"new", "--lang", options->language, "--", options->folder}, "");
  });
  command.add_option("--lang", options->language, "python, cpp or triton")
      ->check(CLI::IsMember({"python", "cpp", "triton"}))
      ->capture_default_str();
  command.add_option("NAME", options->folder, "Folder to make; its last part is the function's name")->required();
}

void add_dev(Cli& cli) {
  auto options = std::make_shared<DevOptions>();
  CLI::App& command = cli.add_command(
      "dev", "Deploy a function, deploy it again whenever its files change, and show what it writes, until Ctrl-C",
      [&cli, options] { return run_dev(cli, *options); });
  command.add_option("WHAT", options->what, "FILE.py, FILE.py:HANDLER, or a folder")->capture_default_str();
  command.add_option("--name", options->name, "Name of the function, in place of what its file says");
  command.add_flag("--remove", options->removes, "Remove the function at the end");
  command
      .add_option("--deploy", options->deploy,
                  "Argument of `fairlead deploy`, --deploy=--gpu-memory=512 for example; repeat")
      ->allow_extra_args(false);
}

}  // namespace fairlead::cli
