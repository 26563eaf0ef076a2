// In the form that torch/csrc/profiler/standalone/execution_trace_observer.cpp of PyTorch writes.
#include "workloads/chakra/pytorch_trace.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "workloads/chakra/read_chakra.hpp"

namespace podsim {
namespace {

std::string torch_node(int id, const std::string& collective, std::int64_t elements, const std::string& dtype, const std::string& group, int start, int stride, int size) {
  return fmt::format(R"({{"id": {}, "name": "record_param_comms", "ctrl_deps": 2, "inputs": {{"values": [], "shapes": [], "types": []}}, "outputs": {{"values": [], "shapes": [], "types": []}},
    "attrs": [{{"name": "rf_id", "type": "uint64", "value": 7}}, {{"name": "collective_name", "type": "string", "value": "{}"}}, {{"name": "dtype", "type": "string", "value": "{}"}},
    {{"name": "in_msg_nelems", "type": "uint64", "value": {}}}, {{"name": "out_msg_nelems", "type": "uint64", "value": {}}}, {{"name": "global_rank_start", "type": "uint64", "value": {}}},
    {{"name": "global_rank_stride", "type": "uint64", "value": {}}}, {{"name": "pg_name", "type": "string", "value": "{}"}}, {{"name": "pg_size", "type": "uint64", "value": {}}}]}})",
                     id, collective, dtype, elements, elements, start, stride, group, size);
}

std::string torch_trace(const std::string& nodes) { return R"({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": [{"id": 2, "name": "aten::mm", "attrs": []}, )" + nodes + "]}"; }

TEST(PytorchTrace, CollectivesFollowEachOtherInTheirGroup) {
  const auto read = parse_chakra(torch_trace(torch_node(3, "_allgather_base", 1000, "BFloat16", "0", 0, 1, 4) + ", " + torch_node(4, "wait", 0, "Byte", "0", 0, 1, 4) + ", " + torch_node(5, "allreduce", 10, "Float", "2", 1, 2, 2) + ", " +
                                       torch_node(6, "_reduce_scatter_base", 4000, "Float", "0", 0, 1, 4)),
                                 "t.0.et");
  ASSERT_TRUE(read) << to_text(read.error());
  ASSERT_EQ(read->nodes.size(), 3U);
  EXPECT_EQ(read->nodes[0].comm_type, static_cast<std::int64_t>(ChakraCollective::all_gather));
  EXPECT_EQ(read->nodes[0].comm_size, 2000);
  EXPECT_EQ(read->nodes[0].pg_name, "");
  EXPECT_EQ(read->nodes[1].comm_size, 40);
  EXPECT_EQ(read->groups.at(read->nodes[1].pg_name), (std::vector<int>{1, 3}));
  EXPECT_TRUE(read->nodes[1].ctrl_deps.empty()) << "another stream";
  EXPECT_EQ(read->nodes[2].ctrl_deps, std::vector<std::uint64_t>{1});
}

// As PyTorch wrote it, lines and all; counted and added up by a few lines of Python over its attributes.
TEST(PytorchTrace, OfAModelOnTwoGpusIsReadAsItIsWritten) {
  const std::string name = PODSIM_SOURCE_DIR "/workloads/chakra/testdata/pytorch_resnet_2gpu.json.gz";
  std::ifstream file{name, std::ios::binary};
  const auto trace = parse_chakra(std::string{std::istreambuf_iterator<char>{file}, {}}, name);
  ASSERT_TRUE(trace) << to_text(trace.error());
  EXPECT_EQ(trace->nodes.size(), 21U);
  std::int64_t bytes = 0, sums = 0;
  for (const ChakraNode& node : trace->nodes) bytes += node.comm_size, sums += node.comm_type == static_cast<std::int64_t>(ChakraCollective::all_reduce) ? 1 : 0;
  EXPECT_EQ(bytes, 307'323'096);
  EXPECT_EQ(sums, 15);
}

TEST(PytorchTrace, WhatCannotBePlayedIsSaidWithItsPlace) {
  const auto message = [](const std::string& nodes) {
    const auto read = parse_chakra(torch_trace(nodes), "t.0.et");
    return read ? std::string{"read"} : to_text(read.error());
  };
  EXPECT_EQ(message(torch_node(3, "send", 1, "Float", "0", 0, 1, 4)), "t.0.et: record 1: expected a collective of c10d, found \"send\": these traces do not say to whom it goes");
  EXPECT_EQ(message(torch_node(3, "allreduce", 1, "Quaternion", "0", 0, 1, 4)), "t.0.et: record 1: expected a dtype of torch, as \"BFloat16\", found \"Quaternion\"");
  EXPECT_NE(message(R"({"id": 3, "name": "record_param_comms", "attrs": []})").find("expected an attribute \"collective_name\""), std::string::npos);
  EXPECT_NE(message(R"({"id": 3, "name": "aten::add"})").find("expected a node record_param_comms"), std::string::npos);
  EXPECT_FALSE(parse_chakra("{\"nodes\": ", "t"));
  EXPECT_FALSE(parse_chakra("{}", "t"));
}

}  // namespace
}  // namespace podsim
