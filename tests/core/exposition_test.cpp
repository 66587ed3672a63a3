// Metrics in Prometheus' text format.
#include "core/exposition.h"

#include <gtest/gtest.h>

namespace shardrec::core {
namespace {

TEST(Exposition, WritesAFamilyOnceAndItsSamplesBelowIt) {
  Exposition out;
  out.family("steps_total", "counter", "Steps.");
  out.sample("", int64_t{3});
  out.family("ratio", "gauge", "A ratio.");
  out.sample(label("rank", "0") + "," + label("table", "user"), 0.25);
  out.sample(label("rank", "1"), 1e300);
  EXPECT_EQ(out.text(),
            "# HELP steps_total Steps.\n# TYPE steps_total counter\nsteps_total 3\n"
            "# HELP ratio A ratio.\n# TYPE ratio gauge\n"
            "ratio{rank=\"0\",table=\"user\"} 0.25\nratio{rank=\"1\"} 1e+300\n");
}

TEST(Exposition, EscapesWhatWouldEndALabel) {
  EXPECT_EQ(label("table", "a\"b\\c\nd"), "table=\"a\\\"b\\\\c\\nd\"");
}

}  // namespace
}  // namespace shardrec::core
