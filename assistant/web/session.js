// Who is logged in. The session lives in a cookie that no script can read; what is kept here lives as long as the page.

const byId = (id) => document.getElementById(id);
let csrfToken = null;
let principal = null;
const whenEnded = [];

// Calls this whenever nobody is logged in any more.
export const onEnd = (callback) => whenEnded.push(callback);

const showLogin = (words) => {
  csrfToken = null;
  byId("login").hidden = false;
  byId("who").hidden = true;
  byId("ask").hidden = true;
  byId("login-status").textContent = words;
  byId("token").focus();
  for (const callback of whenEnded) callback();
};

const showSession = (session) => {
  csrfToken = session.csrf_token;
  principal = session.principal;
  byId("login").hidden = true;
  byId("who").hidden = false;
  byId("ask").hidden = false;
  byId("login-status").textContent = "";
  byId("who-name").textContent = `${session.principal} (${session.role}), logged in until ${new Date(session.expires).toLocaleString()}`;
};

// What a problem document says, or that there is none.
const detail = async (response) => {
  try {
    const problem = await response.json();
    return problem.detail ?? problem.title;
  } catch {
    return `The service answered ${response.status}.`;
  }
};

const ended = () => showLogin("Your session has ended; log in again.");

const changes = (options) => !["GET", "HEAD"].includes(options.method ?? "GET");

const send = (path, options) => {
  const headers = { ...options.headers };
  if (csrfToken && changes(options)) headers["X-CSRF-Token"] = csrfToken;
  return fetch(path, { ...options, headers, credentials: "same-origin" });
};

// All tabs share one cookie, so a log-in in another tab changes whose session this one has. Says whether there is a new session of
// the same person; the answers of somebody else go with the page.
const hasNewSession = async () => {
  const response = await fetch("/v1/session", { credentials: "same-origin" });
  if (response.status === 401) ended();
  if (!response.ok) return false;
  const session = await response.json();
  if (session.principal !== principal) {
    window.location.reload();
    return false;
  }
  const isNew = session.csrf_token !== csrfToken;
  showSession(session);
  return isNew;
};

// Sends a request of this session. One that finds no session any more shows the log-in, and says so; one that finds a newer session
// of the same person is sent once more with it.
export const request = async (path, options = {}) => {
  const response = await send(path, options);
  if (response.status === 401) ended();
  if (response.status === 403 && changes(options) && (await hasNewSession())) return send(path, options);
  return response;
};

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  byId("token").value = "";
  try {
    const response = await fetch("/login", {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (response.ok) showSession(await response.json());
    else byId("login-status").textContent = `Not logged in: ${await detail(response)}.`;
  } catch (error) {
    byId("login-status").textContent = `The service cannot be reached: ${error.message}`;
  }
});

byId("logout").addEventListener("click", async () => {
  try {
    const response = await request("/logout", { method: "POST" });
    if (response.ok) showLogin("You are logged out.");
    else if (response.status !== 401) byId("login-status").textContent = `Still logged in: ${await detail(response)}.`;
  } catch (error) {
    byId("login-status").textContent = `Still logged in: the service cannot be reached: ${error.message}`;
  }
});

// A reload of the page goes on with the session that the cookie stands for.
const begin = async () => {
  try {
    const response = await fetch("/v1/session", { credentials: "same-origin" });
    if (response.ok) {
      const session = await response.json();
      showSession(session);
      return;
    }
    const words = response.status === 401 ? "" : await detail(response);
    showLogin(words);
  } catch (error) {
    showLogin(`The service cannot be reached: ${error.message}`);
  }
};

begin();
