// Writes the instructions of computations as tasks of one program or function. Internal to hlo_schedule().
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "workloads/hlo/collective_strategy.hpp"
#include "workloads/hlo/hlo_costs.hpp"
#include "workloads/hlo/task_costs.hpp"
#include "workloads/hlo/group_views.hpp"
#include "workloads/hlo/hlo_schedule.hpp"
#include "workloads/hlo/hlo_storage.hpp"
#include "workloads/hlo/written_size.hpp"

namespace podsim {

/// A collective within a fusion or asynchronous operation, and where it stands.
struct InsideCollective {
  const HloComputation* computation = nullptr;
  const HloInstruction* collective = nullptr;  // nullptr: there is none
};

inline constexpr std::size_t most_hlo_pairs = std::size_t{1} << 20;  // of sends that stand for collectives

/// One array of a value. It has a buffer, or it is made where it is used: a constant, a scalar, or elementwise work that is fused with its user.
struct HloLeaf {
  std::optional<BufferId> buffer{};
  std::vector<std::int64_t> lengths{};                // of the data in the buffer
  std::vector<std::pair<BufferId, double>> from{};    // without a buffer: what it is made from, and the bytes that this reads
  double vector = 0;                                  // without a buffer: flops of making it
  Edges ready{};                                      // without a buffer: what it waits for
};
using HloValue = std::vector<HloLeaf>;

/// What all programs and functions of a module share.
class ModuleWriter {
 public:
  ModuleWriter(const HloModule& module, const Mesh& mesh, const HloScheduleOptions& options)
      : module_{module}, mesh_{mesh}, options_{options}, costs_{module, options.counts.custom_calls, options.machine} {}

  Expected<HloSchedule> write();

  [[nodiscard]] const HloModule& module() const { return module_; }
  [[nodiscard]] const Mesh& mesh() const { return mesh_; }
  [[nodiscard]] const HloScheduleOptions& options() const { return options_; }
  [[nodiscard]] HloTaskCosts& costs() { return costs_; }
  /// The branch of a conditional that takes longest. Loops in branches whose trip count nobody tells count once.
  Expected<std::size_t> longest_branch(const HloComputation& computation, int conditional);
  [[nodiscard]] bool blocks() const { return order_of(module_, options_) == HloScheduleOptions::Order::text; }

  struct Body {
    int function = 0;
    std::vector<bool> written;  // by leaf of the loop's tuple
  };
  /// The function of a loop's body; `stored` says which leaves of the tuple have buffers: its parameters.
  Expected<const Body*> body(const HloComputation& computation, int number, const std::vector<bool>& stored);

  void add_pairs(std::size_t count) { pairs_ += count; }
  [[nodiscard]] std::size_t pairs() const { return pairs_; }
  /// For Sends of one more operation.
  int next_channel() { return channels_++; }
  void note(std::string text);
  /// An all-reduce of which only the own block is used.
  void wait_for_rewrite(const std::string& name) { waiting_.insert(name); }
  void opaque(const HloInstruction& instruction, double bytes);
  /// One more collective of that strategy.
  /// Whether a computation, or what it calls, has a collective.
  bool communicates(int computation);
  void stated(const HloStrategy& strategy, const std::string& algorithm) { ++stated_[{to_text(strategy), algorithm}]; }
  [[nodiscard]] bool values() const { return options_.values; }
  /// The buffer of an array.
  [[nodiscard]] HloArrayForm form(const HloShape& array) const { return values() ? form_of_values(array) : form_of(array); }
  [[nodiscard]] bool has_buffer(const HloShape& shape) const { return shape.is_array() && (values() || shape.rank() > 0); }
  /// Its number.
  int add(HloKernel kernel);
  [[nodiscard]] int number_of(const HloComputation& computation) const { return static_cast<int>(&computation - module_.computations.data()); }
  [[nodiscard]] Diagnostic problem(const HloInstruction& at, std::string message) const { return {module_.where(at), at.name + ": " + std::move(message)}; }

