// Messages as bytes: textproto that people read and diff, and the binary form.
#include <cstdint>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <zlib.h>

#include "sim/config/message_file.hpp"

namespace podsim {
namespace {

namespace pb = google::protobuf;

constexpr std::size_t widest_line = 150;
constexpr std::size_t longest_string = 600;
constexpr std::size_t indent_step = 2;

/// Protobuf prints either one field per line or everything on one line; files want short messages whole and long ones indented.
class TextWriter {
 public:
  TextWriter() {
    printer_.SetSingleLineMode(true);
    printer_.SetUseUtf8StringEscaping(true);
    printer_.SetUseShortRepeatedPrimitives(true);
  }

  void write(const pb::Message& message, std::size_t indent) {
    const pb::Reflection& reflection = *message.GetReflection();
    std::vector<const pb::FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const pb::FieldDescriptor* field : fields) {
      const bool is_message = field->message_type() != nullptr;
      if (!is_message && field->is_packed()) {
        write_list(message, *field, indent);
        continue;
      }
      const int entries = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < entries; ++i) {
        const int index = field->is_repeated() ? i : -1;
        if (is_message) {
          write_message(*field, field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i) : reflection.GetMessage(message, field),
                        indent);
        } else {
          write_value(*field, value(message, *field, index), indent);
        }
      }
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string value(const pb::Message& message, const pb::FieldDescriptor& field, int index) const {
    std::string text;
    printer_.PrintFieldValueToString(message, &field, index, &text);
    return text;
  }

  /// A list in a string (the rows of an efficiency surface) that is longer than a line is written as several strings, which a reader joins.
  void write_value(const pb::FieldDescriptor& field, std::string_view value, std::size_t indent) {
    std::string line = fmt::format("{:{}}{}: ", "", indent, field.name());
    if (line.size() + value.size() > longest_string && field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
      text_ += line.substr(0, line.size() - 1) + '\n';
      line.assign(indent + indent_step, ' ');
      for (const std::size_t room = widest_line - line.size() - 2; line.size() + value.size() > widest_line;) {
        const std::size_t end = value.rfind("; ", room);
        if (end == std::string_view::npos) break;
        text_ += fmt::format("{}{}\"\n", line, value.substr(0, end + 2));
        value.remove_prefix(end + 2);
        line = std::string(indent + indent_step, ' ') + '"';
      }
    }
    text_ += fmt::format("{}{}\n", line, value);
  }

  void write_list(const pb::Message& message, const pb::FieldDescriptor& field, std::size_t indent) {
    std::string list;
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) list += (i == 0 ? "" : ", ") + value(message, field, i);
    text_ += fmt::format("{:{}}{}: [{}]\n", "", indent, field.name(), list);
  }

  void write_message(const pb::FieldDescriptor& field, const pb::Message& message, std::size_t indent) {
    const std::string begin = fmt::format("{:{}}{} {{", "", indent, field.name());
    // Printing is linear in the size; a message of that many bytes is surely longer than a line.
    std::string line;
    if (message.ByteSizeLong() < 4 * widest_line) printer_.PrintToString(message, &line);
    while (line.ends_with(' ')) line.pop_back();
    if (line.empty() && message.ByteSizeLong() == 0) {
      text_ += begin + "}\n";
    } else if (!line.empty() && begin.size() + line.size() + 3 <= widest_line) {
      text_ += fmt::format("{} {} }}\n", begin, line);
    } else {
      text_ += begin + '\n';
      write(message, indent + indent_step);
      text_ += fmt::format("{:{}}}}\n", "", indent);
    }
  }

  pb::TextFormat::Printer printer_;
  std::string text_;
};

}  // namespace

std::string to_textproto(const pb::Message& message) {
  TextWriter writer;
  writer.write(message, 0);
  const pb::Descriptor& descriptor = *message.GetDescriptor();
  return fmt::format("# proto-file: {}\n# proto-message: {}\n\n{}", descriptor.file()->name(), descriptor.full_name(), writer.text());
}

std::string to_binary(const pb::Message& message, const FileFormat& format) {
  std::string payload;
  {
    const pb::LogSilencer quiet;  // strings that are not UTF-8 are the reader's to refuse
    payload = message.SerializePartialAsString();
  }
  return framed(format.tag, payload, format.checked);
}

std::uint32_t checksum_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string framed(char tag, std::string_view payload, bool checked) {
  std::string bytes = std::string(binary_magic) + tag;
  const auto put = [&](std::uint64_t number, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xff);
  };
  put(payload.size(), 8);
  if (checked) put(checksum_of(payload), 4);
  return bytes.append(payload);
}

std::string encode(const pb::Message& message, const FileFormat& format, Encoding encoding) {
  return encoding == Encoding::binary ? to_binary(message, format) : to_textproto(message);
}

}  // namespace podsim
