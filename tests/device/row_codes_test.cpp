// Rows coded on a device have the bytes of the CPU's, and come back with its bits.
#include "compute/cuda/host/transfer/row_codes.h"

#include "device/mirrored.h"

namespace shardrec::test {
namespace {

using compute::ColumnRange;
using compute::Element;
using compute::kElements;
using compute::Numbers;
using compute::RowDecoding;
using compute::RowEncoding;
using compute::RowScale;
using compute::uniform;

class RowCodesOnDevice : public MirroredTest {
 protected:
  // unit: of the columns of boxes; shift: of what is coded, bytes.
  void add(int64_t rows, int64_t unit, bool boxed, size_t shift = 0) {
    auto& boxes = boxes_.emplace_back();
    int64_t width = 0;
    for (int64_t count = uniform(random_, 1, 3); count > 0; --count) {
      const int64_t end = width + unit * uniform(random_, 1, 40);
      boxes.push_back({width, end});
      width = end;
    }
    if (!boxed) boxes.clear();
    const Element element = kElements[uniform(random_, 1, 2)];
    const auto numbers = static_cast<size_t>(rows * width);
    std::vector<float>& floats = floats_.emplace_back();
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t kind = uniform(random_, 0, 4);
      auto of_row = numbers_of(random_, static_cast<size_t>(width),
                               kind == 0 ? Numbers::kSpecial : Numbers::kOrdinary);
      if (kind == 1) std::fill(of_row.begin(), of_row.end(), of_row[0]);
      if (kind == 2) {
        for (float& x : of_row) x *= 1e38F;
      }
      if (kind == 3) {
        for (float& x : of_row) x *= uniform(random_, 0, 1) == 0 ? 1e-40F : -0.0F;
      }
      floats.insert(floats.end(), of_row.begin(), of_row.end());
    }
    const size_t bytes =
        boxed ? static_cast<size_t>(rows) * boxes.size() * sizeof(RowScale) + numbers : 2 * numbers;
    Written& coded = written(bytes + shift);
    RowEncoding encoding;
    encoding.rows = rows;
    encoding.width = width;
    encoding.element = element;
    encoding.boxes = boxes;
    encoding.floats = floats.data();
    encoding.coded = coded.on_host<std::byte>() + shift;
    encode_here_.push_back(encoding);
    encoding.floats = there(floats);
    encoding.coded = coded.on_device<std::byte>() + shift;
    encode_there_.push_back(encoding);
    Written& back = written(numbers * sizeof(float));
    RowDecoding decoding;
    static_cast<compute::RowCoding&>(decoding) = encoding;
    decoding.coded = encode_here_.back().coded;
    decoding.floats = back.on_host<float>();
    decode_here_.push_back(decoding);
    decoding.coded = encoding.coded;
    decoding.floats = back.on_device<float>();
    decode_there_.push_back(decoding);
  }

  void compare() {
    if (codes_ == nullptr) codes_ = std::make_unique<compute::cuda::host::RowCodes>(stream_);
    cpu_->transfer().encode_rows(encode_here_);
    codes_->run(encode_there_);
    cpu_->transfer().decode_rows(decode_here_);
    codes_->run(decode_there_);
    for (size_t i = 0; i < encode_here_.size(); ++i) {
      const RowEncoding& block = encode_here_[i];
      const Written& coded = written_[2 * i];
      const Written& back = written_[2 * i + 1];
      const size_t shift = static_cast<size_t>(block.coded - coded.here.data());
      const auto codes = coded.there->bytes();
      // Scales may be NaN.
      const size_t scales = static_cast<size_t>(block.rows) * block.boxes.size() * sizeof(RowScale);
      ASSERT_TRUE(same_numbers(Element::kFloat32, std::span(codes).subspan(shift, scales),
                               std::span(coded.here).subspan(shift, scales)))
          << "scales of block " << i;
      ASSERT_TRUE(std::equal(codes.begin() + static_cast<int64_t>(shift + scales), codes.end(),
                             coded.here.begin() + static_cast<int64_t>(shift + scales)))
          << "codes of block " << i;
      ASSERT_TRUE(same_numbers(Element::kFloat32, back.there->bytes(), back.here)) << "block " << i;
    }
    clear();
    encode_here_.clear();
    encode_there_.clear();
    decode_here_.clear();
    decode_there_.clear();
  }

  std::deque<std::vector<ColumnRange>> boxes_;
  std::deque<std::vector<float>> floats_;
  std::vector<RowEncoding> encode_here_, encode_there_;
  std::vector<RowDecoding> decode_here_, decode_there_;
  std::unique_ptr<compute::cuda::host::RowCodes> codes_;
};

TEST_F(RowCodesOnDevice, AreThoseOfTheCpuInEveryForm) {
  for (const bool boxed : {false, true}) {
    for (const int64_t unit : {1, 4, 16}) {
      for (int block = 0; block < 5; ++block) add(uniform(random_, 1, 90), unit, boxed);
      ASSERT_NO_FATAL_FAILURE(compare()) << (boxed ? "boxes" : "halves") << " by " << unit;
    }
  }
}

TEST_F(RowCodesOnDevice, LieAtAnyAddress) {
  for (const size_t shift : {1, 2, 3, 4, 8}) add(20, 4, true, shift);
  for (const size_t shift : {2, 4, 8}) add(20, 4, false, shift);
  compare();
}

TEST_F(RowCodesOnDevice, HoldForManyRowsAndForNone) {
  add(0, 4, true);
  add(0, 4, false);
  add(700, 4, true);
  add(700, 4, false);
  add(700, 1, true);
  compare();
  compare();
}

}  // namespace
}  // namespace shardrec::test