 private:
  const HloModule& module_;
  const Mesh& mesh_;
  const HloScheduleOptions& options_;
  HloTaskCosts costs_;
  std::optional<HloCosts> totals_;  // of a module that has conditionals
  std::vector<Function> functions_;
  std::vector<std::vector<HloTask>> function_tasks_;
  std::map<int, Body> bodies_;  // by computation
  std::vector<HloKernel> kernels_;
  std::vector<HloOpaque> opaque_;
  std::map<std::pair<std::string, std::string>, std::int64_t> stated_;  // by strategy and algorithm
  std::vector<std::string> notes_;
  std::set<std::string> waiting_;
  std::vector<bool> communicates_;  // by computation; empty before it is asked for
  std::size_t pairs_ = 0;
  int channels_ = 0;
};

/// Which leaves of a loop's tuple its body passes on as they are.
std::vector<bool> invariant_leaves(const HloComputation& body);

class ProgramWriter {
 public:
  ProgramWriter(ModuleWriter& module, ProgramBuilder& builder, bool in_function) : module_{module}, builder_{builder}, in_function_{in_function} {}

  /// Writes a computation with these arguments and returns its result. The holds of arguments are the callee's from here on. `wanted`: by leaf of the
  /// result the buffer where it belongs, if nothing needs that buffer any more when the leaf is made.
  Expected<HloValue> write(const HloComputation& computation, const std::vector<HloValue>& arguments, const std::vector<std::optional<BufferId>>& wanted);

  /// A buffer that may hold other values later.
  BufferId add_buffer(Buffer buffer, bool writable);
  /// With values: a parameter of whole numbers as its type has them, whatever the input is. 300 is 44 in s8.
  HloLeaf within_type(const HloComputation& entry, int parameter, const HloLeaf& given);
  void donate(BufferId buffer) { writable_[buffer.index()] = true; }
  /// What the tasks written so far stand for.
  [[nodiscard]] std::vector<HloTask>& tasks() { return tasks_; }
  /// Copies leaves, free in time, to where they belong, if they are not there.
  void place(const HloValue& value, const std::vector<const HloShape*>& shapes, const std::vector<std::optional<BufferId>>& wanted);

 private:
  struct Scope;  // a computation while it is written
  struct Pending {
    HloValue value;
    Edges ended;
  };

  // Tasks.
  Edges before(const std::vector<BufferId>& reads, const std::vector<BufferId>& writes) const;
  /// Of the instruction that is written.
  TaskId add(std::string label, Op op, Edges after, HloTask::Role role, Guard guard = {});
  /// `on_core`: in the order of the core's work; within an asynchronous computation in the order of that one, beside the core.
  TaskId task(std::string label, Op op, const std::vector<BufferId>& reads, const std::vector<BufferId>& writes, Edges after, bool on_core, HloTask::Role role = HloTask::Role::itself);
  /// The bytes of `from`, one after the other, seen as arrays of other dimensions, types or number: free in time.
  TaskId view(const std::string& label, const std::vector<Region>& from, const std::vector<Region>& to, Edges after);
  /// What the order of the text puts in front of an operation that begins now.
  [[nodiscard]] Edges text_order() const;
  void wait_for(const std::string& label, const Edges& ended, const HloValue& value);

