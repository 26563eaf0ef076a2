// Every dataset is readable, says where it is from, and holds what its source held.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "sim/base/test_files.hpp"
#include "validation/calibration/observations.hpp"

namespace podsim {
namespace {

const std::filesystem::path folder = std::string{PODSIM_SOURCE_DIR} + "/validation/datasets";

std::vector<Observation> dataset(const std::string& name) {
  const std::string path = (folder / name / "observations.csv").string();
  const auto rows = read_observations(test::bytes_of_file(path), path);
  if (!rows) return ADD_FAILURE() << to_text(rows.error()), std::vector<Observation>{};
  return *rows;
}

using Counts = std::map<ObservedOp, int>;
using enum ObservedOp;

const std::map<std::string, Counts> expected_counts = {
    {"a100_16_nccl", {{all_reduce, 29}}},
    {"a100_8_nccl", {{all_reduce, 20}}},
    {"a100_fft3d", {{fft, 24}, {ifft, 24}}},
    {"a100_gemm", {{matmul, 20}}},
    {"b200_8_nccl", {{all_gather, 28}, {all_reduce, 32}}},
    {"gemm_bf16_a100", {{matmul, 2541}}},
    {"gemm_bf16_h100", {{matmul, 3479}}},
    {"h100_16_nccl", {{all_reduce, 32}}},
    {"h100_collective_matmul", {{all_gather, 6}, {matmul, 1}}},
    {"h200_products", {{matmul, 35}, {hbm_copy, 6}}},
    {"msccl_h100", {{all_gather, 21}, {all_reduce, 21}}},
    {"nccl_a100_sxm", {{all_gather, 126}, {reduce_scatter, 126}, {all_reduce, 126}, {all_to_all, 126}}},
    {"nccl_b200", {{all_gather, 126}, {reduce_scatter, 126}}},
    {"nccl_b200_2_27", {{all_gather, 126}, {reduce_scatter, 126}}},
    {"nccl_h100_sxm", {{all_gather, 126}, {reduce_scatter, 126}, {all_reduce, 126}, {all_to_all, 126}}},
    {"xla_b200", {{all_gather, 44}, {reduce_scatter, 44}, {all_reduce, 44}, {permute, 44}}},
    {"xla_gb200", {{all_gather, 129}, {reduce_scatter, 129}, {all_reduce, 132}}},
    {"xla_h100", {{all_gather, 66}, {reduce_scatter, 66}, {all_reduce, 66}, {all_to_all, 66}, {permute, 44}}},
    {"lab_4x4", {{run, 320}}},
    {"mpi_2_ranks", {{all_gather, 25}, {reduce_scatter, 25}, {all_reduce, 17}, {all_to_all, 17}, {permute, 17}, {matmul, 12}, {hbm_copy, 13}}},
    {"bloom_a100", {{training_step, 29}}},
    {"fsdp_a100", {{training_step, 1}}},
    {"fsdp_h100", {{training_step, 3}}},
    {"fsdp_h200", {{training_step, 1}}},
    {"megatron_a100", {{training_step, 8}}},
    {"megatron_a100_2021", {{training_step, 8}}},
    {"nemo_h100", {{training_step, 23}}},
    {"palm_540b", {{training_step, 1}}},
    {"tpu_v4_training", {{training_step, 6}}},
    {"tpu_v4_training_2023_03", {{training_step, 5}}},
    {"tpu_v5e_training", {{training_step, 24}}},
    {"tpu_v5e_training_2023_08", {{training_step, 2}}},
    {"tpu_v5p_512b", {{training_step, 2}}},
    {"tpu_v5p_mixtral", {{training_step, 1}}},
    {"tpu_v5p_training", {{training_step, 14}}},
    {"tpu7x_gemm", {{matmul, 8}}},
    {"tpu7x_hbm_copy", {{hbm_copy, 13}}},
    {"tpu_v3_tutorial", {{matmul, 2}}},
    {"tpu_v5e_8_jetstream", {{all_gather, 3}, {all_reduce, 2}, {matmul, 1}}},
    {"tpu_v5e_scaling_book", {{all_gather, 2}}},
    {"tpu_v5p_2x2_maxtext", {{all_gather, 4}, {reduce_scatter, 8}, {all_reduce, 5}, {all_to_all, 2}, {matmul, 27}}},
    {"tpu_v5p_ppermute", {{permute, 3}}},
    {"tpu_v6e_ppermute", {{permute, 3}}},
};

TEST(Datasets, AllAreReadableAndHoldWhatTheirSourceHeld) {
  std::map<std::string, Counts> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory())
      for (const Observation& row : dataset(entry.path().filename().string())) ++found[entry.path().filename().string()][row.op];
  EXPECT_EQ(found, expected_counts);
}

TEST(Datasets, EveryFolderOfOthersFiguresStatesItsLicence) {
  const std::filesystem::path root = PODSIM_SOURCE_DIR;
  std::vector<std::filesystem::path> folders{root / "validation/meshslice-isca25", root / "validation/meshslice_tuner", root / "topologies/testdata"};
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory()) folders.push_back(entry.path());
  for (const std::filesystem::path& of : folders) {
    const std::string readme = test::bytes_of_file((of / "README.md").string());
    EXPECT_NE(readme.find("Licence: "), std::string::npos) << of << "/README.md: expected a line \"Licence: \"";
  }
}

