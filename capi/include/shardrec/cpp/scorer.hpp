// Part of shardrec.hpp: serving a checkpoint.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_SCORER_HPP
#define SHARDREC_CPP_SCORER_HPP

#include <cstdint>
#include <string_view>

#include "shardrec/cpp/tables.hpp"
#include "shardrec/scorer.h"

namespace shardrec {

// lookup() and predict() may be called by any number of threads at once; each returns the step of the
// checkpoint that has answered.
class Scorer : public detail::Handle<shardrec_scorer, shardrec_scorer_destroy> {
 public:
  // step -1: the newest checkpoint of the directory.
  explicit Scorer(std::string_view directory, int64_t step = -1, const Options &options = {},
                  const Control *control = nullptr) {
    check(shardrec_scorer_open(detail::c_text(directory).c_str(), step, options.get(),
                               detail::control(control), out()));
  }
  using Handle::Handle;

  // Serves another checkpoint from now on; returns its step. Calls go on meanwhile.
  int64_t refresh(int64_t step = -1, const Control *control = nullptr) {
    int64_t served = 0;
    check(shardrec_scorer_refresh(get(), step, detail::control(control), &served));
    return served;
  }
  Model model() const {
    shardrec_model *handle = nullptr;
    check(shardrec_scorer_model(get(), &handle));
    return Model(handle);
  }
  shardrec_served info() const {
    shardrec_served served{};
    served.struct_size = sizeof served;
    check(shardrec_scorer_info(get(), &served));
    return served;
  }
  int64_t lookup(int32_t output, const Batch &batch, const Matrix &result) const {
    const shardrec_batch given = batch.c_batch();
    int64_t step = 0;
    check(shardrec_scorer_lookup(get(), output, &given, result.get(), &step));
    return step;
  }
  // result: [batch_size, scores], of one score also [batch_size].
  int64_t predict(const Batch &batch, const Matrix &dense, const Tensor &result) const {
    const shardrec_batch given = batch.c_batch();
    int64_t step = 0;
    check(shardrec_scorer_predict(get(), &given, dense.get(), result.get(), &step));
    return step;
  }
};

}  // namespace shardrec

#endif
