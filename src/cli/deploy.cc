#include <algorithm>
#include <filesystem>
#include <ostream>

#include "base/read_file.h"
#include "cli/author.h"
#include "cli/commands.h"
#include "cli/fastpod.h"
#include "cli/format.h"
#include "cli/payload.h"
#include "cli/profile_runs.h"
#include "cli/waiting.h"
#include "cli/zip_folder.h"
#include "model/autoscale_tag.h"
#include "model/egress_list.h"
#include "model/function.h"
#include "model/samples_tag.h"

namespace fairlead::cli {
namespace {

struct Options {
  std::string name;
  std::string manifest;  // a file, in place of all that follows
  std::string folder;    // one of the two
  std::string image;
  std::vector<std::string> entry_point;
  std::vector<std::string> command;
  std::optional<std::string> working_directory;
  std::optional<std::string> contract;
  std::vector<std::string> environment;  // KEY=VALUE
  std::vector<std::string> tags;         // key=value
  std::optional<int> gpu_memory_mib;
  std::optional<int> gpu_compute_percent;
  std::optional<int> gpu_request_percent;
  std::optional<int> gpu_limit_percent;
  std::optional<std::string> replicas;
  std::optional<int> objective_ms;
  std::string sample;  // file with a payload for trials; "": none
  bool yes = false;
  std::optional<std::string> egress;
  std::optional<double> weight;
  std::optional<int> timeout_seconds;
  std::optional<int> memory_mib;
  std::optional<int> reserved;
  std::optional<std::string> description;
  std::optional<std::string> handler;
  bool upload = false;
  bool in_place = false;
};

Result<Json> pairs(const std::vector<std::string>& texts, const std::string& flag) {
  Json map = Json::object();
  for (const std::string& text : texts) {
    std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return fail(Errc::kInvalidArgument, "{}: '{}' is not of the form KEY=VALUE", flag, text);
    }
    map[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return map;
}

// The node can call a kernel task with what it makes up.
bool is_kernel_task(const Options& options) {
  if (options.folder.empty()) return false;
  std::error_code error;
  const std::filesystem::path folder = options.folder;
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name, error); };
  return has("task.json") && !has("bootstrap") && !has("pipeline.json");
}

// Whether tags say already what a function gets, or how that is found.
bool is_settled(const Json& tags) {
  return std::ranges::any_of(tags.items(), [](const auto& tag) {
    return tag.key() == kAutoscaleTag || tag.key() == kSamplesTag || excludes_autoscale(tag.key());
  });
}

Result<Json> tags_of(const Options& options) {
  Result<Json> tags = pairs(options.tags, "--tag");
  if (!tags) return tags;
  if (options.gpu_memory_mib) (*tags)["gpu:memory-mib"] = std::to_string(*options.gpu_memory_mib);
  const auto set = [&tags](const char* tag, const std::optional<int>& value) {
    if (value) (*tags)[tag] = std::to_string(*value);
  };
  set("gpu:compute-percent", options.gpu_compute_percent);
  set("gpu:quota-request", options.gpu_request_percent);
  set("gpu:quota-limit", options.gpu_limit_percent);
  set("gpu:objective-ms", options.objective_ms);
  // The node would measure a kernel task by itself: it is told once the sample was used.
  if (options.objective_ms && !options.sample.empty() && !is_kernel_task(options)) (*tags)["gpu:autoscale"] = "true";
  if (options.replicas) (*tags)["gpu:replicas"] = *options.replicas;
  if (options.weight) (*tags)["gpu:weight"] = fmt::format("{}", *options.weight);
  if (options.contract) (*tags)[kContractTag] = *options.contract;
  if (options.egress) (*tags)[kEgressTag] = *options.egress;
  return tags;
}

// Only what was given: the node has defaults for a new function, and keeps the rest of an existing one.
Result<Json> configuration_of(const Options& options) {
  Json configuration = Json::object();
  if (options.timeout_seconds) configuration["Timeout"] = *options.timeout_seconds;
  if (options.memory_mib) configuration["MemorySize"] = *options.memory_mib;
  if (options.description) configuration["Description"] = *options.description;
  if (options.handler) configuration["Handler"] = *options.handler;
  Result<Json> environment = pairs(options.environment, "--env");
  if (!environment) return environment;
  if (!environment->empty()) configuration["Environment"] = {{"Variables", *environment}};
  Json image = Json::object();
  if (!options.entry_point.empty()) image["EntryPoint"] = options.entry_point;
  if (!options.command.empty()) image["Command"] = options.command;
  if (options.working_directory) image["WorkingDirectory"] = *options.working_directory;
  if (!image.empty()) configuration["ImageConfig"] = std::move(image);
  return configuration;
}

// A layout's folder as the node is to find it: absolute, however it was written.
std::string image_uri(const std::string& image) {
  constexpr std::string_view kLayout = "oci:";
  if (!image.starts_with(kLayout)) return image;
  const std::size_t tag = image.find(':', kLayout.size());
  std::error_code error;
  const std::string folder = image.substr(kLayout.size(), tag == std::string::npos ? tag : tag - kLayout.size());
  const std::filesystem::path absolute = std::filesystem::weakly_canonical(folder, error);
  if (error || folder.empty()) return image;
  return std::string(kLayout) + absolute.string() + (tag == std::string::npos ? "" : image.substr(tag));
}

Result<Json> code_of(Cli& cli, const Options& options) {
  if (!options.image.empty()) return Json{{"ImageUri", image_uri(options.image)}};
  if (options.in_place) return folder_in_place_as_code(cli.node(), options.folder);
  return folder_as_code(cli.node(), options.folder, options.upload);
}

Result<Json> create(NodeClient& node, const Options& options, const Json& code, const Json& configuration,
                    const Json& tags) {
  Json body{{"FunctionName", options.name}, {"Role", ""}, {"Code", code}, {"Tags", tags}};
  if (options.image.empty()) {
    body.update({{"Runtime", "provided.al2023"}, {"Handler", "bootstrap"}});
  } else {
    body["PackageType"] = "Image";
  }
  body.update(configuration);
  return node.call("POST", "/2015-03-31/functions", body);
}

Result<Json> update(NodeClient& node, const Options& options, const Json& code, const Json& configuration,
                    const Json& tags) {
  // Code last: the rest is checked before anything changes, a share may be refused, and the new code then starts with it.
  if (!tags.empty()) {
    Result<Json> tagged = node.call("POST", tags_path(options.name), Json{{"Tags", tags}});
    if (!tagged) return tagged;
  }
  if (!configuration.empty()) {
    Result<Json> changed = node.call("PUT", function_path(options.name, "/configuration"), configuration);
    if (!changed) return changed;
  }
  return node.call("PUT", function_path(options.name, "/code"), code);
}

void print_result(Cli& cli, const Options& options, const Json& function, bool created) {
  if (cli.json()) {
    cli.out() << function.dump(2) << "\n";
    return;
  }
  const std::string size = options.in_place        ? "in place"
                           : options.image.empty() ? format_bytes(function.value("CodeSize", 0.0))
                                                   : "image";
  cli.out() << fmt::format("{} {} ({}, sha256 {})\n", created ? "created" : "updated", options.name, size,
                           function.value("CodeSha256", ""));
  cli.err() << fmt::format("next: fairlead invoke {0} -d '{{}}'   fairlead logs {0} -f   fairlead top\n", options.name);
}

Status check_package(const Options& options) {
  if (!options.image.empty()) {
    const auto reference = parse_image_reference("--image", image_uri(options.image));
    return reference ? Status() : Status(fail(reference.error()));
  }
  if (options.folder.empty()) {
    return fail(Errc::kInvalidArgument, "FOLDER or --image is missing: what is to be deployed?");
  }
  return check_function_folder(options.folder);
}

bool is_profiled(Cli& cli, const std::string& name, const std::string& code) {
  const Result<Json> known = cli.node().call("GET", native_path(name, "/profile"));
  if (!known) return false;
  for (const Json& profile : known->value("profiles", Json::array())) {
    if (profile.value("code_sha256", "") == code) return true;
  }
  return false;
}

// Of a function that is not there yet: none.
Json tags_on_node(Cli& cli, const std::string& function) {
  const Result<Json> known = cli.node().call("GET", tags_path(function));
  return known ? known->value("Tags", Json::object()) : Json::object();
}

// Measured where nothing is known of this code; the node does the rest. `tags`: of the function, as it is now.
int find_size(Cli& cli, const Options& options, const std::string& code, const Json& tags) {
  if (options.sample.empty() && is_settled(tags)) {
    const bool is_scaled = tags.contains(kAutoscaleTag) || tags.contains(kSamplesTag);
    if (is_scaled) cli.err() << fmt::format("next: fairlead autoscale {} --explain\n", options.name);
    return kOk;
  }
  if (options.sample.empty()) {
    cli.err() << fmt::format(
        "no --sample: {0} is not measured and runs best effort; its objective counts for policies with deadlines "
        "alone. "
        "Deploy it with --sample FILE, a payload, and the node finds its share of a GPU\n",
        options.name);
    return kOk;
  }
  if (!is_profiled(cli, options.name, code)) {
    auto payload = read_payload({.file = options.sample}, cli.in(), kMaxSyncPayloadBytes);
    if (!payload) return cli.report(payload.error());
    if (!agrees_to_calls(cli, options.name, Payloads::kOfAuthor, Experiment::kRectangles, options.yes)) {
      cli.err() << fmt::format(
          "nothing was measured: {0} runs best effort until fairlead profile {0} --sample {1} --yes\n", options.name,
          options.sample);
      return kOk;
    }
    const auto profile = run_experiment(cli, {.function = options.name, .payload = *std::move(payload)});
    if (!profile) return cli.report(profile.error());
  }
  if (is_kernel_task(options)) {
    const Json scaled{{"Tags", {{std::string(kAutoscaleTag), "true"}}}};
    if (const Result<Json> tagged = cli.node().call("POST", tags_path(options.name), scaled); !tagged) {
      return cli.report(tagged.error());
    }
  }
  cli.err() << fmt::format("next: fairlead describe {0}   fairlead autoscale {0} --explain\n", options.name);
  return kOk;
}

// What a file in Python says of its function stands where the command line says nothing.
Json with_what_is_declared(Json declared, const Json& given) {
  declared.update(given);
  return declared;
}

int deploy_folder(Cli& cli, const Options& options, const Json& declared_configuration, const Json& declared_tags) {
  if (Status status = validate_function_name(options.name); !status) return cli.report(status.error());
  if (Status status = check_package(options); !status) return cli.report(status.error());
  Result<Json> configuration = configuration_of(options);
  if (!configuration) return cli.report(configuration.error());
  Result<Json> tags = tags_of(options);
  if (!tags) return cli.report(tags.error());
  configuration = with_what_is_declared(declared_configuration, *configuration);
  tags = with_what_is_declared(declared_tags, *tags);
  Json all_tags = options.objective_ms ? tags_on_node(cli, options.name) : Json::object();
  all_tags.update(*tags);
  const bool is_asked =
      options.objective_ms && options.sample.empty() && is_kernel_task(options) && !is_settled(all_tags);
  const bool is_measured =
      is_asked && agrees_to_calls(cli, options.name, Payloads::kMadeUp, Experiment::kRectangles, options.yes);
  if (is_measured) (*tags)[std::string(kAutoscaleTag)] = "true";
  bool exists = false;
  Result<Json> function = [&]() -> Result<Json> {
    const Waiting waiting(cli, options.image.empty() ? "deploying " + options.folder : "pulling " + options.image);
    Result<Json> code = code_of(cli, options);
    if (!code) return code;
    Result<Json> made = create(cli.node(), options, *code, *configuration, *tags);
    exists = !made && made.error().code == Errc::kConflict;
    if (!exists) return made;
    Result<Json> updated = update(cli.node(), options, *code, *configuration, *tags);
    // Another tenant has the name: taken says more than not found. A folder or an image may be missing, too.
    const bool is_of_another = !updated && updated.error().code == Errc::kNotFound &&
                               updated.error().message.starts_with("Function not found");
    return is_of_another ? made : updated;
  }();
  if (!function) return cli.report(function.error());
  if (options.reserved) {
    const std::string path = "/2017-10-31/functions/" + net::percent_encode(options.name) + "/concurrency";
    Result<Json> reserved = cli.node().call("PUT", path, Json{{"ReservedConcurrentExecutions", *options.reserved}});
    if (!reserved) return cli.report(reserved.error());
  }
  print_result(cli, options, *function, !exists);
  if (is_asked) {
    cli.err() << (is_measured
                      ? fmt::format(
                            "the node measures {0}, unless it did so of this code before, and finds its share of a "
                            "GPU\nnext: fairlead autoscale {0} --explain\n",
                            options.name)
                      : fmt::format("nothing was measured: {} runs best effort until it is deployed with --yes\n",
                                    options.name));
    return kOk;
  }
  return options.objective_ms ? find_size(cli, options, function->value("CodeSha256", ""), all_tags) : kOk;
}

// As faas-cli does: a function that is not there is created.
int deploy_manifest(Cli& cli, const std::string& file) {
  const auto yaml = read_whole_file(file);
  if (!yaml) return cli.report(yaml.error());
  const auto deployments = deployments_of(*yaml);
  if (!deployments) return cli.report({deployments.error().code, file + ": " + deployments.error().message});
  Json all = Json::array();
  for (const Json& deployment : *deployments) {
    const Waiting waiting(cli, "deploying " + deployment.value("service", ""));
    Result<Json> said = cli.node().call("PUT", "/system/functions", deployment);
    const bool is_new = !said && said.error().code == Errc::kNotFound;
    if (is_new) said = cli.node().call("POST", "/system/functions", deployment);
    if (!said) return cli.report(said.error());
    const char* const done = is_new ? "created" : "updated";
    all.push_back({{"function", deployment.value("service", "")}, {"done", done}});
    if (!cli.json()) cli.out() << fmt::format("{} {}\n", done, deployment.value("service", ""));
  }
  if (cli.json()) cli.out() << all.dump(2) << "\n";
  return kOk;
}

int run_deploy(Cli& cli, Options options) {
  if (!options.manifest.empty()) return deploy_manifest(cli, options.manifest);
  if (options.name.empty()) {
    return cli.report({Errc::kInvalidArgument, "NAME or --file is missing: what is to be deployed?"});
  }
  const std::string& what = options.folder.empty() ? options.name : options.folder;
  if (!options.image.empty() || !is_python_function(what)) {
    return deploy_folder(cli, options, Json::object(), Json::object());
  }
  if (options.in_place && !cli.node().may_name_folders()) {
    return cli.report(folder_in_place_as_code(cli.node(), what).error());
  }
  Result<BuiltFunction> built = BuiltFunction::build(what, options.folder.empty() ? "" : options.name);
  if (!built) return cli.report(built.error());
  if (options.in_place) {
    if (Status kept = built->keep_for(cli.endpoint()); !kept) return cli.report(kept.error());
  }
  options.name = built->name();
  options.folder = built->folder();
  const int done = deploy_folder(cli, options, built->configuration(), built->tags());
  if (options.in_place && done == kOk) built->remove_older();
  return done;
}

void add_share_options(CLI::App& command, Options& options) {
  const auto add = [&](CLI::Option* option) { option->group("Share of a GPU"); };
  add(command
          .add_option("--gpu-request", options.gpu_request_percent,
                      "Per cent of its GPU's time that an instance is promised [0]")
          ->check(CLI::Range(0, 100)));
  add(command
          .add_option("--gpu-limit", options.gpu_limit_percent,
                      "Per cent of the time that an instance gets at most [100]")
          ->check(CLI::Range(1, 100)));
  add(command
          .add_option("--gpu-compute", options.gpu_compute_percent,
                      "Per cent of the multiprocessors that an instance may use, under --sharing mps; of kernel tasks "
                      "with --task-isolation fence too [100]")
          ->check(CLI::Range(1, 100)));
  add(command
          .add_option("--gpu-memory", options.gpu_memory_mib, "MiB of device memory one instance is expected to hold")
          ->check(CLI::Range(1, 1 << 20)));
  add(command.add_option("--replicas", options.replicas,
                         "Instances: N, or MIN that are kept started and MAX at most, MIN:MAX"));
}

void add_image_options(CLI::App& command, Options& options, CLI::Option* folder) {
  CLI::Option* image =
      command
          .add_option("--image", options.image,
                      "OCI image in place of a folder: oci:DIR:TAG, docker://HOST/NAME:TAG or NAME:TAG")
          ->excludes(folder);
  const auto add = [&](auto* option) { option->needs(image)->group("Image"); };
  add(command
          .add_option("--entrypoint", options.entry_point, "Word of the entry point, in place of the image's; repeat")
          ->allow_extra_args(false));
  add(command.add_option("--command", options.command, "Word of the command, in place of the image's; repeat")
          ->allow_extra_args(false));
  add(command.add_option("--workdir", options.working_directory, "Working directory, in place of the image's"));
  add(command
          .add_option("--contract", options.contract,
                      "How it takes invocations: lambda (Runtime API), http ($PORT) or openfaas ($PORT, and "
                      "/_/health)")
          ->check(CLI::IsMember({"lambda", "http", "openfaas"})));
  image->group("Image");
}

}  // namespace

