#include "sim/config/schedule_names.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "sim/base/invariant.hpp"
#include "sim/config/schedule.pb.h"

namespace podsim {
namespace {

/// "all-gather" as an identifier of a textproto: "all_gather".
std::string identifier(std::string_view name) {
  std::string result{name};
  std::replace(result.begin(), result.end(), '-', '_');
  return result;
}

/// The number of a value by its name in the message file.
template <class Saved, class Value>
int number_named(bool (*parse)(google::protobuf::ConstStringParam, Saved*), Value name) {
  Saved saved{};
  [[maybe_unused]] const bool known = parse(identifier(name), &saved);
  PODSIM_ASSERT(known);
  return saved;
}

static_assert(proto::Local::Kind_ARRAYSIZE == local_kind_count, "a number in schedule.proto per row of local_table; none is ever removed");

static_assert(proto::Reference::Kind_ARRAYSIZE == reference_kind_count,
              "a number in schedule.proto per row of reference_table; none is ever removed");

// Those that never grow have the same numbers on both sides, and are converted by casts.
static_assert(static_cast<int>(Role::input) == proto::Buffer::input && static_cast<int>(Role::output) == proto::Buffer::output &&
              static_cast<int>(Role::scratch) == proto::Buffer::scratch);
static_assert(static_cast<int>(Unit::core) == proto::Local::core && static_cast<int>(Unit::dma) == proto::Local::dma);
static_assert(static_cast<int>(Combine::replace) == proto::Combine::replace && static_cast<int>(Combine::add) == proto::Combine::add &&
              static_cast<int>(Combine::maximum) == proto::Combine::maximum);
static_assert(static_cast<int>(Reduction::sum) == proto::Collective::sum && static_cast<int>(Reduction::maximum) == proto::Collective::maximum);
static_assert(static_cast<int>(InSwitch::carrier) == proto::InSwitch::carrier && static_cast<int>(InSwitch::copy) == proto::InSwitch::copy &&
              static_cast<int>(InSwitch::addend) == proto::InSwitch::addend);
static_assert(static_cast<int>(Half::both) == proto::Edge::Done::both && static_cast<int>(Half::send) == proto::Edge::Done::sent &&
              static_cast<int>(Half::receive) == proto::Edge::Done::received);
static_assert(static_cast<int>(Half::both) == proto::Edge::Gates::both && static_cast<int>(Half::send) == proto::Edge::Gates::send &&
              static_cast<int>(Half::receive) == proto::Edge::Gates::receive);

}  // namespace

int saved_number(DType dtype) { return number_named(proto::DType::Name_Parse, name_of(dtype)); }
int saved_number(LocalKind kind) { return number_named(proto::Local::Kind_Parse, traits_of(kind).name); }
int saved_number(CollectiveKind kind) { return number_named(proto::Collective::Kind_Parse, name_of(kind)); }
int saved_number(ReferenceKind kind) { return number_named(proto::Reference::Kind_Parse, traits_of(kind).name); }

DType dtype_numbered(int number) {
  const std::optional<DType> named = dtype_named(proto::DType::Name_Name(number));
  PODSIM_ASSERT(named);
  return *named;
}

LocalKind local_kind_numbered(int number) {
  const auto has_it = [&](const LocalTraits& traits) { return saved_number(traits.kind) == number; };
  const auto found = std::find_if(local_table.begin(), local_table.end(), has_it);
  PODSIM_ASSERT(found != local_table.end());
  return found->kind;
}

ReferenceKind reference_kind_numbered(int number) {
  const auto has_it = [&](const ReferenceTraits& traits) { return saved_number(traits.kind) == number; };
  const auto found = std::find_if(reference_table.begin(), reference_table.end(), has_it);
  PODSIM_ASSERT(found != reference_table.end());
  return found->kind;
}

CollectiveKind collective_kind_numbered(int number) {
  int kind = 0;
  while (kind < collective_kind_count && saved_number(static_cast<CollectiveKind>(kind)) != number) ++kind;
  PODSIM_ASSERT(kind < collective_kind_count);
  return static_cast<CollectiveKind>(kind);
}

}  // namespace podsim
