#include "command/markup.h"

namespace shardrec::cli {

std::string escaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("\xef\xbf\xbe") || rest.starts_with("\xef\xbf\xbf")) {
      out += '?';
      i += 2;
    } else if (c == '\n' || c == '\t') {  // in attributes they would be read as spaces
      out += c == '\n' ? "&#10;" : "&#9;";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += '?';
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace shardrec::cli