void add_deploy(Cli& cli) {
  auto options = std::make_shared<Options>();
  CLI::App& command = cli.add_command(
      "deploy", "Create a function from a folder or an image, or update it; on update, what is not given stays",
      [&cli, options] { return run_deploy(cli, *options); });
  CLI::Option* name = command.add_option(
      "NAME", options->name,
      "Function: letters, digits, - and _, at most 64. Or what to deploy, where a file in Python names it: "
      "FILE.py, "
      "FILE.py:HANDLER, or a folder with a handler.py");
  command.add_option("--file,-f", options->manifest, "Manifests of FaST-GShare (FaSTPod, YAML), in place of all else")
      ->excludes(name);
  CLI::Option* folder =
      command.add_option("FOLDER", options->folder,
                         "Folder with an executable 'bootstrap' at its top level, or with a "
                         "'task.json' (a kernel task) or a 'pipeline.json', or with a 'handler.py'; or FILE.py");
  add_image_options(command, *options, folder);
  command.add_option("--env", options->environment, "Environment variable KEY=VALUE; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--tag", options->tags, "Tag key=value; may be repeated")->allow_extra_args(false);
  add_share_options(command, *options);
  const auto objective = command.add_option(
      "--objective-ms", options->objective_ms,
      "Wanted from arrival to answer; with --sample, and for kernel tasks without, the node finds share "
      "and replicas");
  objective->check(CLI::Range(1, 3'600'000))->group("Share of a GPU");
  command
      .add_option("--sample", options->sample, "File with a payload to measure the function with; -: standard input")
      ->needs(objective)
      ->group("Share of a GPU");
  command.add_flag("--yes,-y", options->yes, "Measure without asking")->needs(objective)->group("Share of a GPU");
  command.add_option("--weight", options->weight, "Fair share relative to other functions [1]")
      ->check(CLI::Range(0.01, 100.0));
  command
      .add_option("--egress", options->egress,
                  "Where its own connections may lead: none, all, or NAME, *.DOMAIN, ADDRESS, ADDRESS/BITS, each with "
                  ":PORT or without, with commas; of what its tenant may reach (serve --egress) [none]")
      ->type_name("LIST");
  command.add_option("--timeout", options->timeout_seconds, "Seconds one invocation may take")
      ->check(CLI::Range(kMinTimeoutSeconds, kMaxTimeoutSeconds));
  command.add_option("--memory", options->memory_mib, "MiB of host memory one instance may use")
      ->check(CLI::Range(kMinMemoryMib, kMaxMemoryMib));
  command.add_option("--reserved", options->reserved, "Most invocations that run at the same time; 0 refuses all")
      ->check(CLI::Range(0, 100'000));
  command.add_option("--description", options->description, "What the function does");
  command.add_option("--handler", options->handler, "Passed to the function as _HANDLER [bootstrap]");
  CLI::Option* const upload =
      command.add_flag("--upload", options->upload, "Send an archive even to a node on this machine");
  command
      .add_flag("--in-place", options->in_place,
                "Run the folder where it lies, without a copy and of any size; what changes in it is seen")
      ->excludes(upload)
      ->excludes("--image");
}

}  // namespace fairlead::cli
