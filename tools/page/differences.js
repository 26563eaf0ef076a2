// The page of a compiled module beside podsim's schedules of its product: what each difference costs.
function differencesHead(record) {
  const {module, product, makespan_s: time, link_bytes: bytes, schedules, notes = []} = record.result;
  const {m, n, k, dtype, given} = product ?? {};
  return [heading(`${said(module)} beside ${schedules.length} schedule${schedules.length === 1 ? "" : "s"}`, record),
    make("div", {class: "figures"}, figure("the module's step", timeText(time)), figure("link traffic", bytesText(bytes)), figure(`product${given === true ? ", as told" : ""}, ${said(dtype)}`, [m, n, k].map(said).join(" x "))),
    schedules.map(({sentence}) => make("p", {}, said(sentence))), notes.map((note) => make("p", {}, `note: ${said(note)}`))];
}

function moduleAndSchedules({result}) {
  const bar = (name, value) => ({name: said(name), value, note: timeText(value)});
  const entries = [bar(`${said(result.module)} (module)`, result.makespan_s), ...result.schedules.map(({schedule, makespan_s: time}) => bar(schedule, time))];
  const rows = result.schedules.map((s) => [s.schedule, timeText(s.makespan_s), isNumber(s.without_differences_s) ? timeText(s.without_differences_s) : "", bytesText(s.link_bytes), s.left_out]);
  return section("schedules", "Time of a step", withTable(barRows(entries), table(["schedule", "time", "the module without all differences", "link traffic", "differences below 0.1 %"], rows)));
}

function differencesOf({result}) {
  const several = result.schedules.length > 1;
  return result.schedules.map(({schedule}, s) => {
    const found = result.differences.filter((one) => !several || one.schedule === schedule);
    const entries = found.map((one) => ({name: `${said(one.kind)}: ${said(one.instruction)}`, value: one.gain_s, note: timeText(one.gain_s)}));
    const rows = found.map((one) => [one.kind, one.instruction, timeText(one.time_s), timeText(one.gain_s), percentText(share(one.gain_s, result.makespan_s))]);
    return section(`differences_${s}`, `What differs from ${said(schedule)}`, found.length === 0 ? make("p", {}, "No difference costs 0.1 % of the step.") :
      [make("p", {}, "What the module's step gains without each, by simulation. Gains do not add up: one step may wait for several things at once."), withTable(barRows(entries), table(["difference", "instruction", "takes", "costs", "of the step"], rows, 2)),
        list(found.map(({sentence}) => said(sentence)))]);
  });
}

const differencesSections = [moduleAndSchedules, differencesOf, ({result}) => leftOut(result.skipped ?? []), missing];
