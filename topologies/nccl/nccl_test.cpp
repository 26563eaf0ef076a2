// Topologies that NCCL and RCCL wrote: what is read of real files, the networks that they become, and bad ones.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "sim/config/files.hpp"
#include "sim/topology/bisection.hpp"
#include "topologies/interconnect.hpp"
#include "topologies/machines.hpp"
#include "topologies/nccl/nccl_graphs.hpp"
#include "topologies/nccl/nccl_network.hpp"
#include "topologies/nccl/nccl_tuner.hpp"

namespace podsim {
namespace {

const std::string folder = PODSIM_SOURCE_DIR "/topologies/nccl/testdata/";
constexpr LinkParameters to_rail{BytesPerSecond{50e9}, Seconds{1e-6}, 0}, to_switch{BytesPerSecond{370.8e9}, Seconds{3e-7}, 0.8};

NcclSystem system_in(const std::string& name) {
  const auto text = read_file(folder + name, list_limit);
  EXPECT_TRUE(text) << to_text(text.error());
  const auto system = read_nccl_system(*text, name);
  if (!system) return ADD_FAILURE() << to_text(system.error()), NcclSystem{};
  return *system;
}

Network network_of(const std::string& name, int nodes) {
  auto network = nccl_network(system_in(name), nodes, to_rail, to_switch);
  EXPECT_TRUE(network) << to_text(network.error());
  return *std::move(network);
}

/// "0.0 > nvswitch 0 > 0.3"
std::string way(const Network& network, int from, int to) {
  std::vector<LinkId> links;
  EXPECT_TRUE(network.route(ChipId{from}, ChipId{to}, {}, links));
  std::string text = network.chip_name(ChipId{from});
  for (const LinkId link : links) text += " > " + network.link_name(link).substr(network.link_name(link).find("->") + 2);
  return text;
}

std::string error_of(const std::string& text) {
  const auto system = read_nccl_system(text, "t");
  return system ? "no error" : to_text(system.error());
}

TEST(NcclSystem, WhatRealFilesHold) {
  EXPECT_EQ(to_text(system_in("ibm_h100.xml")), "8 GPUs, 8 of them on NVSwitches by 370.8 GB/s, 8 PCIe switches, 2 CPUs, 8 network interfaces of 25 GB/s");
  EXPECT_EQ(to_text(system_in("rccl_8p_940.xml")), "8 GPUs, 28 pairs linked directly by 48 GB/s, 8 PCIe switches, 2 CPUs, 8 network interfaces of 50 GB/s");
  EXPECT_EQ(to_text(system_in("azure_ndv5.xml")), "8 GPUs, 8 PCIe switches, 2 CPUs, 8 network interfaces");
  EXPECT_EQ(to_text(system_in("aws_p4d.xml")), "8 GPUs, 4 PCIe switches, 2 CPUs, 4 network interfaces");
  EXPECT_EQ(to_text(system_in("h200_one_gpu.xml")), "1 GPU, 1 CPU, 1 network interface of 1.25 GB/s");
}

TEST(NcclSystem, TheMachineWithSuchGpus) {
  for (const auto& [file, machine] : {std::pair{"ibm_h100.xml", "dgx_h100"}, {"h200_one_gpu.xml", "dgx_h200"}, {"aws_p4d.xml", "dgx_a100"}, {"rccl_8p_940.xml", ""}})
    EXPECT_EQ(system_in(file).machine, machine) << file;
}

TEST(NcclSystem, SaysWhatTheFileLeavesOpen) {
  EXPECT_TRUE(system_in("ibm_h100.xml").notes.empty());
  const std::vector<std::string> expected{"the file leaves NVLinks to NCCL: every GPU has the machine's, link[y], to one switch",
                                          "the file leaves the speed of network interfaces to NCCL: each has the machine's, link[x]"};
  EXPECT_EQ(system_in("azure_ndv5.xml").notes, expected);
  const auto system = read_nccl_system("<system><cpu><pci class='0x030200'><gpu><c2c bw='1'/><nvlink target='x' tclass='0x030200'/></gpu></pci><pci busid='a'/><pci class='0x0108'/></cpu><numa/></system>", "t");
  ASSERT_TRUE(system) << to_text(system.error());
  EXPECT_EQ(system->notes, (std::vector<std::string>{"not read: numa (once)", "not read: nvlink to no other GPU of the file (once)", "not read: pci of another class (once)", "not read: pci without a class (once)"}));
}

TEST(NcclNetwork, GpusOfANodeTakeTheirNvlinks) {
  const Network one = network_of("ibm_h100.xml", 1);
  EXPECT_EQ(one.chips(), 8);
  EXPECT_EQ(way(one, 0, 3), "0.0 > nvswitch 0 > 0.3");
  EXPECT_EQ(way(network_of("rccl_8p_940.xml", 1), 2, 7), "0.2 > 0.7");
  EXPECT_DOUBLE_EQ(one.link(one.out_links(ChipId{0}).front().link).bandwidth.count(), 370.8e9);
}

TEST(NcclNetwork, BetweenNodesTheyTakeTheRailOfTheOneThatReceives) {
  const Network two = network_of("ibm_h100.xml", 2);
  // The file's mlx5_7 is beside GPU 0.
  EXPECT_EQ(way(two, 0, 8), "0.0 > port 0.0 > pci 0.0 > nic 0.7 > rail 7 > nic 1.7 > pci 1.0 > port 1.0 > 1.0");
  EXPECT_EQ(way(two, 0, 11), "0.0 > nvswitch 0 > 0.3 > port 0.3 > pci 0.3 > nic 0.4 > rail 4 > nic 1.4 > pci 1.3 > port 1.3 > 1.3");
  EXPECT_DOUBLE_EQ(bisection_bandwidth(two).count(), 8 * 25e9);
}

TEST(NcclNetwork, GpusThatShareAnInterfaceShareItsBandwidth) {
  const Network two = network_of("aws_p4d.xml", 2);
  EXPECT_EQ(way(two, 0, 8), "0.0 > port 0.0 > pci 0.0 > nic 0.0 > rail 0 > nic 1.0 > pci 1.0 > port 1.0 > 1.0");
  EXPECT_EQ(way(two, 1, 9), "0.1 > port 0.1 > pci 0.0 > nic 0.0 > rail 0 > nic 1.0 > pci 1.0 > port 1.1 > 1.1");
}

TEST(NcclNetwork, SeveralInterfacesOfOneGpuAreOne) {
  std::string text = "<system><cpu><pci class='0x060400'><pci class='0x030200' link_width='16' link_speed='32.0 GT/s PCIe'><gpu sm='90'/></pci>";
  for (int n = 0; n < 4; ++n) text += "<pci class='0x020000' link_width='8' link_speed='16.0 GT/s PCIe'><nic><net name='e" + std::to_string(n) + "' dev='" + std::to_string(n) + "' speed='100000' latency='75'/></nic></pci>";
  const auto system = read_nccl_system(text + "</pci></cpu></system>", "t");
  ASSERT_TRUE(system) << to_text(system.error());
  const auto network = nccl_network(*system, 2, to_rail, to_switch);
  ASSERT_TRUE(network) << to_text(network.error());
  std::vector<LinkId> links;
  ASSERT_TRUE(network->route(ChipId{0}, ChipId{1}, {}, links));
  ASSERT_EQ(links.size(), 8U);
  EXPECT_DOUBLE_EQ(network->link(links[2]).bandwidth.count(), 4 * 12e9);
  EXPECT_DOUBLE_EQ(network->link(links[3]).bandwidth.count(), 4 * 12.5e9);
  EXPECT_DOUBLE_EQ(network->link(links[3]).latency.count() + network->link(links[4]).latency.count(), 75e-6);
}

/// Two GPUs, and what else is below their CPU.
Network two_nodes(const std::string& gpu, const std::string& more) {
  const auto system = read_nccl_system("<system><cpu><pci busid='a' class='0x0302' link_speed='2.5 GT/s PCIe' link_width='16'>" + gpu + "</pci>" + more + "</cpu></system>", "t");
  EXPECT_TRUE(system) << to_text(system.error());
  auto network = nccl_network(*system, 2, to_rail, to_switch);
  EXPECT_TRUE(network) << to_text(network.error());
  return *std::move(network);
}

TEST(NcclNetwork, PortsOfACardShareItsPcieLink) {
  // A ConnectX-4 of two ports of 100 Gb/s behind 16 lanes of 8 GT/s, as in public dumps.
  const std::string card = "<pci class='0x0207' link_speed='8.0 GT/s PCIe' link_width='16'><nic><net name='mlx5_0' dev='0' speed='100000'/><net name='mlx5_1' dev='1' speed='100000'/></nic></pci>";
  const Network of_one = two_nodes("<gpu sm='89' rank='0'/>", card), of_two = two_nodes("<gpu sm='89' rank='0'/>", "<pci busid='b' class='0x0302'><gpu sm='89' rank='1'/></pci>" + card);
  EXPECT_EQ(way(of_one, 0, 1), "0.0 > port 0.0 > cpu 0.0 > nic 0.0 > rail 0 > nic 1.0 > cpu 1.0 > port 1.0 > 1.0");
  EXPECT_EQ(way(of_two, 1, 3), "0.1 > port 0.1 > cpu 0.0 > card 0.0 > nic 0.1 > rail 1 > nic 1.1 > card 1.0 > cpu 1.0 > port 1.1 > 1.1");
  std::vector<LinkId> links;
  ASSERT_TRUE(of_one.route(ChipId{0}, ChipId{1}, {}, links));
  EXPECT_DOUBLE_EQ(of_one.link(links[2]).bandwidth.count(), 12e9);
  EXPECT_DOUBLE_EQ(of_one.link(links[3]).bandwidth.count(), 25e9);
}

TEST(NcclNetwork, GpusReachTheirCpuByC2c) {
  // A GB10: eight C2C links of 43125 MB/s beside a PCIe link of the first generation.
  const Network two = two_nodes("<gpu sm='121' rank='0'><c2c bw='43125' count='8'/></gpu>", "<pci link_speed='32.0 GT/s PCIe' link_width='4'><nic><net name='rocep1s0f0' speed='200000'/></nic></pci>");
  EXPECT_EQ(way(two, 0, 1), "0.0 > cpu 0.0 > nic 0.0 > rail 0 > nic 1.0 > cpu 1.0 > 1.0");
  std::vector<LinkId> links;
  ASSERT_TRUE(two.route(ChipId{0}, ChipId{1}, {}, links));
  EXPECT_DOUBLE_EQ(two.link(links[0]).bandwidth.count(), 345e9);
  EXPECT_DOUBLE_EQ(two.link(links[1]).bandwidth.count(), 12e9);
}

TEST(NcclSystem, SaysWhichNvlinksAreMissing) {
  std::string text = "<system><cpu>";
  for (int g = 0; g < 4; ++g) {
    const std::string links = g == 1 ? "" : "<nvlink target='fffffff:ff:ff.0' count='" + std::string{g == 3 ? "17" : "18"} + "' tclass='0x068000'/>";
    text += "<pci busid='" + std::to_string(g) + "' class='0x0302'><gpu sm='103' rank='" + std::to_string(g) + "'>" + links + "</gpu></pci>";
  }
  const auto system = read_nccl_system(text + "</cpu></system>", "t");
  ASSERT_TRUE(system) << to_text(system.error());
  EXPECT_EQ(system->notes, (std::vector<std::string>{"GPU 1 has 0 links to NVSwitches, others have 18: is one down?", "GPU 3 has 17 links to NVSwitches, others have 18: is one down?"}));
}

TEST(NcclSystem, SpeedsThatAreMissingOrZero) {
  const auto notes = [](const std::string& net) {
    const auto system = read_nccl_system("<system><cpu><pci class='0x0302' link_speed=''/><pci class='0x0302' link_speed='-32.0 GT/s'/><pci class='0x0302' link_speed='32.0 GB/s'/><nic>" + net + "</nic></cpu></system>", "t");
    EXPECT_TRUE(system) << to_text(system.error());
    return fmt::format("{}", fmt::join(system->notes, "\n"));
  };
  EXPECT_NE(notes("<net name='a'/>").find("leaves the speed of network interfaces to NCCL"), std::string::npos);
  EXPECT_NE(notes("<net name='a' speed='-1'/>").find("the speed of 1 network interface is 0 or below: 10 Gb/s"), std::string::npos);
  EXPECT_NE(notes("<net name='a' speed='-1'/>").find("the PCIe speed of 3 devices is empty, or none that NCCL knows: 12 GB/s on 16 lanes"), std::string::npos);
}

TEST(NcclNetwork, SeveralNodesNeedInterfaces) {
  const auto network = nccl_network(*read_nccl_system("<system><cpu><pci class='0x030200'/></cpu></system>", "t"), 2, to_rail, to_switch);
  ASSERT_FALSE(network);
  EXPECT_EQ(network.error().message, "expected one node, a slice of 1 chip, as the file names no network interface, found 2 nodes");
}

TEST(NcclNetwork, IsATopologyOfAnyMachine) {
  const auto spec = parse_topology(folder + "ibm_h100.xml", {});
  ASSERT_TRUE(spec) << to_text(spec.error());
  const Machine machine = *find_machine("dgx_h100");
  const auto slice = [&](const char* text) { return *parse_slice(text, machine, {}); };
  const auto topology = build_topology(machine, slice("4x8"), {}, *spec);
  ASSERT_TRUE(topology) << to_text(topology.error());
  EXPECT_EQ((*topology)->chips(), 32);
  EXPECT_TRUE(parse_cable(**topology, "nic 0.3-rail 3", {}));
  const auto wrong = build_topology(machine, slice("3x4"), {}, *spec);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, folder + "ibm_h100.xml describes a node of 8 GPUs; expected a slice of a multiple of it, found 3x4, 12 chips");
}

TEST(NcclSystem, BadFilesSayWhere) {
  EXPECT_EQ(error_of(""), "t:1:1: expected the element \"system\", found none");
  EXPECT_EQ(error_of("<graphs/>"), "t:1:2: expected the element \"system\", found \"graphs\"");
  EXPECT_EQ(error_of("<system>\n<cpu/></system>"), "t:1:2: expected a GPU (an element \"gpu\", or \"pci\" of the class 0x03 or 0x12), found none; where a file leaves them to NCCL, NCCL_TOPO_DUMP_FILE has them");
  EXPECT_EQ(error_of("<system><cpu><pci busid='a' class='0x03'><gpu rank='2'/></pci><pci busid='b' class='0x03'><gpu rank='2'/></pci></cpu></system>"), "t:1:102: expected every rank once, found 2 again");
  EXPECT_EQ(error_of("<system><cpu>\n <pci class='0x03' link_width='many'/></cpu></system>"), "t:2:32: expected link_width from 0 to 64, found \"many\"");
  EXPECT_EQ(error_of("<system><cpu><pci class='0x03'/><nic><net latency='soon'/></nic></cpu></system>"), "t:1:52: expected a latency in us, found \"soon\"");
  EXPECT_EQ(error_of("<system><cpu><pci busid='a' class='0x03'/><pci busid='a' class='0x03'/></cpu></system>"), "t:1:44: expected every GPU once, found the bus id \"a\" again");
  EXPECT_EQ(error_of("<system><cpu><pci class='0x03'>").substr(0, 4), "t:1:");
  std::string deep = "<system><cpu>";
  for (int i = 0; i < 100; ++i) deep += "<pci>";
  deep += "<pci class='0x03'/>";
  for (int i = 0; i < 100; ++i) deep += "</pci>";
  EXPECT_NE(error_of(deep + "</cpu></system>").find("expected at most 32 elements within each other"), std::string::npos);
}

// The form of NCCL_GRAPH_DUMP_FILE: NVIDIA/nccl, ncclTopoDumpGraphs; GPUs as Azure's NC A100 v4 has them, two orders.
TEST(NcclGraphs, RingsAreOrdersOfGpusBetweenInterfaces) {
  const std::string text = R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="1" nchannels="3" speedintra="12" speedinter="24.5" latencyinter="0" typeintra="SYS" typeinter="PIX" samechannels="0">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><gpu dev="2"/><net dev="1"/></channel>
    <channel><net dev="1"/><gpu dev="0"/><gpu dev="2"/><gpu dev="1"/><net dev="0"/></channel>
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><gpu dev="2"/><net dev="1"/></channel>
  </graph>
  <graph id="3" pattern="5" crossnic="0" nchannels="0" speedintra="0" speedinter="0" latencyinter="0" typeintra="LOC" typeinter="LOC" samechannels="0"/>
</graphs>)";
  const auto graphs = read_nccl_graphs(text, "graph.xml");
  ASSERT_TRUE(graphs) << to_text(graphs.error());
  ASSERT_EQ(graphs->size(), 2U);
  EXPECT_EQ((*graphs)[0].channels[1], (NcclChannel{1, 0, {0, 2, 1}}));
  EXPECT_EQ(to_text(*graphs),
            "ring: 3 channels of 12 GB/s each among the GPUs of a node (SYS), 24.5 GB/s between nodes (PIX), in by one interface and out by another; GPUs interface 0 > 0 1 2 > interface 1 | "
            "interface 1 > 0 2 1 > interface 0\n  none found: nvls");
}

