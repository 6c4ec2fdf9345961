#include "runtime/device_server/command_line.h"

namespace fairlead {
namespace {

using Options = DeviceServerOptions;
using Entry = Setting<Options>;

SettingType<Bytes> bytes() {
  const SettingType<std::uint64_t> size = size_in({});
  return {.form = size.form,
          .bound = size.bound,
          .read = [read = size.read](const std::string& text) -> Result<Bytes> {
            const auto count = read(text);
            if (!count) return fail(count.error());
            return Bytes(static_cast<std::int64_t>(*count));
          },
          .write = [](const Bytes& count) { return fmt::format("{}", count.count()); }};
}

SettingType<CacheEviction> eviction() {
  std::vector<std::pair<std::string, CacheEviction>> words;
  for (const CacheEviction kind : {CacheEviction::kSingleUse, CacheEviction::kLru, CacheEviction::kCost}) {
    words.emplace_back(cache_eviction_name(kind), kind);
  }
  return one_of(words);
}

}  // namespace

const SettingTable<DeviceServerOptions>& device_server_settings() {
  static const SettingTable<Options> all{
      Entry("gpu-library", &Options::library_dir, any_text("FOLDER", "a folder"), "Folder of libcuda.so.1"),
      Entry(
          "memory", [](Options& options) -> Bytes& { return options.cache.device; }, bytes(),
          "Device memory; 0: what is free at the start"),
      Entry(
          "host-memory", [](Options& options) -> Bytes& { return options.cache.host; }, bytes(), "Host tier"),
      Entry(
          "eviction", [](Options& options) -> CacheEviction& { return options.cache.eviction; }, eviction(),
          "What makes room first"),
      Entry("isolation", &Options::spaces,
            one_of<AddressSpaces>({{"process", AddressSpaces::kOne}, {"fence", AddressSpaces::kPerTenant}}),
            "What keeps tenants apart"),
      Entry("launching", &Options::launching,
            one_of<Launching>({{"graphs", Launching::kGraphs}, {"plain", Launching::kPlain}}),
            "How tasks of many kernels are launched"),
      Entry("cublas", &Options::cublas, any_text("auto|off|PATH", "auto, off or a file"),
            "What does matrix products of the built-in library"),
      Entry("trials", &Options::trials, yes_or_no(), "Load no module before the node has tried it"),
  };
  return all;
}

std::vector<std::string> device_server_arguments(const DeviceServerOptions& options) {
  std::vector<std::string> words;
  for (const Entry& setting : device_server_settings()) {
    const std::vector<std::string> value = setting.write(options);
    if (value.empty() || (setting.is_flag && value.front() == "false")) continue;
    words.push_back("--" + setting.name);
    if (!setting.is_flag) words.push_back(value.front());
  }
  return words;
}

}  // namespace fairlead
