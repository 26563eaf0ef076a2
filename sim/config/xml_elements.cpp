#include "sim/config/xml_elements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace podsim {

namespace {

/// Comments, declarations and spaces between elements are left out; other text is kept, to be refused.
constexpr unsigned flags = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_wconv_attribute;

bool is_text(pugi::xml_node node) { return node.type() == pugi::node_pcdata || node.type() == pugi::node_cdata; }
const char* first_letter(pugi::xml_node text) { return text.value() + std::strspn(text.value(), " \t\r\n"); }

}  // namespace

Expected<XmlText> XmlText::parse(std::string_view text, const std::string& file, const char* root) {
  XmlText xml;
  xml.file_ = file;
  xml.lines_.push_back(0);
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') xml.lines_.push_back(i + 1);
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) return Diagnostic{xml.at(nul), "expected XML, found a zero byte"};
  xml.buffer_ = std::make_unique<std::string>(text);
  xml.document_ = std::make_unique<pugi::xml_document>();
  // In place, so that names and values stay where they stand in the text, and as UTF-8, so that nothing is converted to another buffer.
  const pugi::xml_parse_result parsed = xml.document_->load_buffer_inplace(xml.buffer_->data(), xml.buffer_->size(), flags, pugi::encoding_utf8);
  const SourceLocation stopped = xml.at(static_cast<std::size_t>(std::max<std::ptrdiff_t>(parsed.offset, 0)));
  if (parsed.status == pugi::status_no_document_element) return Diagnostic{stopped, fmt::format("expected the element {}, found none", quoted(root))};
  if (!parsed) {
    std::string problem = parsed.description();
    if (!problem.empty()) problem.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(problem.front())));
    return Diagnostic{stopped, "expected XML, found: " + problem};
  }
  for (const pugi::xml_node node : xml.document_->children()) {
    if (is_text(node)) return Diagnostic{xml.at(first_letter(node)), fmt::format("expected the element {}, found text", quoted(root))};
    if (std::string_view{node.name()} != root)
      return Diagnostic{xml.where(node), fmt::format("expected the element {}, found {}", quoted(root), quoted(node.name()))};
    if (xml.root_) return Diagnostic{xml.where(node), fmt::format("expected one element {}, found a second one", quoted(root))};
    xml.root_ = node;
  }
  return xml;
}

Expected<std::vector<pugi::xml_node>> XmlText::children(pugi::xml_node parent, std::string_view name) const {
  std::vector<pugi::xml_node> nodes;
  for (const pugi::xml_node node : parent.children()) {
    const std::string expected = name.empty() ? fmt::format("no elements in {}", quoted(parent.name())) : fmt::format("elements {}", quoted(name));
    if (is_text(node)) return Diagnostic{at(first_letter(node)), fmt::format("expected {}, found text", expected)};
    if (name.empty() || node.name() != name) return Diagnostic{where(node), fmt::format("expected {}, found {}", expected, quoted(node.name()))};
    nodes.push_back(node);
  }
  return nodes;
}

Status XmlText::check_attributes(pugi::xml_node node, std::initializer_list<std::string_view> needed,
                                 std::initializer_list<std::string_view> others) const {
  std::vector<std::string_view> seen;
  for (const pugi::xml_attribute attribute : node.attributes()) {
    const std::string_view name = attribute.name();
    const auto is_name = [&](std::string_view known) { return known == name; };
    if (std::none_of(needed.begin(), needed.end(), is_name) && std::none_of(others.begin(), others.end(), is_name)) {
      std::vector<std::string> names{needed.begin(), needed.end()};
      names.insert(names.end(), others.begin(), others.end());
      return Diagnostic{at(attribute.name()), fmt::format("{} has no attribute {}{}", quoted(node.name()), quoted(name), did_you_mean(name, names))};
    }
    if (std::any_of(seen.begin(), seen.end(), is_name))
      return Diagnostic{at(attribute.name()), fmt::format("expected {} once, found it twice", quoted(name))};
    seen.push_back(name);
  }
  for (const std::string_view name : needed)
    if (std::find(seen.begin(), seen.end(), name) == seen.end())
      return Diagnostic{where(node), fmt::format("expected {} with the attribute {}, found none", quoted(node.name()), quoted(name))};
  return success();
}

Expected<std::int64_t> XmlText::integer(pugi::xml_node node, const char* name, std::int64_t low, std::int64_t high) const {
  const pugi::xml_attribute attribute = node.attribute(name);
  const std::string_view text = attribute.value();
  std::int64_t number = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || rest != text.data() + text.size() || number < low || number > high)
    return Diagnostic{where(attribute), fmt::format("expected {} from {} to {}, found {}", name, low, high, quoted(text))};
  return number;
}

SourceLocation XmlText::at(const char* in_buffer) const {
  const char* const begin = buffer_->data();
  const bool inside = std::greater_equal<>{}(in_buffer, begin) && std::less_equal<>{}(in_buffer, begin + buffer_->size());
  return at(inside ? static_cast<std::size_t>(in_buffer - begin) : 0);
}

SourceLocation XmlText::at(std::size_t offset) const {
  const auto line = static_cast<std::size_t>(std::upper_bound(lines_.begin(), lines_.end(), offset) - lines_.begin());
  return {file_, static_cast<int>(line), static_cast<int>(offset - lines_[line - 1]) + 1};
}

}  // namespace podsim
