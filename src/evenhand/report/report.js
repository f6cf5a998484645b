"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function lines(text, most) {
    const out = [""];
    for (const word of text.split(" ")) {
      const last = out[out.length - 1];
      if (last && (last + " " + word).length > most) out.push(word);
      else out[out.length - 1] = last ? last + " " + word : word;
    }
    return out.length > 1 ? out : text;
  }

  function cramped(spec, width) {
    const cells = (spec.layer || [])[0];
    if (!cells || !cells.mark || cells.mark.type !== "rect" || !cells.encoding.x) return false;
    const field = cells.encoding.x.field;
    const columns = new Set((spec.data.values || []).map(function (row) { return row[field]; }));
    return width / columns.size < 33;
  }

  function fitted(spec, width) {
    const copy = JSON.parse(JSON.stringify(spec));
    const narrow = width < 480;
    const labels = Math.round(Math.max(80, Math.min(360, width * (narrow ? 0.42 : 0.36))));
    if (cramped(copy, width - labels)) {
      copy.layer = copy.layer.filter(function (layer) { return layer.mark.type !== "text"; });
    }
    for (const layer of [copy].concat(copy.layer || [])) {
      for (const name of Object.keys(layer.encoding || {})) {
        const channel = layer.encoding[name];
        if (name === "y" && channel.axis && channel.axis.labelLimit) channel.axis.labelLimit = labels;
        if (name === "x" && typeof channel.title === "string") {
          channel.title = lines(channel.title, Math.max(20, Math.floor((width - labels) / 6.5)));
        }
        if (narrow && channel.legend) {
          channel.legend.columns = 1;
          channel.legend.gradientLength = 150;
        }
      }
    }
    return copy;
  }

  function draw(mode) {
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, logLevel: vega.Error,
      config: data.themes[mode], tooltip: { theme: mode } };
    const drawn = data.charts.map(function (spec, place) {
      const target = document.getElementById("chart-" + place);
      return vegaEmbed(target, fitted(spec, target.clientWidth || 600), options)
        .then(function () { target.dataset.drawn = "yes"; })
        .catch(function (error) {
          target.textContent = "This chart could not be drawn (" + error.message + "). Its numbers are in the table below.";
        });
    });
    return Promise.all(drawn).then(function () { document.body.dataset.charts = "done"; });
  }

  draw(dark.matches ? "dark" : "light");
  dark.addEventListener("change", function () { draw(dark.matches ? "dark" : "light"); });
  window.addEventListener("beforeprint", function () { draw("light"); });
  window.addEventListener("afterprint", function () { draw(dark.matches ? "dark" : "light"); });
})();
