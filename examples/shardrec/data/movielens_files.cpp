// The formats as columns: which stand where, behind which separator.
#include "data/movielens_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <initializer_list>

#include "command/numbers.h"
#include "command/user_error.h"
#include "data/line_reader.h"
#include "data/line_sink.h"

namespace shardrec::cli {
namespace {

// Of u.item, in the order of its columns behind the fifth (u.genre).
constexpr std::array<std::string_view, 19> kGenres{
    "unknown",     "Action", "Adventure", "Animation", "Children's", "Comedy",  "Crime",
    "Documentary", "Drama",  "Fantasy",   "Film-Noir", "Horror",     "Musical", "Mystery",
    "Romance",     "Sci-Fi", "Thriller",  "War",       "Western"};
constexpr size_t kFirstGenre = 5;

// Cuts a line; of CSV, a field in quotes may hold separators, and its quotes are left out.
void cut(std::string_view line, std::string_view separator, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    size_t begin = 0;
    size_t end = line.find(separator);
    size_t next = end;
    if (separator == "," && line.starts_with('"')) {
      begin = 1;
      end = line.find("\",", 1);
      if (end == std::string_view::npos && line.ends_with('"')) end = line.size() - 1;
      next = end == std::string_view::npos || end + 1 >= line.size() ? std::string_view::npos
                                                                     : end + 1;
    }
    fields.push_back(line.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (next == std::string_view::npos) return;
    line.remove_prefix(next + separator.size());
  }
}

// A file with so many columns, and the places of those that are wanted.
struct Columns {
  std::string_view separator;
  bool header = false;
  size_t count = 0;
  std::vector<size_t> at;
};

// Those of a header; what stands behind ":" in a name is its type.
Columns named(const std::string& path, std::string_view separator,
              std::initializer_list<std::string_view> wanted) {
  LineReader reader(path);
  std::string_view line;
  if (!reader.next(line)) throw UserError(path + " is empty.");
  std::vector<std::string_view> names;
  cut(line, separator, names);
  for (std::string_view& name : names) name = name.substr(0, name.find(':'));
  Columns columns{.separator = separator, .header = true, .count = names.size(), .at = {}};
  for (const std::string_view name : wanted) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      throw UserError(
          path + " has no column '" + std::string(name) +
          "'. Accepted: MovieLens as u.data, ratings.dat, ratings.csv or RecBole's .inter, with "
          "the files of users and items that belong to it.");
    }
    columns.at.push_back(static_cast<size_t>(found - names.begin()));
  }
  return columns;
}

template <class Row>
int64_t each(const std::string& path, const Columns& columns,
             const std::function<Row(const std::vector<std::string_view>& wanted,
                                     const std::vector<std::string_view>& all)>& make,
             const MovielensFiles::Take<Row>& take) {
  LineReader reader(path);
  std::string_view line;
  int64_t number = 0;
  if (columns.header && reader.next(line)) ++number;
  std::vector<std::string_view> fields;
  std::vector<std::string_view> wanted(columns.at.size());
  while (reader.next(line)) {
    ++number;
    cut(line, columns.separator, fields);
    if (fields.size() != columns.count) {
      take(number, nullptr);
      continue;
    }
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = fields[columns.at[i]];
    const Row row = make(wanted, fields);
    take(number, &row);
  }
  return number - (columns.header ? 1 : 0);
}

// "1995" of "Toy Story (1995)"; empty where there is none.
std::string_view year_of_title(std::string_view title) {
  const size_t open = title.rfind('(');
  if (open == std::string_view::npos || open + 6 > title.size() || title[open + 5] != ')')
    return {};
  const std::string_view year = title.substr(open + 1, 4);
  return parse_integer(year) ? year : std::string_view();
}

std::vector<std::string_view> words(std::string_view text, char separator) {
  std::vector<std::string_view> found = split(text, separator);
  std::erase(found, std::string_view());
  std::erase(found, std::string_view("(no genres listed)"));
  return found;
}

MovielensKind kind_of(const std::string& path) {
  LineReader reader(path);
  std::string_view line;
  if (!reader.next(line)) throw UserError(path + " is empty.");
  if (line.starts_with("userId,")) return MovielensKind::kCsv;
  if (line.find("::") != std::string_view::npos) return MovielensKind::kDat;
  const auto fields = split(line, '\t');
  const bool numbers = std::all_of(fields.begin(), fields.end(), [](std::string_view field) {
    return parse_integer(field).has_value();
  });
  return fields.size() == 4 && numbers ? MovielensKind::kData : MovielensKind::kInter;
}