  // Instructions.
  Status instruction(Scope& scope, int i);
  Expected<HloValue> made(Scope& scope, int i);
  Expected<HloValue> work(Scope& scope, int i);
  Expected<HloValue> loop(Scope& scope, int i);
  Expected<HloValue> branch(Scope& scope, int i);
  /// With values: each device takes the branch that its numbers say.
  Expected<HloValue> every_branch(Scope& scope, int i);
  Expected<HloValue> nested(Scope& scope, const HloComputation& computation, const std::vector<int>& operands, int result_of);
  Expected<HloValue> start(Scope& scope, int i);
  Expected<HloValue> done(Scope& scope, int i);
  /// What decides whether a loop goes on, before each trip and after the last: edges of that. Scalars cost nothing, so that only a condition that looks at arrays or communicates is written.
  Expected<Edges> write_condition(Scope& scope, int i, const HloValue& state);
  /// An asynchronous computation: its instructions run in their order, beside the core.
  Expected<HloValue> beside_core(Scope& scope, int i, int done, Edges& ended);
  /// A copy, slice or other data movement by DMA.
  HloValue moved_by_dma(Scope& scope, int i, int result_of, Edges& ended);
  /// A copy to or from pinned memory of the host: over the link of the chip's host, one after the other in either direction.
  HloValue host_copy(Scope& scope, int i, int result_of, bool to_host, Edges& ended);
  /// An operation whose other end is not in the module: its data is there at once, and it is told to be of unknown cost.
  Expected<HloValue> unmatched(Scope& scope, int i);
  /// A custom-call that moves nothing: its operands lie side by side in its results.
  HloValue side_by_side(Scope& scope, int i);
  std::optional<Matmul> product(const Scope& scope, int i, const HloLeaf& out) const;
  /// The Matmul of a dot or convolution of `body` on these leaves; nullopt if a Matmul cannot say it.
  std::optional<Matmul> matmul_of(const HloComputation& body, const HloInstruction& dot, const HloLeaf& left, const HloLeaf& right, const HloLeaf& out) const;
  /// A fusion of a dot and the addition of its result to an operand that nothing uses later: a product that accumulates there. nullopt: it is none.
  std::optional<HloValue> accumulation(const Scope& scope, int i);
  [[nodiscard]] bool is_fused(const Scope& scope, int i) const;

  // With values.
  /// An instruction as a task: a Matmul where it is one, else an operation. Its results belong to instruction `result_of`, with the shape of that one.
  HloValue execute(Scope& scope, int i, HloInstruction instruction, int result_of, bool on_core, const Edges& after);
  /// Asserts that a conditional takes a branch; that a loop with this state goes on, or does not.
  void expect_branch(const Scope& scope, int i, std::int64_t branch);
  void expect_condition(const Scope& scope, int i, bool is_true, const HloValue& state);
  void expect(const Scope& scope, HloKernel::Kind kind, HloInstruction instruction, const HloValue& operand, std::int64_t branch);
  /// What an operation reads: the regions of its operands, each buffer once.
  struct OperationReads {
    std::vector<BufferId> buffers;
    std::vector<Region> regions;
    std::vector<std::vector<int>> operands;
  };
  OperationReads reads_of(const std::vector<HloValue>& operands) const;
  /// Whether a schedule has an operation that gives the values of a collective.
  [[nodiscard]] bool has_operation(const Scope& scope, int i, const HloInstruction& attributes, const HloShape& result) const;
  /// Any other collective: every device gets the operands of all, and makes its results of them by the definition.
  Expected<HloValue> by_definition(Scope& scope, int i, int result_of, const HloShape& result, Edges& ended);
  /// Of a permute: what devices have that nobody sends to: their own array if they send to themselves, else zeros.
  TaskId keep_own(const HloInstruction& at, const Region& in, const Region& out, const Edges& after);

