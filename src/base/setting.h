// A setting, described once: its names, its type with its bounds, its default, what it does. A table of them (a vector) is all that
// command lines, files, variables, help, errors and documentation know of the options of a program.
//
//   Setting("pool", &Options::pool, whole_number(1, 1024), "Instances kept on one GPU").in("Scheduling").also("instances")
//
// Values come from several places, the one that counts most last. Each value is read wherever it stands: one that is out of
// its bounds is an error though another place would win over it, and no default ever replaces it.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/setting_types.h"
#include "base/spelling.h"

namespace fairlead {

// As somebody wrote it: `where` is "command line", "fairlead.toml:4", "FAIRLEAD_SERVE_POOL".
struct GivenValue {
  std::string text, where;
};
struct GivenSetting {
  std::string name;  // or another name of it
  std::vector<GivenValue> values;
};

template <typename Options>
struct Setting {
  // `member`: a pointer to the field, or a function from Options& to the field.
  template <typename Member, typename T>
  Setting(std::string its_name, Member member, SettingType<T> type, std::string what_it_does)
      : name(std::move(its_name)), help(std::move(what_it_does)), form(type.form), bound(type.bound) {
    is_flag = std::is_same_v<T, bool>;
    read = [member, read_one = type.read](Options& options, const std::string& text) -> Status {
      Result<T> value = read_one(text);
      if (!value) return fail(std::move(value.error()));
      std::invoke(member, options) = *std::move(value);
      return {};
    };
    write = [member, write_one = type.write](const Options& options) -> std::vector<std::string> {
      std::string text = write_one(std::invoke(member, const_cast<Options&>(options)));
      if (text.empty()) return {};
      return {std::move(text)};
    };
    clear = [](Options&) {};
    copy = [member](const Options& from, Options& to) {
      std::invoke(member, to) = std::invoke(member, const_cast<Options&>(from));
    };
  }

  // A list: each value is added with `add`, which may refuse it.
  template <typename T>
  static Setting list(std::string name, std::vector<T> Options::*member, SettingType<T> type, std::string help,
                      std::function<Status(std::vector<T>&, T)> add) {
    Setting setting;
    setting.name = std::move(name);
    setting.help = std::move(help);
    setting.form = type.form;
    setting.bound = type.bound;
    setting.is_list = true;
    setting.clear = [member](Options& options) { (options.*member).clear(); };
    setting.read = [member, add, read_one = type.read](Options& options, const std::string& text) -> Status {
      Result<T> value = read_one(text);
      if (!value) return fail(std::move(value.error()));
      return add(options.*member, *std::move(value));
    };
    setting.write = [member, write_one = type.write](const Options& options) {
      std::vector<std::string> texts;
      for (const T& value : options.*member) texts.push_back(write_one(value));
      return texts;
    };
    setting.copy = [member](const Options& from, Options& to) { to.*member = from.*member; };
    return setting;
  }

  Setting in(std::string group_name) && { return group = std::move(group_name), std::move(*this); }
  Setting also(std::string other_name) && { return aliases.push_back(std::move(other_name)), std::move(*this); }
  // What the default is where it depends on the machine or on other settings.
  Setting by_default(std::string words) && { return default_words = std::move(words), std::move(*this); }
  // It can change while the program runs: always, or from one set of options to another.
  Setting live() && {
    return live_if([](const Options&, const Options&) { return true; }), std::move(*this);
  }
  Setting live_when(std::function<bool(const Options&, const Options&)> can, std::string words) && {
    live_words = std::move(words);
    return live_if(std::move(can)), std::move(*this);
  }

  bool is_called(const std::string& word) const {
    return word == name || std::find(aliases.begin(), aliases.end(), word) != aliases.end();
  }
  std::string default_text() const {
    if (!default_words.empty()) return default_words;
    std::string joined;
    for (const std::string& text : write(Options())) joined += (joined.empty() ? "" : ", ") + text;
    return joined;
  }

  std::string name, help, group;
  std::vector<std::string> aliases;  // names that it had, or has elsewhere: they work everywhere
  std::string form, bound;           // SettingType
  std::string default_words, live_words;
  bool is_flag = false, is_list = false;
  std::function<void(Options&)> clear;                            // of a list, before its first value
  std::function<Status(Options&, const std::string&)> read;       // one value
  std::function<std::vector<std::string>(const Options&)> write;  // nothing: no value, its default words say more
  std::function<void(const Options& from, Options& to)> copy;     // this setting alone
  std::function<bool(const Options& from, const Options& to)> can_live;  // empty: it needs a restart

 private:
  Setting() = default;
  void live_if(std::function<bool(const Options&, const Options&)> can) { can_live = std::move(can); }
};

template <typename Options>
using SettingTable = std::vector<Setting<Options>>;

template <typename Options>
const Setting<Options>* find_setting(const SettingTable<Options>& table, const std::string& name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& one) { return one.is_called(name); });
  return found == table.end() ? nullptr : &*found;
}

template <typename Options>
std::vector<std::string> names_of(const SettingTable<Options>& table) {
  std::vector<std::string> names;
  for (const Setting<Options>& setting : table) {
    names.push_back(setting.name);
    names.insert(names.end(), setting.aliases.begin(), setting.aliases.end());
  }
  return names;
}

// Reads what one place says of a setting over `options`. The error names the setting, the value, where it stands, what it may
// be, and what to do.
template <typename Options>
Status apply(const Setting<Options>& setting, const GivenSetting& given, Options& options) {
  if (!setting.is_list && given.values.size() != 1) {
    return fail(Errc::kInvalidArgument, "--{} is given {} times ({}); give it once", given.name, given.values.size(),
                given.values.empty() ? "an empty list" : given.values.back().where);
  }
  setting.clear(options);
  for (const GivenValue& value : given.values) {
    if (Status read = setting.read(options, value.text); !read) {
      const std::string usual = setting.default_text();
      return fail(read.error().code, "--{} is '{}' ({}): {}; correct it, or leave it out{}", given.name, value.text,
                  value.where, read.error().message, usual.empty() ? "" : " for the default, " + usual);
    }
  }
  return {};
}

template <typename Options>
struct SettledSettings {
  Options options;
  std::map<std::string, std::string> origins;  // name -> where its value stands; not there: it is the default
};

// `places`: what each of them says, the one that counts most last. A name that is none is an error of whoever reads the place.
template <typename Options>
Result<SettledSettings<Options>> settle(const SettingTable<Options>& table,
                                        const std::vector<std::vector<GivenSetting>>& places,
                                        Options defaults = Options()) {
  SettledSettings<Options> settled{std::move(defaults), {}};
  for (const std::vector<GivenSetting>& place : places) {
    std::map<std::string, std::string> seen;  // in this place: name -> as it was written
    for (const GivenSetting& given : place) {
      const Setting<Options>* setting = find_setting(table, given.name);
      if (setting == nullptr) {
        return fail(Errc::kInvalidArgument, "--{} is no setting{}", given.name,
                    did_you_mean(given.name, names_of(table)));
      }
      const auto [first, is_new] = seen.emplace(setting->name, given.name);
      if (!is_new) {
        return fail(Errc::kInvalidArgument, "--{} and --{} are names of one setting ({}); give it once", first->second,
                    given.name, given.values.empty() ? "an empty list" : given.values.front().where);
      }
      if (Status applied = apply(*setting, given, settled.options); !applied) return fail(applied.error());
      settled.origins[setting->name] = given.values.empty() ? "an empty list" : given.values.front().where;
    }
  }
  return settled;
}

}  // namespace fairlead
