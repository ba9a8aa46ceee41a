"use strict";
/* Progress without reloading, and files that are dropped. */
(() => {
  for (const zone of document.querySelectorAll(".drop")) {
    /* A file that is dropped beside the field is meant for it. */
    const input = zone.querySelector("input");
    for (const kind of ["dragover", "dragleave", "drop"]) {
      zone.addEventListener(kind, (event) => {
        zone.classList.toggle("over", kind === "dragover");
        if (event.target === input) return;
        event.preventDefault();
        if (kind === "drop" && event.dataTransfer.files.length) input.files = event.dataTransfer.files;
      });
    }
  }
  for (const form of document.querySelectorAll("form")) {
    form.addEventListener("submit", () => {
      const said = form.querySelector(".sending");
      if (said) said.textContent = "Sending the file …";
    });
  }
  const main = document.querySelector("main[data-busy]");
  if (main) {
    const ask = async () => {
      try {
        const answer = await fetch(main.dataset.status);
        const now = answer.ok ? await answer.json() : {};
        if (String(now.version) !== main.dataset.version) { location.reload(); return; }
        if (now.busy) {
          document.getElementById("doing").textContent = now.doing;
          const bar = document.getElementById("share");
          if (now.share === null) bar.removeAttribute("value"); else bar.value = now.share;
        }
      } catch {
        document.getElementById("doing").textContent = "The app does not answer; it has probably been ended.";
      }
      setTimeout(ask, 400);
    };
    setTimeout(ask, 300);
  }
  document.documentElement.dataset.ready = "yes";
})();