TEST(NcclGraphs, WhatIsWrongIsToldWithItsPlace) {
  const auto message = [](const std::string& text) {
    const auto graphs = read_nccl_graphs(text, "g.xml");
    return graphs ? std::string{"read"} : to_text(graphs.error());
  };
  const std::string head = R"(<graph id="0" speedintra="12" speedinter="12">)";
  EXPECT_EQ(message("<graphs>" + head + "<channel><cpu/></channel></graph></graphs>"), "g.xml:1:65: expected an element \"gpu\" or \"net\", found \"cpu\"");
  EXPECT_EQ(message("<graphs>" + head + "<channel><gpu/></channel></graph></graphs>"), "g.xml:1:65: expected an attribute \"dev\", found none");
  EXPECT_NE(message(R"(<graphs><graph id="0" speedintra="fast" speedinter="12"/></graphs>)").find("g.xml:1:"), std::string::npos);
  EXPECT_NE(message("<graphs><ring/></graphs>").find("g.xml:1:10"), std::string::npos);
}

// Written after the form that ext-tuner/example of NVIDIA/nccl documents.
constexpr const char* tuner_table = R"(# colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
allreduce,0,65536,tree,ll,2,2,16,-1,0

allreduce,65537,4294967295,ring,simple,-1,-1,-1
allgather, 0, 100, nvls, ll128, 4, 1, -1, 1
)";

