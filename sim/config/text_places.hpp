// Where the entries of lists stand in a textproto. Protobuf can tell the place of every field, in more memory than the message takes; this tells those
// of a few, at the price of reading the tokens once more.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

/// Line and column, from 1, of the name of a field.
struct TextPlace {
  int line = 0, column = 0;
  friend bool operator==(const TextPlace&, const TextPlace&) = default;
};

/// Of each entry of the list `outer` of a text: by name, where the entries of lists in it stand, in the order of the file.
using PlacesInEntry = std::map<std::string, std::vector<TextPlace>, std::less<>>;
/// `text` is a textproto that Protobuf has parsed.
std::vector<PlacesInEntry> places_in(std::string_view text, std::string_view outer, const std::vector<std::string_view>& inner);

}  // namespace podsim
