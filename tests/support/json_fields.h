// The fields of a JSON document beside those that its documentation lists.
//
// The documentation lists a field a line, as the comments of the public headers do:
//
//   "version"                    integer: 1
//   "buckets[].bytes_sent"       integer: to all peers
//   "end_seconds"                number or null
//   "tables[].min_columns"       optional integer
//   "parameters[]"               as "layers[]": with the same fields
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace shardrec::test {

struct ListedField {
  std::string type;  // "integer", "number", "text", "boolean", "array of texts" and so on
  bool may_be_null = false;
  bool optional = false;
};
using ListedFields = std::map<std::string, ListedField>;

inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The comment in front of a function's declaration.
inline std::string comment_of(const std::string& header, const std::string& function) {
  size_t declared = header.find(" " + function + "(");
  if (declared == std::string::npos) declared = header.find("\n" + function + "(");
  EXPECT_NE(declared, std::string::npos) << function;
  const size_t begin = header.rfind("/*", declared);
  return header.substr(begin, header.find("*/", begin) - begin);
}

inline ListedFields listed_fields(const std::string& documentation) {
  static const std::regex kLine(
      R"re(^[ *]*((?:"[^"]+"(?:, )?)+)\s+(optional,? )?(?:(integer|number|text|boolean|array of \w+)( or null)?|as ("[^"]+")).*$)re");
  static const std::regex kPath(R"re("([^"]+)")re");
  ListedFields fields;
  std::istringstream lines(documentation);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, match, kLine)) continue;
    const std::string paths = match[1];
    const std::string like = match[5];
    for (std::sregex_iterator path(paths.begin(), paths.end(), kPath), end; path != end; ++path) {
      const std::string name = (*path)[1];
      if (like.empty()) {
        fields[name] = {match[3], match[4].matched, match[2].matched};
        continue;
      }
      const std::string prefix = like.substr(1, like.size() - 2) + ".";
      const ListedFields before = fields;
      for (const auto& [other, field] : before) {
        if (!other.starts_with(prefix)) continue;
        ListedField& copy = fields[name + "." + other.substr(prefix.size())];
        copy = field;
        copy.optional = copy.optional || match[2].matched;
      }
    }
  }
  return fields;
}

// Each field of a document by its path, and the paths of arrays that are empty.
struct FoundFields {
  std::multimap<std::string, nlohmann::json> values;
  std::set<std::string> empty;

  void add(const std::string& path, const nlohmann::json& value) {
    const std::string prefix = path.empty() ? path : path + ".";
    if (value.is_object()) {
      for (const auto& [key, member] : value.items()) add(prefix + key, member);
    } else if (value.is_array() && !value.empty() && value.front().is_object()) {
      for (const nlohmann::json& member : value) add(path + "[]", member);
    } else {
      values.emplace(path, value);
      if (value.is_array() && value.empty()) empty.insert(path + "[]");
    }
  }
  // Whether it is a member of an array that is empty.
  bool is_below_empty(const std::string& path) const {
    return std::any_of(empty.begin(), empty.end(),
                       [&](const std::string& array) { return path.starts_with(array); });
  }
};

inline bool has_type(const nlohmann::json& value, const ListedField& field) {
  if (value.is_null()) return field.may_be_null;
  if (field.type == "integer") return value.is_number_integer();
  if (field.type == "number") return value.is_number();
  if (field.type == "text") return value.is_string();
  if (field.type == "boolean") return value.is_boolean();
  return value.is_array() && std::all_of(value.begin(), value.end(), [&](const auto& member) {
           return field.type == "array of texts"      ? member.is_string()
                  : field.type == "array of arrays"   ? member.is_array()
                  : field.type == "array of integers" ? member.is_number_integer()
                                                      : member.is_number();
         });
}

// What the document has is listed, and what is listed the document has, of the listed types.
inline void expect_fields(const nlohmann::json& document, const std::string& documentation) {
  const ListedFields listed = listed_fields(documentation);
  EXPECT_FALSE(listed.empty()) << "no field is listed in: " << documentation;
  FoundFields found;
  found.add("", document);
  for (const auto& [path, value] : found.values) {
    const auto field = listed.find(path);
    const bool empty_objects = value.is_array() && value.empty() &&
                               std::any_of(listed.begin(), listed.end(), [&](const auto& each) {
                                 return each.first.starts_with(path + "[]");
                               });
    if (empty_objects) continue;
    if (field == listed.end()) {
      ADD_FAILURE() << "the field \"" << path << "\" is not listed";
    } else {
      EXPECT_TRUE(has_type(value, field->second))
          << "\"" << path << "\" is " << value << "; listed as " << field->second.type;
    }
  }
  for (const auto& [path, field] : listed) {
    if (field.optional || found.is_below_empty(path)) continue;
    EXPECT_TRUE(found.values.contains(path)) << "the document has no field \"" << path << "\"";
  }
}

}  // namespace shardrec::test
