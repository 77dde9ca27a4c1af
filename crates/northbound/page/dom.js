// Elements. Text is only ever set as text, so that no name can become markup.

/** Makes an element. Properties that begin with "on" are handlers; others are attributes. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A button with a handler. `kind`: "main", "danger" or nothing. */
export const button = (label, onclick, kind) => el("button", { type: "button", class: kind, onclick }, label);

/** Replaces the children. The focus stays on the element with the same data-key. */
export function replace(parent, ...children) {
  const key = parent.contains(document.activeElement) && document.activeElement.dataset.key;
  parent.replaceChildren(...children.flat().filter((child) => child != null && child !== false));
  if (key) parent.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

/** A table. `columns`: [title, cell of a row, class]. */
export function table(caption, columns, rows) {
  const cell = (row, [, value, kind]) => el("td", { class: kind }, value(row) ?? "");
  return el("div", { class: "scroll" }, el("table", {},
    caption && el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map(([title]) => el("th", { scope: "col" }, title)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, columns.map((column) => cell(row, column)))))));
}

/** Names with their values; those without a value are left out. */
export function definitions(pairs) {
  const known = pairs.filter(([, value]) => value != null && value !== "");
  return el("dl", {}, known.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}
