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
  struct Info {
    int64_t step;
    int64_t dense_columns;  // 0: no dense half
    int64_t scores;
  };

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
  Info info() const {
    Info info{};
    check(shardrec_scorer_info(get(), &info.step, &info.dense_columns, &info.scores));
    return info;
  }
  int64_t lookup(int32_t output, int64_t batch_size, const Vector &values, const Vector &lengths,
                 const Matrix &result, const Vector &weights = nullptr) const {
    int64_t step = 0;
    check(shardrec_scorer_lookup(get(), output, batch_size, values.get(), lengths.get(),
                                 weights.get(), result.get(), &step));
    return step;
  }
  // result: [batch_size, scores], of one score also [batch_size].
  int64_t predict(int64_t batch_size, const Matrix &dense, const Vector &values,
                  const Vector &lengths, const Tensor &result,
                  const Vector &weights = nullptr) const {
    int64_t step = 0;
    check(shardrec_scorer_predict(get(), batch_size, dense.get(), values.get(), lengths.get(),
                                  weights.get(), result.get(), &step));
    return step;
  }
};

}  // namespace shardrec

#endif
