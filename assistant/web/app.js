// One question box: sends a question, shows the steps as they happen, then the answer with its evidence.
// Text from the service is only ever set as text, never as markup.

import { onEnd, request } from "./session.js";

const byId = (id) => document.getElementById(id);
let running = null;
let answerId = null;

const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};

const clear = () => {
  for (const id of ["steps", "causes", "facts", "notes", "evidence"]) byId(id).replaceChildren();
  byId("answer").hidden = true;
  byId("chart").hidden = true;
  byId("status").className = "";
};

const step = (text) => byId("steps").append(element("li", text));

const marks = (citations) => citations.map((id) => {
  const button = element("button", `[${id}]`, "mark");
  button.type = "button";
  button.title = `Show the series of ${id}`;
  button.addEventListener("click", () => showEvidence(id));
  return button;
});

const sentence = (claim) => {
  const item = element("li", claim.text);
  item.append(...marks(claim.citations));
  return item;
};

const list = (title, items) => {
  if (!items.length) return [];
  const ul = element("ul");
  ul.append(...items);
  return [element("h3", title), ul];
};

const causeCard = (cause) => {
  const card = element("section", undefined, `cause ${cause.status}`);
  const where = cause.components.map((c) => Object.entries(c).map(([k, v]) => `${k} ${v}`).join(", ")).join("; ");
  const since = cause.onset ? `, since ${cause.onset}` : "";
  const own = element("p", cause.why);
  card.append(element("h3", `${cause.id} (${cause.status.replace("_", " ")})${where ? ` on ${where}` : ""}${since}`), own);
  // The cause's own sentence is one of its claims, and is shown once.
  const isOwn = (claim) => claim.text === cause.why;
  own.append(...marks(cause.claims.find(isOwn)?.citations ?? []));
  const claims = element("ul");
  claims.append(...cause.claims.filter((claim) => !isOwn(claim)).map(sentence));
  card.append(claims);
  return card;
};

const evidenceItem = (evidence) => {
  const details = element("details");
  const metric = evidence.metric ?? evidence.canonical_metric ?? evidence.dataset;
  const summary = element("summary", `${evidence.id}: ${metric}, ${evidence.aggregation ?? evidence.tool}, ${evidence.points} points, ${evidence.read.rows} rows read`);
  details.append(summary, ...marks([evidence.id]), element("pre", evidence.sql ?? ""), element("pre", JSON.stringify(evidence.params, null, 1)), element("p", `query id ${evidence.query_id ?? ""}`));
  return details;
};

const showAnswer = (answer) => {
  answerId = answer.answer_id;
  byId("headline").textContent = answer.headline;
  byId("window").textContent = answer.time_range ? `Window: ${answer.time_range.how}` : "";
  const supported = answer.causes.filter((c) => c.status === "supported");
  const others = answer.causes.filter((c) => c.status !== "supported");
  const rest = element("details");
  rest.append(element("summary", `${others.length} other causes were looked at and ruled out, or could not be checked`), ...others.map(causeCard));
  byId("causes").replaceChildren(...supported.map(causeCard), ...(others.length ? [rest] : []));
  byId("facts").replaceChildren(...list("Facts", answer.claims.map(sentence)));
  const notes = [["Choices", answer.choices.map((c) => `${c.label}: ${c.question}`)], ["Data health", answer.data_health], ["Next steps", answer.next_steps], ["You could ask", answer.suggestions]];
  byId("notes").replaceChildren(...notes.flatMap(([title, lines]) => list(title, lines.map((line) => element("li", line)))));
  byId("evidence").replaceChildren(...(answer.evidence.length ? [element("h3", "Evidence")] : []), ...answer.evidence.map(evidenceItem));
  const v = answer.verification;
  byId("footer").textContent = `${v.passed} of ${v.checked} statements verified. ${answer.cost.queries} queries read ${answer.cost.rows_read} rows. Audit record ${answer.audit.question_id}.`;
  byId("answer").hidden = false;
};