  // Collectives.
  /// Writes the collective of instruction `i`, whose groups and pairs are in `attributes`. The result belongs to instruction `result_of`.
  /// `operands`: their shapes where the collective takes them, in a fusion; none: those of the instruction's operands.
  Expected<HloValue> collective(Scope& scope, int i, const HloInstruction& attributes, int result_of, const HloShape& result, Edges& ended, const std::vector<const HloShape*>& operands = {});
  Expected<HloValue> fused_collective(Scope& scope, int i, const InsideCollective& inside, Edges& ended);
  Expected<HloValue> own_block(Scope& scope, int i, int slice);
  /// `runs_as`: the collective itself, or the fusion that it is in.
  Expected<CollectiveGroups> groups(const HloInstruction& collective, const HloInstruction& runs_as) const;
  void tell_strategy(const HloInstruction& collective, const HloInstruction& runs_as, const CollectiveGroups& groups);
  /// Whether it reduces by sums of floating-point numbers.
  [[nodiscard]] bool adds(const HloInstruction& collective) const;
  /// A reduce-scatter adds up partial sums in an input that is scratch (derive_edges.hpp). In place of each operand that anything else reads, before or after it, an
  /// alias in a buffer of its own.
  void keep_operands(const Scope& scope, std::vector<Region>& in, const Edges& after);
  /// One Collective between regions; several as one where they are all-reduces, all-gathers or reduce-scatters of one dtype. Sums in bf16 where the options rewrite them so.
  Expected<Edges> exchange(const HloInstruction& at, CollectiveKind kind, const CollectiveGroups& groups, const std::vector<Region>& in, const std::vector<Region>& out, int dim, const Edges& after);
  /// The same in the dtypes of the regions.
  Expected<Edges> exchange_as_stored(const HloInstruction& at, CollectiveKind kind, const CollectiveGroups& groups, const std::vector<Region>& in, const std::vector<Region>& out, int dim, const Edges& after);
  /// A Collective whose axes are left open, among listed groups: by position around a ring; an all-to-all directly, a broadcast down a binomial tree. Each round
  /// is a permute with a launch of its own.
  Expected<Edges> in_pairs(const HloInstruction& at, const std::string& label, const ReplicaGroups& groups, const Collective& op, const Edges& after);
  class PairExchange;
  /// A ragged-all-to-all.
  Expected<Edges> ragged(const HloInstruction& at, const HloInstruction& collective, const CollectiveGroups& groups, const Region& in, const Region& out, const Edges& after);
  /// Each pair of a group sends its rows: those to the first position first, and they arrive in the order of the senders.
  Expected<Edges> ragged_by_counts(const HloInstruction& at, const ReplicaGroups& groups, const Region& in, const Region& out, const HloRaggedCounts& counts, const Edges& after);
  Expected<Edges> permute(const HloInstruction& at, const std::vector<SourceTarget>& pairs, const Region& in, const Region& out, const Edges& after);

  // Values.
  void hold(const HloLeaf& leaf, int count = 1);
  [[nodiscard]] const HloInstruction& at(const Scope& scope, int i) const;
  /// The only work of an asynchronous computation goes by the instruction that starts it, as in profiles.
  [[nodiscard]] const HloInstruction& known_as(const HloInstruction& instruction) const { return &instruction == only_work_ ? *started_by_ : instruction; }
  [[nodiscard]] const std::string& label_of(const HloInstruction& instruction) const { return known_as(instruction).name; }
  HloValue operand(const Scope& scope, int i, std::size_t position) const;
  HloValue allocate(Scope& scope, int i, const HloShape& shape, const std::vector<BufferId>& apart = {});
  /// The leaf in a buffer that has the form of this shape: as it is, seen so, or made there.
  HloLeaf stored(const std::string& label, HloLeaf leaf, const HloShape& shape);
  void bind(Scope& scope, int i, HloValue value);
  /// Whether nothing needs a buffer behind the instruction that is written.
  [[nodiscard]] bool dies_here(const Scope& scope, BufferId buffer) const;
  /// Drops the holds of what the instruction that is written uses last.
  void release(Scope& scope);

  ModuleWriter& module_;
  ProgramBuilder& builder_;
  bool in_function_;
  struct Uses {
    Edges writers, readers;
  };
  std::vector<Uses> uses_;      // by buffer
  std::vector<int> holds_;      // by buffer: values that still need it
  std::vector<bool> writable_;  // by buffer
  std::optional<TaskId> last_core_;
  std::optional<TaskId> last_beside_;                 // of the asynchronous computation that is written
  bool is_beside_core_ = false;
  const HloInstruction *only_work_ = nullptr, *started_by_ = nullptr;  // of that computation
  const HloInstruction* writing_ = nullptr;                            // none: results of a computation
  std::vector<HloTask> tasks_;
  std::array<std::optional<TaskId>, 2> last_host_{};  // copies from and to the host
};

}  // namespace podsim
