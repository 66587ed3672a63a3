// MovieLens ratings as clicks: a rating of 4 or 5 is a click. The log is held in memory.
//
// Tables: user, item; with the side files gender, occupation, zip3 (the first three characters),
// age5 (age / 5), year3 (release year / 3) and genres (a bag). Row 0 of each is what a side file
// does not tell. Dense: age and year, standardised over the users and items that have them, 0 for
// the others.
#include <cmath>
#include <map>
#include <unordered_map>

#include "command/numbers.h"
#include "command/user_error.h"
#include "data/click_log.h"
#include "data/movielens_files.h"

namespace shardrec::cli {
namespace {

// Rows by order of first appearance, from 1.
class Vocabulary {
 public:
  int64_t row(std::string_view token) {
    if (token.empty()) return 0;
    const auto next = static_cast<int64_t>(rows_.size()) + 1;
    return rows_.try_emplace(std::string(token), next).first->second;
  }
  [[nodiscard]] int64_t rows() const { return static_cast<int64_t>(rows_.size()) + 1; }

 private:
  std::unordered_map<std::string, int64_t> rows_;
};

std::string bucket(std::string_view number, int64_t width) {
  const auto value = parse_integer(number);
  return value ? std::to_string(*value / width) : std::string();
}

// Standardises what has been added; an absent value becomes the mean.
class Standardised {
 public:
  void add(std::optional<int64_t> value) {
    if (!value) return;
    const auto x = static_cast<double>(*value);
    count_ += 1;
    sum_ += x;
    squares_ += x * x;
  }
  [[nodiscard]] float of(std::optional<int64_t> value) const {
    if (!value || count_ == 0) return 0;
    const double mean = sum_ / count_;
    const double variance = squares_ / count_ - mean * mean;
    return variance <= 0
               ? 0
               : static_cast<float>((static_cast<double>(*value) - mean) / std::sqrt(variance));
  }

 private:
  double count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

struct User {
  int64_t gender = 0;
  int64_t occupation = 0;
  int64_t zip3 = 0;
  int64_t age5 = 0;
  std::optional<int64_t> age;
};

struct Item {
  int64_t year3 = 0;
  std::vector<int64_t> genres;
  std::optional<int64_t> year;
};

class MovielensLog final : public ClickLog {
 public:
  explicit MovielensLog(const ClickLogOptions& options) : bad_lines_(options.tolerance) {
    if (options.paths.size() != 1) throw UserError("--data is one file for --format movielens.");
    const MovielensFiles files(options.paths.front());
    has_users_ = !files.users().empty();
    has_items_ = !files.items().empty();
    if (has_users_) read_users(files);
    if (has_items_) read_items(files);
    read_ratings(files, options.seed);
    make_schema();
  }

  [[nodiscard]] const Schema& schema() const override { return schema_; }
  [[nodiscard]] const BadLines& bad_lines() const override { return bad_lines_; }
  [[nodiscard]] std::unique_ptr<Pass> open(Split split, ParseThreads& threads) override;

 private:
  void read_users(const MovielensFiles& files);
  void read_items(const MovielensFiles& files);
  void read_ratings(const MovielensFiles& files, uint64_t seed);
  void make_schema();
  void add_sample(std::string_view user_id, std::string_view item_id, bool click, Samples& out);