TEST(Datasets, EachSaysItsSourceBesideTheFiguresAndInItsReadme) {
  for (const auto& [name, counts] : expected_counts) {
    SCOPED_TRACE(name);
    const std::string csv = test::bytes_of_file((folder / name / "observations.csv").string());
    const std::string readme = test::bytes_of_file((folder / name / "README.md").string());
    EXPECT_TRUE(csv.starts_with("# Source: "));
    EXPECT_NE(csv.find("\n# Derived: "), std::string::npos);
    EXPECT_NE(readme.find("\nSource: "), std::string::npos);
    EXPECT_NE(readme.find("\nLicence: "), std::string::npos);
    EXPECT_NE(readme.find("\n| schedule | "), std::string::npos);
    EXPECT_NE(readme.find("\nWhat it cannot tell: "), std::string::npos);
  }
}

TEST(Datasets, NoMatmulIsFasterThanItsChip) {
  const std::map<std::string, FlopsPerSecond> peaks = {{"a100_gemm", FlopsPerSecond{312e12}},
                                                       {"gemm_bf16_a100", FlopsPerSecond{312e12}},
                                                       {"gemm_bf16_h100", FlopsPerSecond{989.4e12}},
                                                       {"h100_collective_matmul", FlopsPerSecond{989e12}},
                                                       {"h200_products", FlopsPerSecond{989.4e12}},
                                                       {"mpi_2_ranks", FlopsPerSecond{166e9}},
                                                       {"tpu7x_gemm", FlopsPerSecond{1153.5e12}},
                                                       {"tpu_v3_tutorial", FlopsPerSecond{70e12}},
                                                       {"tpu_v5e_8_jetstream", FlopsPerSecond{197e12}},
                                                       {"tpu_v5p_2x2_maxtext", FlopsPerSecond{466.8e12}}};
  for (const auto& [name, peak] : peaks)
    for (const Observation& row : dataset(name)) {
      const Flops work{2.0 * static_cast<double>(row.m) * static_cast<double>(row.n) * static_cast<double>(row.k)};
      EXPECT_GT(row.time, work / peak) << name << ':' << row.where.line;
    }
}

TEST(Datasets, GatheredBytesAreThoseOfOneDevice) {
  const auto book = dataset("tpu_v5e_scaling_book");
  ASSERT_EQ(book.size(), 2U);
  EXPECT_EQ(book[0].bytes, Bytes{2048 * 8192 * 2 / 4});
  EXPECT_EQ(book[0].time, Seconds{680e-6});
  const auto kernel = dataset("h100_collective_matmul");
  for (const Observation& row : kernel)
    if (row.op == all_gather) {
      EXPECT_EQ(row.bytes.count() * row.devices, row.m * row.k * 2) << row.where.line;
    }
  for (const Observation& row : dataset("xla_gb200")) {
    EXPECT_TRUE(row.slice == "1x64" || row.slice == "1x72") << row.where.line;
    EXPECT_EQ("1x" + std::to_string(row.groups * row.devices), row.slice) << row.where.line << ": the groups fill their slice";
  }
  for (const Observation& row : dataset("nccl_h100_sxm"))
    if (row.op == all_gather && row.devices == 4) {
      EXPECT_EQ(row.slice, "1x4") << row.where.line;
    }
  for (const Observation& row : dataset("b200_8_nccl"))
    if (row.op == all_gather && row.time == Seconds{1486.06e-6}) {
      EXPECT_EQ(row.bytes, Bytes{1073741824 / 8});
    }
}

}  // namespace
}  // namespace podsim
