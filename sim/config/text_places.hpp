// Locations of list entries in a textproto. Protobuf can record the location of every field, but needs more memory for that than for the message;
// this finds the locations of a few lists by a second pass over the tokens.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace podsim {

/// The line and column of a field's name, from 1.
struct TextPlace {
  int line = 0, column = 0;
  friend bool operator==(const TextPlace&, const TextPlace&) = default;
};

/// For one entry of the list `outer`: the locations of the entries of lists inside it, by field name, in file order.
using PlacesInEntry = std::map<std::string, std::vector<TextPlace>, std::less<>>;
/// `text` must be a textproto that Protobuf has parsed.
std::vector<PlacesInEntry> places_in(std::string_view text, std::string_view outer, const std::vector<std::string_view>& inner);

}  // namespace podsim
