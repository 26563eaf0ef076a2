// Where the values of a textproto stand. MessageFile knows where fields stand: for a list in brackets that is one place for all of its values, and a
// sweep is lists.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"

namespace podsim {

/// The places of a message's values, of each field in the order of the text.
struct PlacedMessage {
  SourceLocation where;  // of its field's name
  std::map<std::string, std::vector<SourceLocation>, std::less<>> values;
  std::map<std::string, std::vector<PlacedMessage>, std::less<>> messages;
};

/// Of a text that has been parsed without an error (otherwise places are missing).
PlacedMessage places_of(std::string_view text, const std::string& file);

}  // namespace podsim
