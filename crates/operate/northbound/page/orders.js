// Orders: each is a form in a dialog, which says what it does before it is sent.

import { ask, Problem, token } from "./api.js";
import { button, byId, el, rememberFocus, table } from "./dom.js";
import { readSeconds } from "./format.js";
import { look, network } from "./network.js";

/** Whether the token of this page allows orders. */
export const mayOrder = () => network.token?.scope === "write";

const dialog = byId("dialog");

/**
 * Shows a form. `fields`: [name, label, attributes of an input, or options of a choice]. `send` gets
 * their values; without it there is nothing to send. A problem is shown, beside its field if it names
 * one, and the form stays. A notice in the answer is shown after the form.
 */
function form({ title, text, content = [], fields = [], label, kind = "main", send }) {
  const inputs = new Map(fields.map(([name, about, attributes]) => [name, input(name, about, attributes)]));
  const message = el("p", { class: "bad", role: "alert" });
  const submit = el("button", { type: "submit", class: kind }, label);
  const onsubmit = async (event) => {
    event.preventDefault();
    for (const { element } of inputs.values()) element.removeAttribute("aria-invalid");
    message.textContent = "";
    submit.disabled = true;
    try {
      const answer = await send(Object.fromEntries([...inputs].map(([name, { element }]) => [name, element.value.trim()])));
      dialog.close();
      look();
      if (answer?.notice) form({ title: "The order is stored", text: answer.notice });
    } catch (problem) {
      message.textContent = problem.message;
      const wrong = inputs.get(problem.field?.split(".").pop().replace(/\[\d+\]$/, ""))?.element;
      wrong?.setAttribute("aria-invalid", "true");
      submit.disabled = false;
      // The button lost the focus while it was disabled.
      (wrong ?? submit).focus();
    }
  };
  const buttons = send ? [button("Cancel", () => dialog.close()), submit] : [button("Close", () => dialog.close())];
  dialog.replaceChildren(el("form", { onsubmit },
    el("h2", { id: "dialog-title" }, title),
    text && el("p", {}, text),
    content,
    [...inputs.values()].map(({ whole }) => whole),
    message,
    el("div", { class: "buttons" }, buttons)));
  // What has opened the form is often drawn anew while the form is open.
  const region = document.activeElement?.closest("main > section, main > aside");
  if (region) dialog.addEventListener("close", rememberFocus(region), { once: true });
  dialog.showModal();
}

function input(name, about, attributes = {}) {
  const { options, value, ...rest } = attributes;
  const element = options
    ? el("select", { name }, options.map((text) => el("option", { selected: text === value }, text)))
    : el("input", { name, value, autocomplete: "off", spellcheck: "false", ...rest });
  return { element, whole: el("label", {}, about, element) };
}

export function signIn(why) {
  form({
    title: "Sign in", label: "Sign in",
    text: why ?? "Give a token. The command bellrock token makes one. It is kept until this tab is closed.",
    fields: [["token", "Token", { type: "password", required: true }]],
    send: async (values) => {
      const before = token.get();
      token.set(values.token);
      try {
        network.token = await ask("/v1/token");
      } catch (problem) {
        token.set(before);
        throw problem;
      }
    },
  });
}

export function signOut() {
  token.set(null);
  network.token = null;
  look(0);
}

export function block(host = "") {
  form({
    title: "Quarantine a host", label: "Quarantine", kind: "danger",
    text: "All packets from and to it are dropped at every switch, until it is let back.",
    fields: [["host", "Ethernet or IP address, prefix, or name", { value: host, required: true }]],
    send: (values) => ask("/v1/quarantine", { method: "POST", body: values }),
  });
}

export function unblock(host) {
  form({
    title: `Let ${host} back`, label: "Let back",
    text: "Its packets are forwarded again.",
    send: () => ask(`/v1/quarantine/${encodeURIComponent(host)}`, { method: "DELETE" }),
  });
}

export function reserve(from = "") {
  form({
    title: "Reserve bandwidth", label: "Reserve",
    text: "The packets of this pair get a path of their own with this rate, in one direction.",
    fields: [
      ["from", "From: address, name, or SWITCH:PORT", { value: from, required: true }],
      ["to", "To", { required: true }],
      ["rate_kbps", "Rate in kbit/s", { type: "number", min: 1, step: 1, required: true }],
    ],
    send: ({ from, to, rate_kbps }) =>
      ask("/v1/reservations", { method: "POST", body: { from, to, rate_kbps: Number(rate_kbps), wait_ms: 0 } }),
  });
}

export function release(row) {
  form({
    title: `Release reservation ${row.id}`, label: "Release", kind: "danger",
    text: `From ${row.from} to ${row.to}. Its packets lose their rate.`,
    send: () => ask(`/v1/reservations/${row.id}`, { method: "DELETE" }),
  });
}

/** Gives a switch to another node of the cluster. */
export function move(row) {
  const { node, nodes } = network.cluster;
  const others = nodes.filter(({ name, state }) => name !== node && state === "serving").map(({ name }) => name);
  const title = `Move ${row.name ?? row.dpid}`;
  if (others.length === 0) {
    form({ title, text: "No other node serves." });
    return;
  }
  form({
    title, label: "Move",
    text: "Another node becomes its master, until that node is lost or drains, or until the next Move or Balance. Its flows stay.",
    fields: [["node", "Node", { options: others }]],
    send: (values) => ask(`/v1/cluster/switches/${row.dpid}/move`, { method: "POST", body: values }),
  });
}

