"use strict";
(function () {
  const place = document.querySelector("[data-progress]");
  if (!place) return;

  function time(seconds) {
    const minutes = Math.round(seconds / 60);
    if (seconds < 90) return Math.round(seconds) + " s";
    return minutes < 90 ? minutes + " min" : Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
  }

  function show(at) {
    const texts = { status: at.status, inputs: at.inputs.toLocaleString("en"),
      done: at.done.join(", ") || "none yet", now: at.now || "–", seconds: time(at.seconds),
      left: at.left === null ? "not known yet" : "about " + time(at.left) };
    for (const node of place.querySelectorAll("[data-show]")) {
      const text = String(texts[node.dataset.show]);
      if (node.textContent !== text) node.textContent = text;
    }
    const bar = place.querySelector("progress");
    if (bar) bar.value = Math.min(at.inputs, bar.max);
  }

  function ask() {
    fetch(place.dataset.progress).then(function (answer) { return answer.json(); }).then(function (at) {
      show(at);
      if (at.status === "finished") { window.location.reload(); return; }
      if (at.status === "running") window.setTimeout(ask, 1000);
    }).catch(function () { window.setTimeout(ask, 5000); });
  }
  window.setTimeout(ask, 500);
})();
