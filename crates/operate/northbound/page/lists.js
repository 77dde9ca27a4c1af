// The views that are tables.

import { ask } from "./api.js";
import { button, byId, el, replace, table } from "./dom.js";
import { count, plural, rate, seconds } from "./format.js";
import * as cluster from "./cluster.js";
import { eventTable, state, staticTable } from "./detail.js";
import { allOf, loadOf, nameOf, network, runs, standsBy, withEnds } from "./network.js";
import { block, mayOrder, release, reload, reserve, setFlow, unblock } from "./orders.js";
import { hostName } from "./scene.js";

/** Rows that a table shows. */
const MAX_ROWS = 500;

const section = byId("list-view");
/** What only one view shows, and is asked for while it is open. */
let extra = { view: null, rows: null, problem: null };

const go = (kind, id, text) => el("a", { href: `#/${kind}/${encodeURIComponent(id)}` }, text);
const switchLink = (dpid, name) => go("switch", dpid, name ?? dpid);

/** The rows that contain a text, up to the bound, and a word on the rest. */
function filtered(rows, search) {
  if (!rows.length) return [rows, "There are none."];
  const found = search ? rows.filter((row) => JSON.stringify(row).toLowerCase().includes(search)) : rows;
  const rest = found.length - MAX_ROWS;
  const note = rest > 0 ? `The first ${count(MAX_ROWS)} of ${count(found.length)}; search to see others.` : `${count(found.length)} of ${count(rows.length)}`;
  return [found.slice(0, MAX_ROWS), note];
}

/** How often an app has exceeded its budgets. */
function overBudget({ blocked, refused, message_excesses, tables }) {
  const budgets = [
    [blocked, "late events"], [refused, "refused"], [message_excesses, "seconds of too many messages"],
    [tables?.refusals, "times no table memory"],
  ];
  const exceeded = budgets.filter(([value]) => value > 0).map(([value, what]) => `${count(value)} ${what}`);
  return exceeded.length ? el("span", { class: "warm" }, exceeded.join(", ")) : "";
}