TEST(NcclTuner, TheFirstLineThatFitsIsTaken) {
  const auto rows = read_nccl_tuner(tuner_table, "t.csv");
  ASSERT_TRUE(rows) << to_text(rows.error());
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_EQ(tuned_by(*rows, "allreduce", Bytes{65536}, 2, 16)->algorithm, "tree");
  EXPECT_EQ(tuned_by(*rows, "allreduce", Bytes{65537}, 2, 16)->algorithm, "ring");
  EXPECT_EQ(tuned_by(*rows, "allreduce", Bytes{65536}, 4, 32), nullptr) << "NCCL decides";
  EXPECT_EQ(tuned_by(*rows, "allgather", Bytes{100}, 1, 8)->where.line, 5);
}

TEST(NcclTuner, WhatIsWrittenIsReadAgain) {
  const std::vector<NcclTunerRow> rows{{"allreduce", 0, 1023, "nvls", "simple", -1, 1, 8}, {"broadcast", 0, 5, "tree", "ll", 4, -1, -1, 2, 1}};
  const auto again = read_nccl_tuner(write_nccl_tuner(rows), "t.csv");
  ASSERT_TRUE(again) << to_text(again.error());
  EXPECT_EQ(write_nccl_tuner(*again), write_nccl_tuner(rows));
}

TEST(NcclTuner, WhatThePluginWouldTakeAsAnotherWordIsAnError) {
  const auto message = [](const std::string& text) {
    const auto rows = read_nccl_tuner(text, "t.csv");
    return rows ? std::string{"read"} : to_text(rows.error());
  };
  EXPECT_EQ(message("allreduce,0,5,rings,simple,-1,-1,-1"), "t.csv:1:15: expected algorithm of tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat, found \"rings\"");
  EXPECT_EQ(message("#\nall-reduce,0,5,ring,simple,-1,-1,-1"), "t.csv:2:1: expected colltype of broadcast, reduce, allgather, reducescatter, allreduce, found \"all-reduce\"");
  EXPECT_EQ(message("allreduce,0,5,ring"), "t.csv:1:1: expected 8 to 10 fields (colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff), found 4");
  EXPECT_EQ(message("allreduce,9,5,ring,simple,-1,-1,-1"), "t.csv:1:1: expected a maximum from 9 bytes on, found 5");
  EXPECT_EQ(message(""), "t.csv:1:1: expected a line colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff, found none");
}

}  // namespace
}  // namespace podsim
