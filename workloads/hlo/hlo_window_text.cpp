#include "workloads/hlo/hlo_window_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "workloads/hlo/hlo_field_text.hpp"

namespace podsim {

namespace {

class ExtentText : private HloFieldText {
 public:
  explicit ExtentText(HloCursor& cursor) : HloFieldText{cursor} {}

  template <class Field>
  Status into(Field& field) {
    return status(read(field));
  }

 private:
  /// A value per spatial dimension, with "x" between them.
  template <class Set>
  bool per_dimension(std::vector<HloWindowDimension>& window, Set set) {
    std::size_t d = 0;
    do {
      if (d == most_attribute_dims) return expected("at most 64 dimensions");
      if (window.size() <= d) window.emplace_back();
      if (!set(window[d++])) return false;
    } while (cursor_.take('x'));
    return true;
  }

  bool read(std::vector<HloWindowDimension>& window) {
    if (!is('{', "\"{\" and a window")) return false;
    while (true) {
      cursor_.skip_blanks();
      if (cursor_.take('}')) return true;
      const std::size_t at = cursor_.at();
      const std::string_view part = cursor_.take_name();
      if (!is('=', "a part of a window such as size=3x3, or \"}\"")) return false;
      using W = HloWindowDimension;
      const auto number = [&](std::int64_t W::*field, std::int64_t least) {
        return per_dimension(window, [&, field, least](W& dimension) {
          const std::size_t begin = cursor_.at();
          return integer(dimension.*field, "a number") && (dimension.*field >= least || fail(begin, "a number from " + std::to_string(least) + " on"));
        });
      };
      bool ok = false;
      if (part == "size")
        ok = number(&W::size, 0);
      else if (part == "stride")
        ok = number(&W::stride, 1);
      else if (part == "lhs_dilate")
        ok = number(&W::lhs_dilate, 1);
      else if (part == "rhs_dilate")
        ok = number(&W::rhs_dilate, 1);
      else if (part == "rhs_reversal")
        ok = per_dimension(window, [&](W& dimension) {
          std::int64_t value = 0;
          if (!integer(value, "0 or 1")) return false;
          dimension.reversal = value != 0;
          return true;
        });
      else if (part == "pad")
        ok = per_dimension(window, [&](W& dimension) {
          return integer(dimension.pad_low, "the padding in front") && is('_', "\"_\" and the padding behind") &&
                 integer(dimension.pad_high, "the padding behind");
        });
      else
        return fail(at, "size, stride, pad, lhs_dilate, rhs_dilate or rhs_reversal");
      if (!ok) return false;
    }
  }

  /// The dimensions of one array: two letters and the spatial ones 0, 1, ... in any order.
  bool labels(char first_letter, char second_letter, int& first, int& second, std::vector<int>& spatial) {
    const std::size_t begin = cursor_.at();
    first = second = -1;
    for (int at = 0;; ++at, cursor_.move_to(cursor_.at() + 1)) {
      const char c = cursor_.peek();
      if (c == first_letter && first < 0) {
        first = at;
      } else if (c == second_letter && second < 0) {
        second = at;
      } else if (c >= '0' && c <= '9') {
        const auto d = static_cast<std::size_t>(c - '0');
        if (spatial.size() <= d) spatial.resize(d + 1, -1);
        if (spatial[d] >= 0) return expected("every dimension once");
        spatial[d] = at;
      } else {
        break;
      }
    }
    if (first >= 0 && second >= 0 && std::find(spatial.begin(), spatial.end(), -1) == spatial.end()) return true;
    return fail(begin, fmt::format("the letters {} and {} and the spatial dimensions from 0 on", first_letter, second_letter));
  }

  bool read(std::optional<HloConvolutionDims>& convolution) {
    HloConvolutionDims dims;
    const std::size_t begin = cursor_.at();
    if (!labels('b', 'f', dims.input_batch, dims.input_feature, dims.input_spatial)) return false;
    if (!cursor_.take('_')) return expected("\"_\" and the dimensions of the kernel");
    if (!labels('i', 'o', dims.kernel_input, dims.kernel_output, dims.kernel_spatial)) return false;
    if (!cursor_.take("->")) return expected("\"->\" and the dimensions of the output");
    if (!labels('b', 'f', dims.output_batch, dims.output_feature, dims.output_spatial)) return false;
    if (dims.input_spatial.size() != dims.kernel_spatial.size() || dims.input_spatial.size() != dims.output_spatial.size())
      return fail(begin, "as many spatial dimensions in input, kernel and output");
    convolution = std::move(dims);
    return true;
  }

  bool read(std::vector<HloSliceExtent>& slice) {
    if (!is('{', "\"{\" and the extents of a slice")) return false;
    cursor_.skip_blanks();
    if (cursor_.take('}')) return true;
    do {
      if (slice.size() == most_attribute_dims) return expected("at most 64 dimensions");
      HloSliceExtent& extent = slice.emplace_back();
      if (!is('[', "\"[\" and the extents of a slice")) return false;
      const std::size_t at = cursor_.at();
      if (!integer(extent.start, "the start of a slice") || !is(':', "\":\" and the limit of a slice") ||
          !integer(extent.limit, "the limit of a slice"))
        return false;
      if (cursor_.take(':') && !integer(extent.stride, "the stride of a slice")) return false;
      if (extent.start < 0 || extent.limit < extent.start || extent.stride < 1)
        return fail(at, "a slice [start:limit:stride] with 0 <= start <= limit");
      if (!is(']', "\"]\"")) return false;
      cursor_.skip_blanks();
    } while (cursor_.take(','));
    return is('}', "\",\" and the next dimension, or \"}\"");
  }

  bool read(std::vector<HloPadding>& list) {
    do {
      if (list.size() == most_attribute_dims) return expected("at most 64 dimensions");
      HloPadding& padding = list.emplace_back();
      if (!integer(padding.low, "the padding in front") || !is('_', "\"_\" and the padding behind") || !integer(padding.high, "the padding behind"))
        return false;
      const std::size_t at = cursor_.at();
      if (cursor_.take('_') && (!integer(padding.interior, "the padding between elements") || padding.interior < 0))
        return fail(at, "the padding between elements from 0 on");
    } while (cursor_.take('x'));
    return true;
  }
};

}  // namespace

Status read_window(HloCursor& cursor, std::vector<HloWindowDimension>& window) { return ExtentText{cursor}.into(window); }
Status read_dim_labels(HloCursor& cursor, std::optional<HloConvolutionDims>& convolution) { return ExtentText{cursor}.into(convolution); }
Status read_slice(HloCursor& cursor, std::vector<HloSliceExtent>& slice) { return ExtentText{cursor}.into(slice); }
Status read_padding(HloCursor& cursor, std::vector<HloPadding>& padding) { return ExtentText{cursor}.into(padding); }

}  // namespace podsim
