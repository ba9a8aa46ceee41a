"use strict";
/* Tables to sort, filter, search and download, and the curve of an item that is opened. Labels are set as text only. */
(() => {
  const tables = JSON.parse(document.getElementById("data").textContent);
  const ALL = 1e9;

  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const draw = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const formats = {};
  const format = (value, digits) => {
    if (value === null) return "–";
    if (typeof value === "string") return value;
    formats[digits] ??= new Intl.NumberFormat("en-US", {
      minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "negative",
    });
    return formats[digits].format(value);
  };
  const cell = (column, row) => {
    const value = column.values[row];
    if (column.digits === undefined) return column.shown[row] ?? value;
    const least = 10 ** -column.digits;
    return column.p && value !== null && value < least ? `<${format(least, column.digits)}` : format(value, column.digits);
  };

  /* Numbers by size, what is missing last; words as a reader would order them, q2 before q10. */
  const words = new Intl.Collator("en", { numeric: true });
  const order = (column, down) => {
    const sign = down ? -1 : 1, values = column.values;
    if (column.digits === undefined) return (a, b) => sign * words.compare(values[a], values[b]) || a - b;
    const size = (v) => (typeof v === "string" ? (v === "∞" ? Infinity : -Infinity) : v);
    return (a, b) => {
      const x = size(values[a]), y = size(values[b]);
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return x === y ? a - b : sign * (x < y ? -1 : 1);
    };
  };

  const quoted = (text) => (/[",\n\r;\t]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csv = (table, rows) => {
    const lines = [table.columns.map((column) => quoted(column.name)).join(",")];
    for (const row of rows) {
      lines.push(table.columns.map((column) => {
        const value = column.values[row];
        if (column.digits === undefined) return quoted(column.cells[row] ?? value);
        return value === null ? "" : String(value).replace("∞", "inf");
      }).join(","));
    }
    return lines.join("\n") + "\n";
  };

  /* The expected answer to an item with these thresholds, as a part of the highest one. */
  const expected = (thresholds, ability) => {
    const logs = [0];
    for (const one of thresholds) logs.push(logs[logs.length - 1] + ability - one);
    const top = Math.max(...logs), weights = logs.map((value) => Math.exp(value - top));
    return weights.reduce((sum, w, k) => sum + k * w, 0) / weights.reduce((sum, w) => sum + w) / thresholds.length;
  };

  /* The model's curve, and the mean answers (or shares right) of groups by ability with 95% intervals. */
  const curve = (thresholds, strata, label, trait) => {
    const W = 420, H = 250, left = 40, bottom = 36, top = 8, right = 8, K = thresholds.length;
    const marks = [];
    for (let k = 0; k < strata.length; k += 5) {
      const [mean, , low, high] = strata.slice(k + 1, k + 5).map((value) => value / 1000 / K);
      marks.push({ n: strata[k], mean, x: strata[k + 2] / 100, low, high });
    }
    const low = Math.min(...thresholds.map((t) => t - 2.5), ...marks.map((m) => m.x - 0.4));
    const high = Math.max(...thresholds.map((t) => t + 2.5), ...marks.map((m) => m.x + 0.4));
    const x = (v) => left + ((v - low) / (high - low)) * (W - left - right);
    const y = (p) => H - bottom - p * (H - bottom - top);
    const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, class: "curve", role: "img" });
    const places = thresholds.map((t) => t.toFixed(2)).join(", ");
    const what = K === 1 ? `an even chance at ${trait} ${places}` : `thresholds at ${places}`;
    const seen = marks.map((m) => `${K === 1 ? `${Math.round(100 * m.mean)}%` : (K * m.mean).toFixed(2)} of ${m.n}`);
    svg.setAttribute("aria-label", `Curve of ${label}: ${what}. ` + (marks.length
      ? `${K === 1 ? "Right" : "Mean"} answers in groups from the lowest to the highest ${trait}: ${seen.join(", ")}.` : ""));
    for (let k = 0; k <= K; k += K === 1 ? 0.25 : Math.ceil(K / 5)) {
      svg.append(draw("line", { class: "axis", x1: left, x2: W - right, y1: y(k / K), y2: y(k / K) }));
      svg.append(draw("text", { x: left - 5, y: y(k / K) + 4, "text-anchor": "end" }, K === 1 ? `${100 * k}%` : k));
    }
    const step = high - low > 9 ? 2 : 1;
    for (let t = Math.ceil(low / step) * step; t <= high; t += step) {
      svg.append(draw("line", { class: "axis", x1: x(t), x2: x(t), y1: y(0), y2: y(0) + 4 }));
      svg.append(draw("text", { x: x(t), y: y(0) + 16, "text-anchor": "middle" }, t));
    }
    svg.append(draw("text", { x: (left + W - right) / 2, y: H - 4, "text-anchor": "middle" }, `${trait} (logits)`));
    const points = Array.from({ length: 81 }, (_, k) => {
      const t = low + (k / 80) * (high - low);
      return `${x(t).toFixed(1)},${y(expected(thresholds, t)).toFixed(1)}`;
    });
    svg.append(draw("polyline", { class: "model", points: points.join(" ") }));
    for (const m of marks) {
      svg.append(draw("line", { class: "range", x1: x(m.x), x2: x(m.x), y1: y(m.low), y2: y(m.high) }));
      svg.append(draw("circle", { class: "seen", cx: x(m.x), cy: y(m.mean), r: 4 }));
    }
    return svg;
  };

  /* A small table in an opened row. */
  const small = (caption, head, rows) => {
    const table = make("table");
    table.append(make("caption", caption));
    const line = table.createTHead().insertRow();
    for (const name of head) line.append(Object.assign(make("th", name), { scope: "col" }));
    const body = table.createTBody();
    for (const row of rows) {
      const one = body.insertRow();
      row.forEach((value, k) => one.append(k ? make("td", value) : Object.assign(make("th", value), { scope: "row" })));
    }
    return table;
  };

  const sheet = (table, row) => {
    const box = make("div", undefined, "sheet"), details = table.details, first = table.columns[0];
    const difficulty = table.columns.find((column) => column.name === "difficulty")?.values[row];
    const strata = details.strata?.[row], trait = details.trait ?? "ability";
    if (typeof difficulty === "number" && (strata || !details.strata)) {
      const figure = make("div");
      figure.append(curve(details.thresholds?.[row] ?? [difficulty], strata ?? [], cell(first, row), trait));
      figure.append(make("p", strata
        ? `Line: the model. Marks: people in groups by ${trait}, with 95% intervals.` : "Line: the model.", "status"));
      box.append(figure);
    }
    const list = make("dl");
    if (first.whole[row] !== undefined) {
      list.append(make("dt", "Whole name"));
      const whole = make("dd", first.whole[row], "full");
      whole.tabIndex = 0;
      list.append(whole);
    }
    for (const column of table.columns.slice(1)) {
      const text = column.below ? column.whole[row] ?? column.values[row] : cell(column, row);
      list.append(make("dt", column.head), make("dd", text || "–"));
    }
    box.append(list);
    for (const more of details.tables ?? []) {
      const rows = more.rows[row];
      if (rows) {
        const frame = make("div", undefined, "scroll");
        frame.tabIndex = 0;
        frame.setAttribute("role", "region");
        frame.setAttribute("aria-label", `${more.caption} of ${cell(first, row)}`);
        frame.append(small(more.caption, more.head, rows));
        box.append(frame);
      }
    }
    return box;
  };

  for (const root of document.querySelectorAll("[data-table]")) {
    const name = root.dataset.table, table = tables[name];
    const open = table.columns.filter((column) => !column.closed), labels = table.columns[0];
    const below = table.columns.find((column) => column.below), total = labels.values.length;
    const searched = labels.values.map((label, k) => `${label}${below ? `\n${below.values[k]}` : ""}`.toLowerCase());
    const find = (selector) => root.querySelector(selector);
    const [search, filter, size, body, said] = ["[type=search]", ".filter", ".size", "tbody", ".status"].map(find);
    const opened = new Set();
    let rows = [], sorted = null, down = false, start = 0, shown = [];

    filter.append(new Option(`all ${table.noun}`, ""));
    for (const one of table.filters) {
      for (const value of one.values) {
        const option = new Option(`${table.columns[one.column].head}: ${value}`, `${one.column}:${value}`);
        filter.append(option);
      }
    }
    filter.closest("label").hidden = filter.options.length < 3;
    const most = total <= 300 ? ALL : 100;
    for (const [text, value] of [["25", 25], ["100", 100], ["1,000", 1000], [`all ${total.toLocaleString("en-US")}`, ALL]]) {
      if (value < total || value === ALL) size.append(new Option(text, value, value === most, value === most));
    }
    size.closest("label").hidden = size.options.length < 2;
    search.closest("label").hidden = labels.digits !== undefined;

    const choose = () => {
      const wanted = search.value.trim().toLowerCase(), [, column, value] = /^(\d+):([^]*)$/.exec(filter.value) ?? [];
      rows = [];
      for (let k = 0; k < total; k++) {
        if (column && table.columns[column].values[k] !== value) continue;
        if (wanted && !searched[k].includes(wanted)) continue;
        rows.push(k);
      }
      if (sorted) rows.sort(order(sorted, down));
      start = 0;
      render();
    };

    const toggle = (row, line, button) => {
      const next = line.nextElementSibling;
      if (next?.classList.contains("opened")) {
        next.remove();
        opened.delete(row);
      } else {
        show(row, line);
        opened.add(row);
      }
      button.setAttribute("aria-expanded", String(opened.has(row)));
    };
    const show = (row, line) => {
      const extra = make("tr", undefined, "opened"), inside = make("td");
      inside.colSpan = open.length;
      inside.append(sheet(table, row));
      extra.append(inside);
      line.after(extra);
    };

    const render = () => {
      const many = Number(size.value);
      shown = rows.slice(start, start + many);
      const lines = shown.map((row) => {
        const line = make("tr"), head = make("th");
        head.scope = "row";
        const label = make("bdi", cell(labels, row), "label");
        if (table.details) {
          const button = make("button");
          button.type = "button";
          button.setAttribute("aria-expanded", String(opened.has(row)));
          button.append(label);
          button.addEventListener("click", () => toggle(row, line, button));
          head.append(button);
        } else head.append(label);
        if (below?.values[row]) head.append(make("bdi", cell(below, row), "below"));
        line.append(head);
        for (const column of open.slice(1)) {
          line.append(make("td", cell(column, row), column.digits === undefined ? "word" : ""));
        }
        return line;
      });
      body.replaceChildren(...lines);
      shown.forEach((row, k) => opened.has(row) && show(row, lines[k]));
      const of = rows.length === total ? `${total.toLocaleString("en-US")} ${table.noun}`
        : `${rows.length.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} ${table.noun}`;
      const part = shown.length < rows.length
        ? `; rows ${(start + 1).toLocaleString("en-US")} to ${(start + shown.length).toLocaleString("en-US")} are shown` : "";
      said.textContent = of + part;
      find(".pages").hidden = shown.length === rows.length;
      find(".back").disabled = start === 0;
      find(".next").disabled = start + many >= rows.length;
    };

    [...root.querySelectorAll("thead th")].forEach((head, k) => {
      const button = make("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      /* On paper the head of a table is repeated on every page, unless there are buttons in it. */
      addEventListener("beforeprint", () => head.replaceChildren(button.textContent));
      addEventListener("afterprint", () => head.replaceChildren(button));
      button.addEventListener("click", () => {
        down = sorted === open[k] ? !down : false;
        sorted = open[k];
        for (const other of root.querySelectorAll("thead th")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        choose();
      });
    });
    search.addEventListener("input", choose);
    filter.addEventListener("change", choose);
    size.addEventListener("change", () => { start = 0; render(); });
    find(".back").addEventListener("click", () => { start = Math.max(0, start - Number(size.value)); render(); });
    find(".next").addEventListener("click", () => { start += Number(size.value); render(); });
    find(".download").addEventListener("click", () => {
      const link = make("a");
      link.href = URL.createObjectURL(new Blob([csv(table, rows)], { type: "text/csv;charset=utf-8" }));
      link.download = `${name}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
    find(".controls").hidden = false;
    choose();
  }
  document.documentElement.dataset.ready = "yes";
})();
