#include "workloads/hlo/hlo_header.hpp"

#include "workloads/hlo/declared_shapes.hpp"
#include "workloads/hlo/hlo_field_text.hpp"

namespace podsim {

namespace {

constexpr std::int64_t most_header_devices = std::int64_t{1} << 24, most_parameters = std::int64_t{1} << 24;
constexpr std::size_t deepest_index = 64;

class HeaderText : private HloFieldText {
 public:
  HeaderText(HloCursor& cursor, HloModule& module) : HloFieldText{cursor}, module_{module} {}

  Status read() { return status(read_all()); }
  Status read_only_aliases(std::vector<HloAlias>& aliases) { return status(read_aliases(aliases)); }

 private:
  bool read_all() {
    cursor_.skip_spaces();
    const std::size_t begin = cursor_.at();
    // A name as jax gives it may hold any character but these.
    cursor_.move_to(std::min(cursor_.text().find_first_of(", \t\r\n", begin), cursor_.text().size()));
    module_.name = std::string{cursor_.since(begin)};
    if (module_.name.empty()) return expected("the name of a module");
    cursor_.skip_spaces();
    while (cursor_.take(',')) {
      cursor_.skip_spaces();
      const std::string_view key = cursor_.take_name();
      if (key.empty() || !cursor_.take('=')) return expected("KEY=VALUE of a module");
      if (!read_value(key)) return false;
      cursor_.skip_spaces();
    }
    return cursor_.ended() || cursor_.peek() == '\n' || expected("\",\" and KEY=VALUE, or the end of the line");
  }

  bool read_value(std::string_view key) {
    if (key == "is_scheduled") {
      module_.is_scheduled = cursor_.take("true");
      return module_.is_scheduled || cursor_.take("false") || expected("true or false");
    }
    if (key == "num_partitions") {
      std::int64_t count = 0;
      if (!read_count(count)) return false;
      module_.num_partitions = count;
      return true;
    }
    if (key == "replica_count") return read_count(module_.replica_count);
    if (key == "input_output_alias") return read_aliases(module_.aliases);
    if (key == "buffer_donor") return read_donors();
    const std::size_t begin = cursor_.at();
    if (key == "entry_computation_layout") {
      if (const auto layout = read_entry_layout(cursor_); !layout) return error_ = layout.error(), false;
      cursor_.move_to(begin);
    }
    if (cursor_.peek() == '{' && !cursor_.take_balanced()) return expected("\"}\" for every \"{\"");
    if (cursor_.peek() == '"' && !cursor_.take_quoted()) return expected("a text that ends with a quotation mark");
    cursor_.skip_to(",\n");
    module_.others.push_back({std::string{key}, std::string{cursor_.since(begin)}, true});
    return true;
  }

  bool read_count(std::int64_t& count) {
    const std::size_t at = cursor_.at();
    const auto value = cursor_.take_integer();
    if (value && *value >= 1 && *value <= most_header_devices) return count = *value, true;
    cursor_.move_to(at);
    return expected("a number from 1 to 2^24");
  }

  /// {0, 1}: which element of nested tuples.
  bool read_index(std::vector<std::int64_t>& index) {
    if (!is('{', "\"{\" and the index of an element")) return false;
    cursor_.skip_blanks();
    if (cursor_.take('}')) return true;
    do {
      cursor_.skip_blanks();
      const auto value = cursor_.take_integer();
      if (!value || *value < 0 || index.size() == deepest_index) return expected("the index of an element");
      index.push_back(*value);
      cursor_.skip_blanks();
    } while (cursor_.take(','));
    return is('}', "\",\" or \"}\"");
  }

  /// (3, {1}: the closing bracket is left.
  bool read_parameter(int& parameter, std::vector<std::int64_t>& index) {
    if (!is('(', "\"(\" and a parameter")) return false;
    cursor_.skip_blanks();
    const auto value = cursor_.take_integer();
    if (!value || *value < 0 || *value > most_parameters) return expected("the number of a parameter");
    parameter = static_cast<int>(*value);
    return is(',', "\",\" and the index of an element") && read_index(index);
  }

  template <class Read>
  bool read_list(Read read) {
    if (!is('{', "\"{\"")) return false;
    cursor_.skip_blanks();
    if (cursor_.take('}')) return true;
    do {
      if (!read()) return false;
      cursor_.skip_blanks();
    } while (cursor_.take(','));
    return is('}', "\",\" or \"}\"");
  }

  bool read_aliases(std::vector<HloAlias>& aliases) {
    return read_list([&] {
      HloAlias& alias = aliases.emplace_back();
      if (!read_index(alias.output) || !is(':', "\":\" and the parameter that an output aliases") ||
          !read_parameter(alias.parameter, alias.parameter_index))
        return false;
      cursor_.skip_blanks();
      if (cursor_.take(',')) {
        cursor_.skip_blanks();
        alias.must = cursor_.take("must-alias");
        if (!alias.must && !cursor_.take("may-alias")) return expected("may-alias or must-alias");
      }
      return is(')', "\")\"");
    });
  }

  bool read_donors() {
    return read_list([&] {
      HloDonor& donor = module_.donors.emplace_back();
      return read_parameter(donor.parameter, donor.parameter_index) && is(')', "\")\"");
    });
  }

  HloModule& module_;
};

}  // namespace

Status read_hlo_header(HloCursor& cursor, HloModule& module) { return HeaderText{cursor, module}.read(); }

Status read_hlo_aliases(HloCursor& cursor, std::vector<HloAlias>& aliases) {
  HloModule none;
  return HeaderText{cursor, none}.read_only_aliases(aliases);
}

}  // namespace podsim
