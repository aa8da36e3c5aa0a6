// Keys, focus and copying; htmx does the rest. Everything works without this file, by buttons.
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

function setBusy(isBusy) {
  document.querySelectorAll("#ask button").forEach((button) => (button.disabled = isBusy));
}

function tellFailure(words) {
  const place = document.getElementById("failed");
  place.textContent = words;
  if (words) place.scrollIntoView();
}

// One answer at a time: a second key before the next question is there answers nothing.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.closest("#ask") === null || event.target.id === "changed") return;
  setBusy(true);
  tellFailure("");
});

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.target.id !== "changed") setBusy(false);
});

document.addEventListener("htmx:sendError", () => {
  setBusy(false);
  tellFailure("The server cannot be reached. The last answer was not saved: give it again.");
});

document.addEventListener("htmx:responseError", (event) => {
  const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
  const said = page.querySelector("[data-code]") ?? page.body;
  setBusy(false);
  tellFailure(`${said.textContent.trim()} (${event.detail.xhr.status})`);
});

// A new question is read out from its beginning, and tabbing starts there; what was saved is above.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id !== "ask") return;
  const title = document.getElementById("asked");
  if (title !== null) title.focus({ preventScroll: true });
  const said = document.getElementById("said");
  if (said !== null && said.getBoundingClientRect().top < 0) said.scrollIntoView();
});

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const text = source.value ?? source.textContent;
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
  } else { // plain http, where browsers have no clipboard
    getSelection().selectAllChildren(source);
    if (source.select) source.select();
    document.execCommand("copy");
  }
  button.firstChild.data = "Copied";
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-copy]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  });
  // Whether single keys answer is remembered: people who dictate turn it off.
  const box = document.getElementById("keys");
  if (box === null) return;
  box.checked = localStorage.getItem("keys") !== "off";
  box.addEventListener("change", () => localStorage.setItem("keys", box.checked ? "on" : "off"));
});