const VIEWS = {
  switches: {
    title: "Switches", rows: () => [...network.switches.values()],
    columns: [
      ["Name", (row) => switchLink(row.dpid, row.name)],
      ["Datapath id", ({ dpid }) => dpid, "code"],
      ["OpenFlow", ({ version }) => version],
      ["Address", ({ peer }) => peer],
      ["Up for", (row) => seconds(row.up_seconds)],
      ["Ports up", ({ ports }) => `${ports.filter((port) => port.state === "up").length} of ${ports.length}`],
      ["Software", ({ software }) => software],
      ["", (row) => (row.standby ? standsBy(row) : row.refused_flows.length ? el("span", { class: "bad" }, "refuses flows") : "")],
    ],
    before: () => [...network.away.values()].map(({ name, dpid }) => el("p", { class: "bad" }, `Not connected: ${name ? `${name} (${dpid})` : dpid}`)),
  },
  links: {
    title: "Links", rows: () => network.links,
    columns: [
      ["From", ({ a }) => el("span", {}, switchLink(a.dpid, a.name), ` ${a.port}`)],
      ["To", ({ b }) => el("span", {}, switchLink(b.dpid, b.name), ` ${b.port}`)],
      ["State", ({ isLost, bothWays }) => (isLost ? state("lost") : bothWays ? state("up") : el("span", { class: "warm" }, "one way"))],
      ["Rate", ({ kbps }) => rate(kbps == null ? null : 1000 * kbps), "number"],
      ["Load", (link) => rate(loadOf(link)), "number"],
      ["Up for", ({ isLost, upSeconds }) => (isLost ? "" : seconds(upSeconds))],
      ["", ({ key }) => go("link", key, "details")],
    ],
  },
  hosts: {
    title: "Hosts", rows: () => network.hosts,
    columns: [
      ["Host", (row) => go("host", row.mac, hostName(row))],
      ["Ethernet address", ({ mac }) => mac, "code"],
      ["IP addresses", ({ addresses }) => addresses.join(", ")],
      ["Switch", (row) => switchLink(row.dpid, row.switch_name)],
      ["Port", ({ port }) => port],
      ["VLAN", ({ vlan }) => vlan],
      ["Seen", ({ age_seconds }) => (age_seconds == null ? "" : `${seconds(age_seconds)} ago`)],
      ["", ({ flapping, guessed }) => (flapping ? el("span", { class: "warm" }, "flapping") : guessed ? "guessed" : "")],
    ],
  },
  events: { title: "Events", rows: () => network.events, draw: eventTable },
  apps: {
    title: "Apps", load: () => Promise.all([ask("/v1/apps"), ask("/v1/counters")]).then(([apps, counters]) => apps.map((app) => ({ ...app, counters: counters.apps[app.name] }))),
    columns: [
      ["App", ({ name }) => name],
      ["State", ({ disabled, panics }) => (disabled ? el("span", { class: "bad" }, "disabled") : panics ? el("span", { class: "warm" }, plural(panics, "panic")) : state("up"))],
      ["Priorities", ({ lowest_priority, highest_priority }) => `${lowest_priority} to ${highest_priority}`],
      ["Errors", ({ errors }) => count(errors), "number"],
      ["Over budget", overBudget],
      ["Latest error", ({ last_error }) => last_error],
      ["Counters", ({ counters }) => Object.entries(counters ?? {}).filter(([, value]) => value > 0).map(([name, value]) => `${name} ${count(value)}`).join(", ")],
    ],
    buttons: () => [button("Reload the configuration", reload)],
  },
  circuits: {
    title: "Circuits", app: "provisioning", rows: () => network.circuits,
    columns: [
      ["Circuit", ({ name }) => go("circuit", name, name)],
      ["Between", ({ endpoints }) => endpoints.join(", ")],
      ["State", (row) => state(row.state)],
      ["Path", ({ path }) => path?.join(" → ")],
      ["Links without a detour", ({ bare_links }) => bare_links, "number"],
      ["", ({ why }) => why],
    ],
  },
  reservations: {
    title: "Reservations", app: "bandwidth", rows: () => network.reservations,
    columns: [
      ["Number", ({ id }) => go("reservation", id, id)],
      ["From", ({ from }) => from], ["To", ({ to }) => to],
      ["Rate", ({ rate_kbps }) => rate(1000 * rate_kbps), "number"],
      ["State", (row) => state(row.state)],
      ["Path", ({ path }) => path.join(" → ")],
      ["", ({ why }) => why],
      ["", (row) => mayOrder() && button("Release", () => release(row))],
    ],
    buttons: () => [button("Reserve", () => reserve(), "main")],
  },
  quarantine: {
    title: "Quarantine", app: "quarantine", rows: () => network.blocked,
    columns: [
      ["Host or prefix", ({ host, name }) => (name ? `${name} (${host})` : host)],
      ["From", ({ line }) => (line == null ? "an order" : `line ${line} of the file`)],
      ["State", (row) => (row.gaps.length ? gapsOf(row) : state("installed"))],
      ["Switches of other nodes", ({ at_other_nodes }) => at_other_nodes || null, "number"],
      ["", ({ host, line }) => mayOrder() && line == null && button("Let back", () => unblock(host))],
    ],
    buttons: () => [button("Quarantine a host", () => block(), "danger")],
  },
  cluster: {
    title: "Cluster", load: cluster.load, before: cluster.before, columns: cluster.columns, buttons: cluster.buttons,
  },
  static: {
    title: "Static entries", app: "static", load: async () => withEnds(await allOf("static", "/v1/static") ?? []), draw: staticTable,
    buttons: () => [button("Set a flow", () => setFlow(), "main")],
  },
};

/** The switches that are not known to block a host, each with the reason. Those that refuse come first. */
function gapsOf({ gaps, more_gaps }) {
  const places = gaps.map((gap) => `${nameOf(gap)}: ${gap.why}`);
  const refused = gaps[0].state === "refused";
  const text = `${refused ? "not blocked" : "not confirmed"} at ${places.join(", ")}${more_gaps ? `, and ${more_gaps} more switches` : ""}`;
  return el("span", { class: refused ? "bad" : "warm" }, text);
}

/** Name and title of each view. */
export const views = Object.entries(VIEWS).map(([name, { title }]) => [name, title]);

/** Shows a view, with the rows that contain a text. */
export function show(name, search) {
  const view = VIEWS[name];
  if (extra.view !== name) extra = { view: name, rows: null, problem: null };
  draw(name, search);
  if (view.load) {
    const asked = extra;
    view.load().then((rows) => Object.assign(asked, { rows, problem: null }), (problem) => (asked.problem = problem))
      .then(() => asked === extra && draw(name, search));
  }
}

/** Draws a view anew, from what is known. */
export function draw(name, search) {
  const view = VIEWS[name];
  const rows = view.load ? extra.rows : view.rows();
  const heading = el("h2", {}, view.title, mayOrder() && rows ? view.buttons?.() ?? [] : []);
  if (view.app && network.status && !runs(view.app)) {
    replace(section, heading, el("p", {}, `The app ${view.app} does not run. Add it to apps in the configuration.`));
    return;
  }
  if (extra.problem || !rows) {
    replace(section, heading, el("p", { class: extra.problem ? "bad" : "quiet" }, extra.problem?.message ?? "The controller is asked…"));
    return;
  }
  const [shown, note] = filtered(rows, search);
  const content = view.draw ? view.draw(shown) : table("", view.columns, shown);
  replace(section, heading, ...(view.before?.() ?? []), el("p", { class: "quiet" }, note), content);
}
