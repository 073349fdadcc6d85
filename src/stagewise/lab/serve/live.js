// Whatever a folder contains becomes text, never markup.
const at = (id) => document.getElementById(id);
function make(name, attributes = {}, ...inner) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) key === "class" ? (made.className = value) : key in made ? (made[key] = value) : made.setAttribute(key, value);
  made.append(...inner.map((each) => each ?? ""));
  return made;
}
const api = async (path) => {
  const answer = await fetch(path);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error ?? answer.statusText);
  return found;
};
const path = (folder) => folder.split("/").map(encodeURIComponent).join("/");
const ticked = new Set();
const cards = new Map();

function progress(run) {
  const { chunk = 0, chunks = 1, stage = "compiling", steps_per_second = 0 } = run.progress ?? {};
  const rate = steps_per_second ? `, ${Math.round(steps_per_second).toLocaleString("en")} steps/s` : "";
  return [make("progress", { max: chunks, value: chunk, "aria-label": `progress of ${run.experiment}` }), ` ${stage}, ${chunk} of ${chunks}${rate}`];
}

async function watch(run) {
  if (!cards.has(run.folder)) {
    const card = make("article", { class: "running" });
    card.append(make("h3", {}, run.experiment, " ", make("small", {}, run.settings || "as by default")), make("p", { class: "how" }), make("div", { class: "chart", role: "img", ariaLabel: `curves of ${run.experiment} so far` }));
    cards.set(run.folder, card);
    at("now").append(card);
  }
  const card = cards.get(run.folder);
  card.querySelector(".how").replaceChildren(...progress(run));
  if (card.busy || Date.now() - (card.drawn ?? 0) < 4000) return;
  card.busy = true;
  try {
    const found = await api(`/api/run/${path(run.folder)}`);
    if (found.chart && found.records !== card.records) {
      await draw(card.querySelector(".chart"), found.chart);
      card.records = found.records;
      card.dataset.records = found.records;
    }
  } catch { /* it has ended, or is being written: the next look will tell */ }
  card.drawn = Date.now();
  card.busy = false;
}

function row(run) {
  const box = make("input", { type: "checkbox", checked: ticked.has(run.folder), ariaLabel: `compare ${run.experiment} ${run.settings}` });
  box.addEventListener("change", () => (box.checked ? ticked.add(run.folder) : ticked.delete(run.folder)));
  const open = make("button", { type: "button" }, run.experiment);
  open.addEventListener("click", () => show(run));
  const time = run.seconds == null ? "" : `${Number(run.seconds).toFixed(1)} s`;
  return make("tr", { ariaLabel: run.folder }, make("td", {}, box), make("td", {}, open), make("td", {}, run.state), make("td", {}, `${run.seeds[0]}-${run.seeds[1] - 1}`), make("td", {}, time), make("td", {}, run.settings || "as by default"));
}

async function appear(title, fill) {
  const [heading, body] = at("shown").children;
  at("shown").hidden = false;
  heading.textContent = title;
  body.replaceChildren("reading");
  try {
    body.replaceChildren(...(await fill()));
  } catch (error) {
    body.replaceChildren(make("p", {}, error.message));
  }
  at("shown").scrollIntoView();
}

async function pictured(chart, says) {
  const host = make("div", { class: "chart", role: "img", ariaLabel: says });
  if (chart) await draw(host, chart);
  else host.append("No curves yet.");
  return host;
}

const show = (run) =>
  appear(run.experiment, async () => {
    const found = await api(`/api/run/${path(run.folder)}`);
    const settings = Object.entries(found.settings).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
    return [await pictured(found.chart, `curves of ${run.experiment}`), make("p", { class: "soft" }, `${run.state}, folder ${run.folder}`), make("details", {}, make("summary", {}, "Settings"), make("dl", {}, ...settings))];
  });

at("compare").addEventListener("click", () =>
  appear("Runs side by side", async () => {
    const found = await api(`/api/compare?${[...ticked].map((folder) => `run=${encodeURIComponent(folder)}`).join("&")}`);
    const head = make("tr", {}, make("th", {}, "setting"), ...found.labels.map((label) => make("th", {}, label)));
    const rows = Object.entries(found.differing).map(([name, values]) => make("tr", {}, make("td", {}, name), ...values.map((value) => make("td", {}, value))));
    return [await pictured(found.chart, "curves of the runs over each other"), make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)))];
  })
);

at("find").addEventListener("click", async () => {
  at("ready").replaceChildren(make("li", {}, "looking"));
  const found = await api("/api/figures");
  const pages = found.pages.map((one) => make("li", {}, make("a", { href: `/told/${encodeURIComponent(one.paper)}/${encodeURIComponent(one.preset)}` }, `${one.paper}, ${one.preset}`), " the whole paper"));
  at("ready").replaceChildren(...pages, ...found.figures.map((one) => {
    const open = make("button", { type: "button" }, `${one.id}, ${one.preset}`);
    open.addEventListener("click", () => appear(one.source, async () => [await pictured(await api(`/api/figure/${encodeURIComponent(one.id)}/${encodeURIComponent(one.preset)}`), one.shows), make("p", {}, one.shows)]));
    return make("li", {}, open, " ", one.source);
  }));
  if (!found.figures.length) at("ready").replaceChildren(make("li", {}, "None: `stagewise reproduce` makes the runs of all figures."));
});

let last = "";
function list(found) {
  at("root").textContent = found.root;
  const running = found.runs.filter((run) => run.state === "running");
  at("count").textContent = `${found.runs.length} runs, ${running.length} running`;
  for (const [folder, card] of cards) if (!running.some((run) => run.folder === folder)) card.remove(), cards.delete(folder);
  running.forEach(watch);
  at("now").querySelector("p.soft").hidden = running.length > 0;
  const words = document.querySelector(".filters input").value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = found.runs.filter((run) => words.every((word) => `${run.experiment} ${run.settings} ${run.state}`.toLowerCase().includes(word)));
  const now = JSON.stringify([shown.map((run) => [run.folder, run.state]), found.reports]);
  if (now === last) return;
  const held = document.activeElement?.closest("#rows tr"); // a table that is made anew leaves the keyboard where it was
  const [place, column] = held ? [held.ariaLabel, [...held.querySelectorAll("input, button")].indexOf(document.activeElement)] : [null, 0];
  at("rows").replaceChildren(...shown.slice(0, 500).map(row));
  if (place) [...at("rows").children].find((one) => one.ariaLabel === place)?.querySelectorAll("input, button")[column]?.focus();
  last = now;
  at("refusal").textContent = shown.length > 500 ? `the first 500 of ${shown.length}` : "";
  if (found.reports.length) at("written").replaceChildren(...found.reports.map((name) => make("li", {}, make("a", { href: `/reports/${encodeURIComponent(name)}/report.html` }, name))));
}

let latest = null;
async function look() {
  try {
    latest = await api("/api/runs");
    list(latest);
  } catch (error) {
    at("count").textContent = `no answer (${error.message}); trying again`;
  }
  setTimeout(look, 2000);
}
document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
document.querySelector(".filters").addEventListener("input", () => latest && list(latest));
look();