/** Lets the nodes spread all switches evenly, those that were moved by order too. */
export function balance() {
  form({
    title: "Balance the switches", label: "Balance",
    text: "The nodes spread all switches evenly, one after the other. Those that were moved by order may be moved too.",
    send: () => ask("/v1/cluster/balance", { method: "POST" }),
  });
}

/** Gives all switches of this node to others, or ends that. */
export function drain(draining) {
  form({
    title: draining ? "Drain this node" : "Take switches again", label: draining ? "Drain" : "Take", kind: draining ? "danger" : "main",
    text: draining ? "It gives its switches to other nodes, one after the other, and gets none until this is ended." : "It gets its share of the switches again.",
    send: () => ask("/v1/cluster/drain", { method: "POST", body: { draining } }),
  });
}

/** Seconds until a static entry ends, from now on. */
function secondsLeft({ endsAtMs }) {
  if (endsAtMs === null) return null;
  const left = Math.ceil((endsAtMs - Date.now()) / 1000);
  if (left <= 0) throw new Problem(409, { detail: "It has ended meanwhile." });
  return left;
}

/** The seconds of a time that was given. */
function secondsOf(text) {
  const given = readSeconds(text);
  if (!given) throw new Problem(400, { detail: `${text} is no time; give one such as 90 s, 30 min, 2 h or 7 d.`, field: "ttl_seconds" });
  return given;
}

/** Sets a static flow. A `row` is changed: it keeps its owner, and its end unless another one is given. */
export function setFlow(dpid = "", row = null) {
  const flow = row?.flow ?? {};
  const shown = row?.ttl_seconds == null ? "" : String(row.ttl_seconds);
  form({
    title: row ? `Change the static flow ${row.name}` : "Set a static flow", label: "Set",
    text: row ? `Its owner is ${row.owner}.` : "The controller keeps it in the switch. With a store it does so over its own restarts too.",
    fields: [
      ["name", "Name", { value: row?.name, required: true, readonly: row !== null }],
      ["switch", "Switch: name or datapath id", { value: row?.dpid ?? dpid, required: true }],
      ["table", "Table", { type: "number", min: 0, max: 254, value: flow.table ?? 0 }],
      ["priority", "Priority among static flows, 0 to 4095", { type: "number", min: 0, max: 4095, value: flow.priority ?? 2048 }],
      ["match", "Match, such as in_port=1,eth_type=0x0800,ipv4_dst=10.0.0.0/8", { value: flow.match ?? "any" }],
      ["actions", "Actions, such as output:2, or drop", { value: flow.actions, required: true }],
      ["ttl_seconds", "Ends after a time, such as 90 s, 30 min, 2 h or 7 d; empty: never", { value: shown }],
    ],
    send: async ({ name, switch: at, table, priority, match, actions, ttl_seconds: ttl }) => {
      const flow = { table: Number(table), priority: Number(priority), match, actions };
      const ends = row && ttl === shown ? secondsLeft(row) : ttl === "" ? null : secondsOf(ttl);
      const owner = row ? `?owner=${encodeURIComponent(row.owner)}` : "";
      const body = { switch: at, ttl_seconds: ends, flow };
      const answer = await ask(`/v1/static/${encodeURIComponent(name)}${owner}`, { method: "PUT", body });
      const refused = answer.problems.find(({ state }) => state === "refused" || state === "not_kept");
      if (refused) throw new Problem(409, { detail: `It is stored, but not in the switch: ${refused.why}` });
      return answer;
    },
  });
}

export function removeStatic(row) {
  form({
    title: `Remove ${row.name}`, label: "Remove", kind: "danger",
    text: `This static entry of ${row.owner} leaves the switch, and is not kept.`,
    send: () => ask(`/v1/static/${encodeURIComponent(row.name)}?owner=${encodeURIComponent(row.owner)}`, { method: "DELETE" }),
  });
}

/** Shows what a reload would change, and asks before it is done. */
export async function reload() {
  let plan;
  try {
    plan = await ask("/v1/reload?dry_run=true", { method: "POST" });
  } catch (problem) {
    form({ title: "The configuration cannot be reloaded", text: problem.message });
    return;
  }
  const { changes, renewed, warnings } = plan;
  const needsRestart = changes.some(({ needs_restart }) => needs_restart);
  const text = needsRestart ? "Not possible: a setting needs a restart of the controller. Restart it, or take that change back."
    : changes.length ? "These settings change." : renewed.length ? "No setting changes. These files have other content, which is used from now on."
      : "Nothing has changed.";
  form({
    title: "Reload the configuration", label: "Reload", text,
    content: [
      warnings.map((warning) => el("p", { class: "warm" }, warning)),
      changes.length > 0 && table("", [
        ["Setting", ({ setting }) => setting, "code"],
        ["Before", ({ before }) => before ?? el("span", { class: "quiet" }, "none"), "code"],
        ["After", ({ after }) => after ?? el("span", { class: "quiet" }, "none"), "code"],
        ["In force", ({ needs_restart }) => (needs_restart ? el("span", { class: "warm" }, "needs a restart") : "at once")],
      ], changes),
      renewed.length > 0 && table("", [
        ["Setting", ({ setting }) => setting, "code"],
        ["Renewed file", ({ path }) => path, "code"],
      ], renewed),
    ].flat(),
    send: needsRestart ? null : () => ask("/v1/reload", { method: "POST" }),
  });
}
