#include "store/postgres/kept_answers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/read_file.h"
#include "base/replace_file.h"

namespace fairlead::postgres {
namespace {

constexpr const char* kFile = "store-answers";
using Json = nlohmann::json;

Statements questions() {
  Statements all{{kAskRevision, {}}, {kAskFunctions, {}}, {kAskEventConfigs, {}}, {kAskProfiles, {}}};
  for (Statement& statement : load_published("")) all.push_back(std::move(statement));
  return all;
}

Json to_json(const Rows& rows) {
  Json table = Json::array();
  for (const auto& row : rows.cells()) {
    Json cells = Json::array();
    for (const auto& cell : row) cells.push_back(cell ? Json::binary({cell->begin(), cell->end()}) : Json());
    table.push_back(std::move(cells));
  }
  return table;
}

// Throws where it is no such table.
Rows from_json(const Json& table) {
  Rows::Cells all;
  for (const Json& row : table) {
    auto& cells = all.emplace_back();
    for (const Json& cell : row) {
      if (cell.is_null()) {
        cells.emplace_back();
        continue;
      }
      const auto& bytes = cell.get_binary();
      cells.emplace_back(std::string(bytes.begin(), bytes.end()));
    }
  }
  return Rows::of(all);
}

}  // namespace

Status keep_answers(const std::string& state_dir, const Target& target, Connection& connection) {
  const Statements asked = questions();
  const auto answers = connection.transact(asked);
  if (!answers) return fail(answers.error());
  Json file = {{"store", target.url}, {"answers", Json::object()}};
  for (std::size_t i = 0; i < asked.size(); ++i) file["answers"][asked[i].sql] = to_json((*answers)[i]);
  const auto bytes = Json::to_msgpack(file);
  return replace_file(state_dir, kFile, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<KeptAnswers> kept_answers(const std::string& state_dir, const Target& target) {
  const auto bytes = read_whole_file(state_dir + "/" + kFile);
  if (!bytes) return fail(Errc::kNotFound, "no answers of {} are kept in {}", target.label, state_dir);
  try {
    const Json file = Json::from_msgpack(*bytes);
    if (file.at("store").get<std::string>() != target.url) {
      return fail(Errc::kNotFound, "what is kept in {} is another store's, not that of {}", state_dir, target.label);
    }
    KeptAnswers kept;
    for (const Statement& one : questions()) kept.emplace(one.sql, from_json(file.at("answers").at(one.sql)));
    return kept;
  } catch (const Json::exception&) {
    return fail(Errc::kCorrupt, "{}/{} is no file of answers of {}", state_dir, kFile, target.label);
  }
}

}  // namespace fairlead::postgres