// The path, compressed or not; empty where there is no such file.
std::string existing(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path.string();
  const std::string compressed = path.string() + ".gz";
  return std::filesystem::exists(compressed, error) ? compressed : std::string();
}

}  // namespace

MovielensFiles::MovielensFiles(const std::string& ratings)
    : ratings_(ratings), kind_(kind_of(ratings)) {
  const std::filesystem::path path(without_gzip_name(ratings));
  const auto sibling = [&](const char* name) { return existing(path.parent_path() / name); };
  const auto with_extension = [&](const char* extension) {
    return existing(std::filesystem::path(path).replace_extension(extension));
  };
  switch (kind_) {
    case MovielensKind::kInter:
    case MovielensKind::kData:
      users_ = with_extension(".user");
      items_ = with_extension(".item");
      break;
    case MovielensKind::kDat:
      users_ = sibling("users.dat");
      items_ = sibling("movies.dat");
      break;
    case MovielensKind::kCsv:
      items_ = sibling("movies.csv");
  }
}

int64_t MovielensFiles::each_rating(const Take<MovielensRating>& take) const {
  Columns columns;
  switch (kind_) {
    case MovielensKind::kInter:
      columns = named(ratings_, "\t", {"user_id", "item_id", "rating"});
      break;
    case MovielensKind::kData:
      columns = {.separator = "\t", .count = 4, .at = {0, 1, 2}};
      break;
    case MovielensKind::kDat:
      columns = {.separator = "::", .count = 4, .at = {0, 1, 2}};
      break;
    case MovielensKind::kCsv:
      columns = named(ratings_, ",", {"userId", "movieId", "rating"});
  }
  return each<MovielensRating>(
      ratings_, columns,
      [](const auto& at, const auto&) { return MovielensRating{at[0], at[1], at[2]}; }, take);
}

int64_t MovielensFiles::each_user(const Take<MovielensUser>& take) const {
  Columns columns;
  switch (kind_) {
    case MovielensKind::kInter:
      columns = named(users_, "\t", {"user_id", "age", "gender", "occupation", "zip_code"});
      break;
    case MovielensKind::kData:
      columns = {.separator = "|", .count = 5, .at = {0, 1, 2, 3, 4}};
      break;
    case MovielensKind::kDat:
    case MovielensKind::kCsv:
      columns = {.separator = "::", .count = 5, .at = {0, 2, 1, 3, 4}};
  }
  return each<MovielensUser>(
      users_, columns,
      [](const auto& at, const auto&) { return MovielensUser{at[0], at[1], at[2], at[3], at[4]}; },
      take);
}

int64_t MovielensFiles::each_item(const Take<MovielensItem>& take) const {
  if (kind_ == MovielensKind::kInter) {
    return each<MovielensItem>(
        items_, named(items_, "\t", {"item_id", "release_year", "class"}),
        [](const auto& at, const auto&) { return MovielensItem{at[0], at[1], words(at[2], ' ')}; },
        take);
  }
  if (kind_ == MovielensKind::kData) {
    const Columns columns{.separator = "|", .count = kFirstGenre + kGenres.size(), .at = {0, 2}};
    return each<MovielensItem>(
        items_, columns,
        [](const auto& at, const auto& all) {
          // A date such as 01-Jan-1995.
          const std::string_view date = at[1];
          MovielensItem item{
              at[0], date.size() < 4 ? std::string_view() : date.substr(date.size() - 4), {}};
          for (size_t g = 0; g < kGenres.size(); ++g) {
            if (all[kFirstGenre + g] == "1") item.genres.push_back(kGenres[g]);
          }
          return item;
        },
        take);
  }
  const Columns columns = kind_ == MovielensKind::kCsv
                              ? named(items_, ",", {"movieId", "title", "genres"})
                              : Columns{.separator = "::", .count = 3, .at = {0, 1, 2}};
  return each<MovielensItem>(
      items_, columns,
      [](const auto& at, const auto&) {
        return MovielensItem{at[0], year_of_title(at[1]), words(at[2], '|')};
      },
      take);
}

}  // namespace shardrec::cli