const fail = (problem) => {
  byId("status").className = "error";
  byId("status").textContent = problem.detail ?? problem.title ?? "The service did not answer.";
};

const onEvent = (name, data) => {
  switch (name) {
    case "accepted": step("The question is on record."); break;
    case "plan": step(`Calling ${data.calls.map((c) => c.tool).join(", ")}`); break;
    case "tool_call": break;
    case "tool_result": step(data.error ? `${data.tool}: ${data.error}` : `${data.tool}: ${data.queries} queries, ${data.rows_read} rows in ${Math.round(data.wall_ms)} ms`); break;
    case "claim": step(data.text); break;
    case "answer": showAnswer(data); break;
    case "error": fail(data); break;
  }
};

// Reads server-sent events from a response body: fetch is used because an EventSource can send no header.
const readEvents = async (body) => {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const name = lines.find((l) => l.startsWith("event: "))?.slice(7);
      const data = lines.filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).join("\n");
      if (name && data) onEvent(name, JSON.parse(data));
    }
  }
};

byId("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  clear();
  running = new AbortController();
  byId("stop").disabled = false;
  byId("status").textContent = "Asking…";
  try {
    const response = await request("/v1/chat", {
      method: "POST",
      signal: running.signal,
      headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
      body: JSON.stringify({ question: byId("question").value, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC" }),
    });
    if (!response.ok) {
      if (response.status !== 401) fail(await response.json());
      return;
    }
    await readEvents(response.body);
    if (byId("status").className !== "error") byId("status").textContent = "";
  } catch (error) {
    if (!running) return;
    fail({ detail: error.name === "AbortError" ? "Stopped." : `The service cannot be reached: ${error.message}` });
  } finally {
    byId("stop").disabled = true;
  }
});

byId("stop").addEventListener("click", () => running?.abort());

// What one person saw is not left for the next one.
onEnd(() => {
  running?.abort();
  running = null;
  clear();
  byId("status").textContent = "";
  answerId = null;
});

const showEvidence = async (id) => {
  const response = await request(`/v1/evidence/${answerId}.${id}`);
  const evidence = await response.json();
  if (!response.ok) {
    fail(evidence);
    return;
  }
  drawChart(evidence);
};

// A plain line chart: one line a series; a gap in the samples is a gap in the line.
const drawChart = (evidence) => {
  const figure = byId("chart");
  figure.querySelector("svg")?.remove();
  const points = evidence.series.flatMap((s) => s.points);
  figure.hidden = false;
  const name = evidence.metric ?? evidence.canonical_metric ?? evidence.dataset;
  if (!points.length) {
    figure.querySelector("figcaption").textContent = `${evidence.id}: ${name} has no points to draw.`;
    return;
  }
  const times = points.map((p) => Date.parse(p.time));
  const values = points.map((p) => p.value);
  const [t0, t1] = [times.reduce((a, b) => Math.min(a, b)), times.reduce((a, b) => Math.max(a, b))];
  const [v0, v1] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 1000 300");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${name} over time`);
  const longest = (evidence.step_seconds ?? 60) * 2500;
  for (const series of evidence.series) {
    let line = [];
    let before = null;
    const flush = () => {
      if (line.length) {
        const polyline = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
        polyline.setAttribute("points", line.join(" "));
        svg.append(polyline);
      }
      line = [];
    };
    for (const point of series.points) {
      const at = Date.parse(point.time);
      if (before !== null && at - before > longest) flush();
      before = at;
      line.push(`${((at - t0) / (t1 - t0 || 1)) * 1000},${290 - ((point.value - v0) / (v1 - v0 || 1)) * 280}`);
    }
    flush();
  }
  figure.querySelector("figcaption").textContent = `${evidence.id}: ${name}, ${evidence.series.length} series, ${v0} to ${v1} ${evidence.unit.replaceAll("_", " ")}, ${evidence.from} to ${evidence.to}`;
  figure.append(svg);
  figure.scrollIntoView({ behavior: "smooth" });
};
