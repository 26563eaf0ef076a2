// The attributes of nodes: which names have a meaning, and in which variant their readers look for the value. Internal to this folder.
#pragma once

#include <string>
#include <string_view>

#include "workloads/chakra/chakra.pb.h"
#include "workloads/chakra/trace.hpp"

namespace podsim {

/// What is wrong with the attributes of a record; empty: nothing.
std::string read_attributes(const ChakraProtoMsg::Node& message, ChakraNode& node);
/// All attributes that the node's type takes, and is_cpu_op always.
void write_attributes(const ChakraNode& node, ChakraProtoMsg::Node& message);

}  // namespace podsim
