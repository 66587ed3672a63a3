// MovieLens as its publisher ships it, and as RecBole does: the file of ratings, and those of users and items
// beside it where they exist. Each may be compressed (byte_source.h).
//
//   ml-100k.inter      .user, .item                      tabs, a header
//   u.data             u.user, u.item                    tabs, "|" beside it
//   ratings.dat        users.dat, movies.dat             "::"
//   ratings.csv        movies.csv                        commas, a header
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shardrec::cli {

enum class MovielensKind { kInter, kData, kDat, kCsv };

struct MovielensRating {
  std::string_view user, item, rating;
};
struct MovielensUser {
  std::string_view id, age, gender, occupation, zip;
};
struct MovielensItem {
  std::string_view id, year;  // year empty: not known
  std::vector<std::string_view> genres;
};

class MovielensFiles {
 public:
  // UserError where the first line is none of these formats.
  explicit MovielensFiles(const std::string& ratings);

  [[nodiscard]] const std::string& ratings() const { return ratings_; }
  [[nodiscard]] const std::string& users() const { return users_; }  // empty: there are none
  [[nodiscard]] const std::string& items() const { return items_; }

  // Call `take` with each line's number (from 1) and what it holds; null where it has another number of
  // columns than the format. Return the number of lines, without a header.
  template <class Row>
  using Take = std::function<void(int64_t line, const Row* row)>;
  int64_t each_rating(const Take<MovielensRating>& take) const;
  int64_t each_user(const Take<MovielensUser>& take) const;
  int64_t each_item(const Take<MovielensItem>& take) const;

 private:
  std::string ratings_, users_, items_;
  MovielensKind kind_ = MovielensKind::kInter;
};

}  // namespace shardrec::cli
