// Exchanges the token in the address (#token=…) for a cookie, and opens the page without it. Every page does so: a token that
// stays in the address would be seen by others.
"use strict";

async function signIn(token) {
  const message = document.getElementById("message") || document.getElementById("toasts");
  message.textContent = "Signing in …";
  const answer = await fetch("/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (answer.ok) {
    location.reload();
  } else {
    const problem = await answer.json().catch(() => ({ detail: "The server did not answer." }));
    message.textContent = "You are not signed in: " + problem.detail;
  }
}

function fromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    signIn(token);
  }
}

window.addEventListener("hashchange", fromAddress);
document.getElementById("login")?.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(document.getElementById("token").value.trim());
});
fromAddress();
