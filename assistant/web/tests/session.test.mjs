// Run with `node --test assistant/web/tests/`. The page's parts are stood in for; what is tested is what is sent, and when the page begins anew.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const source = readFileSync(new URL("../session.js", import.meta.url), "utf8");
let pages = 0;

// A page whose service answers from `answers` in turn; gives back what it sent, and how often it began anew.
const page = async (answers) => {
  const sent = [];
  let reloads = 0;
  const parts = {};
  globalThis.document = {
    getElementById: (id) => (parts[id] ??= { addEventListener() {}, focus() {} }),
  };
  globalThis.window = { location: { reload: () => (reloads += 1) } };
  globalThis.fetch = async (path, options) => {
    sent.push([options.method ?? "GET", path, options.headers?.["X-CSRF-Token"]]);
    const [status, body] = answers.shift();
    return { status, ok: status < 300, json: async () => body };
  };
  pages += 1;
  const module = await import(`data:text/javascript,${encodeURIComponent(source)}//${pages}`);
  await new Promise((resolve) => setTimeout(resolve, 0));
  return { request: module.request, sent, parts, reloads: () => reloads };
};

const session = (principal, csrf_token) => [200, { principal, role: "viewer", csrf_token, expires: "2030-01-01T00:00:00Z" }];
const ask = ["/v1/chat", { method: "POST", body: "{}" }];

test("a log-in as somebody else in another tab begins the page anew", async () => {
  const { request, sent, reloads } = await page([session("ann", "1"), [403], session("bob", "2")]);
  assert.equal((await request(...ask)).status, 403);
  assert.equal(reloads(), 1);
  assert.deepEqual(sent.slice(1), [["POST", "/v1/chat", "1"], ["GET", "/v1/session", undefined]]);
});

test("a newer session of the same person is used, once", async () => {
  const { request, sent, reloads } = await page([session("ann", "1"), [403], session("ann", "2"), [403]]);
  assert.equal((await request(...ask)).status, 403);
  assert.equal(reloads(), 0);
  assert.deepEqual(sent.slice(1), [["POST", "/v1/chat", "1"], ["GET", "/v1/session", undefined], ["POST", "/v1/chat", "2"]]);
});

test("what the policy denies is sent once", async () => {
  const { request, sent, reloads } = await page([session("ann", "1"), [403], session("ann", "1")]);
  assert.equal((await request(...ask)).status, 403);
  assert.equal(reloads(), 0);
  assert.equal(sent.filter(([method]) => method === "POST").length, 1);
});

test("a session that has ended meanwhile shows the log-in", async () => {
  const { request, parts } = await page([session("ann", "1"), [403], [401]]);
  await request(...ask);
  assert.equal(parts.login.hidden, false);
});
