// Transformer blocks as messages: what their own files and the files of plans share. Only readers and writers include this.
#pragma once

#include "sim/config/message_file.hpp"
#include "workloads/transformer.hpp"
#include "workloads/transformer.pb.h"

namespace podsim {

/// Notes in `file` what is wrong.
TransformerBlock read_block(const proto::TransformerBlock& message, MessageFile& file, const Place& root);
void write_block(const TransformerBlock& block, proto::TransformerBlock& message);

}  // namespace podsim
