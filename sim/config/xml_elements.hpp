// Elements of an XML text with their places. The only use of pugixml for reading.
#pragma once

#include <pugixml.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/expected.hpp"

namespace podsim {

/// A text as XML. Offsets of names and values are kept, so that everything has a line and a column.
class XmlText {
 public:
  /// Errors: what is no XML; text beside the elements; another root than `root`, or several.
  static Expected<XmlText> parse(std::string_view text, const std::string& file, const char* root);

  [[nodiscard]] pugi::xml_node root() const { return root_; }
  [[nodiscard]] SourceLocation where(pugi::xml_node node) const { return at(node.name()); }
  [[nodiscard]] SourceLocation where(pugi::xml_attribute attribute) const { return at(attribute.value()); }

  /// The elements of `parent`. Errors: others than `name`, text.
  [[nodiscard]] Expected<std::vector<pugi::xml_node>> children(pugi::xml_node parent, std::string_view name) const;
  /// Errors: an attribute that is missing, unknown or given twice.
  [[nodiscard]] Status check_attributes(pugi::xml_node node, std::initializer_list<std::string_view> needed,
                                        std::initializer_list<std::string_view> others = {}) const;
  /// Errors: no whole number from low to high. The attribute is there.
  [[nodiscard]] Expected<std::int64_t> integer(pugi::xml_node node, const char* attribute, std::int64_t low, std::int64_t high) const;

 private:
  [[nodiscard]] SourceLocation at(const char* in_buffer) const;
  [[nodiscard]] SourceLocation at(std::size_t offset) const;

  std::string file_;
  std::vector<std::size_t> lines_;       // where each begins
  std::unique_ptr<std::string> buffer_;  // that the document points into
  std::unique_ptr<pugi::xml_document> document_;
  pugi::xml_node root_;
};

}  // namespace podsim
