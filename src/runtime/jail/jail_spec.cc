#include "runtime/jail/jail_spec.h"

#include <nlohmann/json.hpp>

namespace fairlead {
namespace {

using nlohmann::json;

}  // namespace

std::string encode(const JailSpec& spec) {
  json binds = json::array();
  for (const MountBind& bind : spec.binds) binds.push_back({bind.source, bind.target, bind.writable});
  return json{{"root", spec.root_dir},
              {"ids", {spec.uid, spec.gid, spec.ids}},
              {"reads_all", spec.reads_all},
              {"binds", std::move(binds)},
              {"copies", spec.copies},
              {"bytes", {spec.memory.count(), spec.tmp.count(), spec.written.count()}},
              {"reserves_memory", spec.reserves_memory},
              {"processes", spec.processes},
              {"cpu", {spec.cpu.weight, spec.cpu.millicpus}},
              {"network", spec.has_network},
              {"registries", spec.registries},
              {"registry", spec.registry}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<JailSpec> decode_jail_spec(std::string_view text) {
  try {
    const json document = json::parse(text);
    JailSpec spec;
    document.at("root").get_to(spec.root_dir);
    const json& ids = document.at("ids");
    ids.at(0).get_to(spec.uid);
    ids.at(1).get_to(spec.gid);
    ids.at(2).get_to(spec.ids);
    document.at("reads_all").get_to(spec.reads_all);
    for (const json& bind : document.at("binds")) {
      spec.binds.push_back({bind.at(0).get<std::string>(), bind.at(1).get<std::string>(), bind.at(2).get<bool>()});
    }
    document.at("copies").get_to(spec.copies);
    const json& bytes = document.at("bytes");
    spec.memory = Bytes(bytes.at(0).get<std::int64_t>());
    spec.tmp = Bytes(bytes.at(1).get<std::int64_t>());
    spec.written = Bytes(bytes.at(2).get<std::int64_t>());
    document.at("reserves_memory").get_to(spec.reserves_memory);
    document.at("processes").get_to(spec.processes);
    spec.cpu = {document.at("cpu").at(0).get<std::uint64_t>(), document.at("cpu").at(1).get<std::uint64_t>()};
    document.at("network").get_to(spec.has_network);
    document.at("registries").get_to(spec.registries);
    document.at("registry").get_to(spec.registry);
    return spec;
  } catch (const json::exception& error) {
    return fail(Errc::kCorrupt, "the description of a jail is malformed: {}", error.what());
  }
}

std::vector<std::string> jail_command(const std::string& fairlead, const JailSpec& spec,
                                      const std::vector<std::string>& program) {
  std::vector<std::string> words{fairlead, "jail", "--spec", encode(spec), "--"};
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

}  // namespace fairlead
