#include "sim/base/thread_pool.hpp"

#include <gtest/gtest.h>

#include <new>

namespace podsim {
namespace {

TEST(ThreadPool, CallsEveryBodyOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool{threads};
    for (const std::size_t count : {0U, 1U, 3U, 1000U}) {
      std::vector<std::atomic<int>> calls(count);
      pool.for_each(count, [&](std::size_t i, std::size_t thread) {
        EXPECT_LT(thread, pool.threads());
        ++calls[i];
      });
      for (const auto& call : calls) EXPECT_EQ(call, 1);
    }
  }
}

TEST(ThreadPool, ThrowsWhatABodyThrowsAndGoesOn) {
  for (const int threads : {1, 3}) {
    ThreadPool pool{threads};
    EXPECT_THROW(pool.for_each(100, [](std::size_t, std::size_t) { throw std::bad_alloc{}; }), std::bad_alloc);
    EXPECT_THROW(pool.for_each(100, [](std::size_t i, std::size_t) { if (i == 57) throw std::bad_alloc{}; }), std::bad_alloc);
    std::atomic<int> calls{0};
    pool.for_each(100, [&](std::size_t, std::size_t) { ++calls; });
    EXPECT_EQ(calls, 100);
  }
}

}  // namespace
}  // namespace podsim
