// A page about a run as one HTML file: it loads nothing, runs no script, and follows the reader's light or dark
// screen and its width. It is XML too, so that any reader of XML can check it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/figures.h"

namespace shardrec::cli {

class Page {
 public:
  // title: text. lead: markup of a paragraph under it.
  Page(std::string title, std::string lead);

  // A section of markup; empty markup: none.
  void add(const std::string& title, const std::string& markup);
  // Rules of CSS beside the page's own.
  void add_style(const std::string& rules) { style_ += rules; }

  // line: the JSON that the page was made of, which it holds as <script type="application/json" id="report-json">.
  [[nodiscard]] std::string html(const std::string& line) const;

 private:
  std::string title_;
  std::string body_;
  std::string style_;
};

// The figures that a reader looks for first, large, each with its name.
struct Card {
  std::string name;
  std::string figure;  // markup
};
std::string cards(const std::vector<Card>& entries);

// A table: markup in the cells, text in the head. The first column is to the left, others to the right. Wide ones
// scroll in their own box.
std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows);
// Names and what they stand for.
std::string facts(const std::vector<Card>& entries);

// What is opened by a click only.
std::string folded(const std::string& summary, const std::string& markup);
std::string note(const std::string& text);

// "machine" of the document (JSON.md).
std::string machine_facts(const Figures& figures);

}  // namespace shardrec::cli
