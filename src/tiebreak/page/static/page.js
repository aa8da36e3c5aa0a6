// Keys and focus; htmx does the rest. Everything works without this file, by buttons.
"use strict";

const WAIT = 1200; // milliseconds in which the keys of one number follow each other
let typed = "";
let since = 0;

function keysAreOn() {
  const box = document.getElementById("keys");
  return box === null || box.checked;
}

function isTyping(element) {
  return element.matches("input:not([type=checkbox]), select, textarea");
}

// The button that a key presses: "2", or "1" and "4" one after the other where there are many.
function buttonFor(key) {
  const buttons = [...document.querySelectorAll("#ask [data-key]")];
  const has = (button, wanted) => button.dataset.key.split(" ").includes(wanted);
  if (!/^[0-9]$/.test(key)) {
    typed = "";
    return buttons.find((button) => has(button, key));
  }
  typed = Date.now() - since < WAIT ? typed + key : key;
  since = Date.now();
  const found = buttons.find((button) => has(button, typed));
  if (found) typed = "";
  return found;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (!keysAreOn() || isTyping(event.target)) return;
  const button = buttonFor(event.key.toLowerCase());
  if (button === undefined || button.disabled) return;
  event.preventDefault();
  button.click();
});

// One answer at a time: a second key before the next question is there answers nothing.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.closest("#ask") === null || event.target.id === "changed") return;
  document.querySelectorAll("#ask button").forEach((button) => (button.disabled = true));
  document.getElementById("failed").textContent = "";
});

function goOn() {
  document.querySelectorAll("#ask button").forEach((button) => (button.disabled = false));
}

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.target.id === "changed") return;
  goOn();
});

function tellFailure(words) {
  goOn();
  document.getElementById("failed").textContent = words;
}

document.addEventListener("htmx:sendError", () =>
  tellFailure("The server cannot be reached. Nothing was kept of the last key: press it again.")
);

document.addEventListener("htmx:responseError", (event) => {
  const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
  const said = page.querySelector("[role=alert]");
  const words = said === null ? page.body.textContent : said.textContent;
  tellFailure(`${words.trim()} (${event.detail.xhr.status})`);
});

// A new question is read out from its beginning, and tabbing starts there.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "ask") return;
  const title = document.getElementById("asked");
  if (title !== null) title.focus();
});

// Whether single keys answer is remembered: who dictates or uses a screen reader turns it off.
document.addEventListener("DOMContentLoaded", () => {
  const box = document.getElementById("keys");
  if (box === null) return;
  box.checked = localStorage.getItem("keys") !== "off";
  box.addEventListener("change", () => localStorage.setItem("keys", box.checked ? "on" : "off"));
});