  BadLines bad_lines_;
  Schema schema_;
  bool has_users_ = false;
  bool has_items_ = false;
  Vocabulary user_ids_, item_ids_, genders_, occupations_, zips_, ages_, years_, genres_;
  std::unordered_map<std::string, User> users_;
  std::unordered_map<std::string, Item> items_;
  Standardised age_, year_;
  Sample sample_;
  Samples train_, test_;
};

constexpr const char* kOtherColumns = "has another number of columns than its format";

void MovielensLog::read_users(const MovielensFiles& files) {
  const int64_t rows = files.each_user([&](int64_t line, const MovielensUser* row) {
    if (row == nullptr) return bad_lines_.add(files.users(), line, line, kOtherColumns);
    User user;
    user.age = parse_integer(row->age);
    user.age5 = ages_.row(bucket(row->age, 5));
    user.gender = genders_.row(row->gender);
    user.occupation = occupations_.row(row->occupation);
    user.zip3 = zips_.row(row->zip.substr(0, 3));
    age_.add(user.age);
    users_.insert_or_assign(std::string(row->id), user);
  });
  bad_lines_.check(files.users(), rows);
}

void MovielensLog::read_items(const MovielensFiles& files) {
  const int64_t rows = files.each_item([&](int64_t line, const MovielensItem* row) {
    if (row == nullptr) return bad_lines_.add(files.items(), line, line, kOtherColumns);
    Item item;
    item.year = parse_integer(row->year);
    item.year3 = years_.row(bucket(row->year, 3));
    for (const std::string_view genre : row->genres) item.genres.push_back(genres_.row(genre));
    year_.add(item.year);
    items_.insert_or_assign(std::string(row->id), item);
  });
  bad_lines_.check(files.items(), rows);
}

void MovielensLog::read_ratings(const MovielensFiles& files, uint64_t seed) {
  const std::string& path = files.ratings();
  uint64_t number = 0;
  const int64_t rows = files.each_rating([&](int64_t line, const MovielensRating* row) {
    sample_.row = static_cast<int64_t>(number);
    Samples& out = is_test_row(seed, number++) ? test_ : train_;
    if (row == nullptr) return bad_lines_.add(path, line, line, kOtherColumns);
    const auto rating = parse_real(row->rating);
    if (!rating || *rating < 0 || *rating > 5) {
      return bad_lines_.add(path, line, line,
                            "rating is " + quoted(row->rating) + ", not a number from 0 to 5");
    }
    if (row->user.empty() || row->item.empty()) {
      return bad_lines_.add(path, line, line, "has no user or no item");
    }
    add_sample(row->user, row->item, *rating >= 4, out);
  });
  if (rows == 0) throw UserError(path + " has no rows to train with.");
  bad_lines_.check(path, rows);
}

void MovielensLog::add_sample(std::string_view user_id, std::string_view item_id, bool click,
                              Samples& out) {
  sample_.label = click ? 1.0f : 0.0f;
  sample_.dense.clear();
  sample_.lengths.clear();
  sample_.ids.clear();
  const auto add_id = [&](int64_t row) {
    sample_.lengths.push_back(1);
    sample_.ids.push_back(row);
  };
  add_id(user_ids_.row(user_id));
  add_id(item_ids_.row(item_id));
  float age = 0;
  float year = 0;
  if (has_users_) {
    const auto found = users_.find(std::string(user_id));
    static const User kUnknown;
    const User& user = found == users_.end() ? kUnknown : found->second;
    add_id(user.gender);
    add_id(user.occupation);
    add_id(user.zip3);
    add_id(user.age5);
    age = age_.of(user.age);
  }
  if (has_items_) {
    const auto found = items_.find(std::string(item_id));
    static const Item kUnknown;
    const Item& item = found == items_.end() ? kUnknown : found->second;
    add_id(item.year3);
    sample_.lengths.push_back(static_cast<int32_t>(item.genres.size()));
    sample_.ids.insert(sample_.ids.end(), item.genres.begin(), item.genres.end());
    year = year_.of(item.year);
  }
  sample_.dense = {age, year};
  out.add(sample_);
}

void MovielensLog::make_schema() {
  schema_.dense_columns = 2;
  schema_.features = {{"user", user_ids_.rows()}, {"item", item_ids_.rows()}};
  if (has_users_) {
    schema_.features.push_back({"gender", genders_.rows()});
    schema_.features.push_back({"occupation", occupations_.rows()});
    schema_.features.push_back({"zip3", zips_.rows()});
    schema_.features.push_back({"age5", ages_.rows()});
  }
  if (has_items_) {
    schema_.features.push_back({"year3", years_.rows()});
    schema_.features.push_back({"genres", genres_.rows()});
  }
}

// Hands out samples that are in memory already.
class MemoryPass final : public Pass {
 public:
  explicit MemoryPass(const Samples& samples) : samples_(samples) {}
  bool read(Rows& out, int64_t limit) override {
    const int64_t last = std::min(samples_.size(), next_ + limit);
    const bool any = next_ < last;
    for (; next_ < last; ++next_) out.samples.add(samples_, next_);
    return any;
  }
  [[nodiscard]] double fraction() const override {
    return samples_.size() == 0 ? 0
                                : static_cast<double>(next_) / static_cast<double>(samples_.size());
  }

 private:
  const Samples& samples_;
  int64_t next_ = 0;
};

std::unique_ptr<Pass> MovielensLog::open(Split split, ParseThreads& /*threads*/) {
  return std::make_unique<MemoryPass>(split == Split::kTest ? test_ : train_);
}

}  // namespace

std::unique_ptr<ClickLog> open_movielens(const ClickLogOptions& options) {
  return std::make_unique<MovielensLog>(options);
}

}  // namespace shardrec::cli
