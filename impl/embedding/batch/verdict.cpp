#include "embedding/batch/verdict.h"

#include "core/tensor.h"

namespace shardrec::embedding {
namespace {

const char* argument_name(Argument argument) {
  switch (argument) {
    case Argument::kBatchSize:
      return "batch_size";
    case Argument::kValues:
      return "values";
    case Argument::kLengths:
      return "lengths";
    case Argument::kOffsets:
      return "offsets";
    case Argument::kWeights:
      return "weights";
    case Argument::kBatchSizes:
      return "batch_sizes";
    case Argument::kInverse:
      return "inverse";
    case Argument::kGradient:
      return "the gradient";
  }
  return "an argument";
}

// Does the host read the argument itself, whatever the back end?
bool is_read_by_host(Argument argument) {
  return argument == Argument::kOffsets || argument == Argument::kBatchSizes;
}

std::string describe(const Verdict& v) {
  using core::sentence;
  const std::string name = argument_name(v.argument);
  const std::string element = sentence(name, "[", v.position, "]");
  switch (v.defect) {
    case Defect::kNone:
      return "nothing is wrong";
    case Defect::kNegativeBatchSize:
      return sentence("batch_size is ", v.value, ", it must not be negative");
    case Defect::kNoTensor:
      return v.argument == Argument::kLengths
                 ? "lengths is NULL, and so is offsets: one of them is needed"
                 : name + " is NULL";
    case Defect::kGivenTwice:
      return "lengths and offsets are both given: one of them is accepted";
    case Defect::kNotWanted:
      return name + " is given though values is NULL (no more data): it must be NULL or 0";
    case Defect::kDevice:
      return sentence(
          name, " has device_type ", v.value, ", the CPU (1) is accepted",
          is_read_by_host(v.argument) ? "" : ", and the device (2) where the tables are");
    case Defect::kDtype:
      return sentence(name, " has dtype ", v.value, ", ",
                      v.argument == Argument::kWeights ? "FLOAT32 is" : "INT32 and INT64 are",
                      " accepted");
    case Defect::kDimensions:
      return sentence(name, " has ", v.value, " dimensions, it must have 1");
    case Defect::kShape:
      return sentence(name, " has ", v.value, " elements, it must have ", v.limit);
    case Defect::kNegativeShape:
      return sentence(name, " has shape ", v.value, ", it must not be negative");
    case Defect::kStride:
      return sentence(name, " has stride ", v.value, ", it must be compact (1)");
    case Defect::kNoData:
      return name + " has data NULL";
    case Defect::kAlignment:
      return sentence(name, " has data that is not aligned to its dtype, ",
                      core::dtype_name(static_cast<shardrec_dtype>(v.value)));
    case Defect::kTooMany:
      return v.argument != Argument::kValues
                 ? sentence(v.position < 0 ? name : element, " is ", v.value, ", at most ", v.limit,
                            " is accepted")
                 : sentence("the batch has ", v.value, " ids, at most ", v.limit, " are accepted");
    case Defect::kNegativeLength:
      return sentence(element, " is ", v.value, ", a bag's length must not be negative");
    case Defect::kLongLength:
      return sentence(element, " is ", v.value, ", values has ", v.limit, " ids in all");
    case Defect::kFirstOffset:
      return sentence("offsets[0] is ", v.value, ", it must be 0");
    case Defect::kFallingOffset:
      return sentence(element, " is ", v.value, ", below the offset ", v.limit, " before it");
    case Defect::kLengthSum:
      return sentence(name, " add up to ", v.value, " ids, values has ", v.limit);
    case Defect::kIdRange:
      return sentence(element, " is ", v.value, ", ids must be in [0, ", v.limit, ")");
    case Defect::kNegativeSize:
      return sentence(element, " is ", v.value, ", a feature's batch size must not be negative");
    case Defect::kInverseRange:
      return sentence(element, " is ", v.value, ", the feature's bags are [0, ", v.limit, ")");
    case Defect::kNoGradient:
      return sentence("backward was called without set_gradient for output ", v.value);
    case Defect::kAccumulation:
      return "backward was called with one of SHARDREC_UPDATE_APPLY and ACCUMULATE here, with the "
             "other on "
             "rank 0; all ranks must give the same";
    case Defect::kNonFinite:
      return sentence(v.argument == Argument::kGradient
                          ? sentence("the gradient of output ", v.limit, " at row ", v.position,
                                     ", column ", v.value)
                          : element,
                      " is NaN or infinite, and the option NON_FINITE is ERROR");
    case Defect::kSettings:
      return "learning rates, frozen tables or the step differ from those of rank 0; they must be "
             "the "
             "same on all ranks";
  }
  return "unknown defect";
}

}  // namespace

core::Error verdict_error(const Verdict& verdict, int rank, const char* operation,
                          const plan::Model& model) {
  core::ErrorParts parts{.operation = operation};
  std::string where = "the batch ";
  if (rank >= 0) {
    parts.rank = rank;
    where += core::sentence("of rank ", rank, " ");
  }
  where += core::sentence("was refused in ", operation, ": ");
  if (verdict.feature >= 0 && static_cast<size_t>(verdict.feature) < model.features.size()) {
    const plan::Feature& feature = model.features[static_cast<size_t>(verdict.feature)];
    parts.feature = feature.name;
    parts.table = model.tables[static_cast<size_t>(feature.table)].name;
    where += "feature \"" + parts.feature + "\" of table \"" + parts.table + "\": ";
  }
  if (verdict.position >= 0) parts.position = verdict.position;
  parts.value = verdict.value;
  parts.limit = verdict.limit;
  return {SHARDREC_INVALID_BATCH, where + describe(verdict), std::move(parts)};
}

}  // namespace shardrec::embedding
