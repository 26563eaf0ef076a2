// Transformer blocks as Protobuf messages, shared by their own files and the files of plans. Only readers and writers include this.
#pragma once

#include "sim/config/message_file.hpp"
#include "workloads/transformer.hpp"
#include "workloads/transformer.pb.h"

namespace podsim {

/// Reports errors to `file`.
TransformerBlock read_block(const proto::TransformerBlock& message, MessageFile& file, const Place& root);
void write_block(const TransformerBlock& block, proto::TransformerBlock& message);

}  // namespace podsim
