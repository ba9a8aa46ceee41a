"use strict";
/* Progress without reloading, and files that are too large said before they are sent. */
(() => {
  for (const input of document.querySelectorAll("[data-limit]")) {
    const check = () => {
      const large = [...input.files].some((file) => file.size > Number(input.dataset.limit));
      input.setCustomValidity(large ? `The file is larger than ${input.dataset.limitText}, the most that this page takes.` : "");
      if (large) input.reportValidity();
    };
    input.addEventListener("change", check);
    const zone = input.closest(".drop");
    if (zone) {
      /* A file that is dropped beside the field is meant for it. */
      for (const kind of ["dragover", "dragleave", "drop"]) {
        zone.addEventListener(kind, (event) => {
          zone.classList.toggle("over", kind === "dragover");
          if (event.target === input) return;
          event.preventDefault();
          if (kind === "drop" && event.dataTransfer.files.length) { input.files = event.dataTransfer.files; check(); }
        });
      }
    }
  }
  for (const form of document.querySelectorAll("form")) {
    form.addEventListener("submit", () => {
      const said = form.querySelector(".sending");
      if (said) said.textContent = "Sending the file …";
    });
  }
  const main = document.querySelector("main[data-status]");
  if (main) {
    const busy = main.dataset.busy === "yes";
    const ask = async () => {
      try {
        const answer = await fetch(main.dataset.status);
        if (!answer.ok) { if (busy) location.reload(); return; }
        const now = await answer.json();
        if (busy && String(now.version) !== main.dataset.version) { location.reload(); return; }
        if (now.busy && busy) {
          document.getElementById("doing").textContent = now.doing;
          const bar = document.getElementById("share");
          if (now.share === null) bar.removeAttribute("value"); else bar.value = now.share;
        }
      } catch {
        if (busy) document.getElementById("doing").textContent = "The app does not answer; it has probably been ended.";
      }
      setTimeout(ask, busy ? 400 : 60000); /* an open page keeps its file from being removed */
    };
    setTimeout(ask, busy ? 300 : 60000);
  }
  document.documentElement.dataset.ready = "yes";
})();
