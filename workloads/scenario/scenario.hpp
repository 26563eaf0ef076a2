// podsim as a library: make a system, pose a problem, simulate it, and ask why and what if. Everything is a value; a result owns what it refers to;
// errors are Diagnostics that name fields of what was given; `RunOptions` carries threads, cancellation and progress into every loop.
//
//   load_machine(name or file, overrides) -> Machine             make_system(SystemSpec) -> System
//   make_problem(System, ProblemSpec) -> Problem                 its schedule, before its collectives are lowered
//   choose_collectives(System, Schedule, policy) -> choices      then lower_problem(); or pose(), which also chooses an open plan
//   check(lowered schedule) -> CheckReport                       proven on numbers
//   simulate(System, ProblemSpec | Problem | Schedule) -> Run    result, timeline, metrics
//   explain(Run), alternatives(System), lose_any_cable(...)      why, and what if something breaks
//   compare(systems with variants), find_crossovers(...)         who wins, and from where to where
//   tune(TuningRequest) on systems_in(SearchSpace)               the fastest plan
//   jax_plan(submesh, workload, plan, pass) -> JaxPlan           the plan as JAX writes it
//   read_schedule(), write_schedule()                            schedules as files
// Fits to measurements stand on this: validation/calibration (podsim::calibration).
#pragma once

#include "sim/config/schedule_config.hpp"
#include "sim/engine/numeric/check.hpp"
#include "sim/schedule/lower.hpp"
#include "sim/schedule/text.hpp"
#include "topologies/machines.hpp"
#include "topologies/system.hpp"
#include "workloads/scenario/collective_choice.hpp"
#include "workloads/scenario/compare.hpp"
#include "workloads/scenario/crossover.hpp"
#include "workloads/scenario/equal_terms.hpp"
#include "workloads/scenario/explain.hpp"
#include "workloads/scenario/faults.hpp"
#include "workloads/scenario/jax_plan.hpp"
#include "workloads/scenario/plan_choice.hpp"
#include "workloads/scenario/problem.hpp"
#include "workloads/scenario/read_scenario.hpp"
#include "workloads/scenario/search_space.hpp"
#include "workloads/scenario/simulate.hpp"
#include "workloads/tuning/tuner.hpp"
