"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const ABSTAINS = 0xfffe, IGNORED = 0xffff, WRONG = 0x4000;
  const KEEPS = [86, 180, 233], FALLS = [213, 94, 0], WRONG_COLOR = [185, 190, 196], WHITE = [255, 255, 255];
  const number = (value) => Number(value.toPrecision(4)).toString();
  const percent = (share) => (Math.floor(share * 1000 + 1e-9) / 10).toFixed(1) + "\u2009%";
  // What is certified of a target: outputs and their share, or the share of what they are worth.
  const amount = (value, total, target) => data.counts.includes(target) ? value + " (" + percent(value / total) + ")" : percent(value / total);
  const together = (value, total, target) => data.counts.includes(target) ? value + " of " + total + " (" + percent(value / total) + ")" : percent(value / total);
  const left = (value, total, target) => data.counts.includes(target) ? value : percent(value / total);
  // What a list of budgets proves at ε: its entry at the next larger budget, -1 beyond the last one.
  const place = (budgets, epsilon) => budgets.findIndex((budget) => budget >= epsilon * (1 - 1e-12));

  function readCurves(svg) {
    const chart = data.charts[Number(svg.dataset.chart)];
    const left = Number(svg.dataset.left), width = Number(svg.dataset.width);
    const cursor = svg.querySelector(".cursor"), tip = svg.parentElement.querySelector(".tip");
    const budgets = chart.series[0].budgets;
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      const wanted = ((x - left) / width) * chart.xMax;
      if (wanted < -0.02 * chart.xMax || wanted > 1.02 * chart.xMax) return hide();
      let nearest = 0;
      budgets.forEach((budget, i) => { if (Math.abs(budget - wanted) < Math.abs(budgets[nearest] - wanted)) nearest = i; });
      const epsilon = budgets[nearest];
      const at = left + (width * Math.min(epsilon, chart.xMax)) / chart.xMax;
      cursor.setAttribute("x1", at);
      cursor.setAttribute("x2", at);
      cursor.setAttribute("visibility", "visible");
      tip.replaceChildren();
      const head = document.createElement("b");
      head.textContent = "ε = " + number(epsilon);
      tip.append(head);
      for (const one of chart.series) {
        const row = document.createElement("div"), index = place(one.budgets, epsilon);
        row.style.color = one.color;
        row.textContent = one.label + ": " + (index < 0 ? "not computed" : percent(one.values[index]));
        tip.append(row);
      }
      tip.hidden = false;
      const pixels = (at / svg.viewBox.baseVal.width) * box.width;
      const flip = pixels > box.width / 2;
      tip.style.left = (flip ? pixels - tip.offsetWidth - 12 : pixels + 12) + "px";
      tip.style.top = "40px";
    });
    const hide = () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); };
    svg.addEventListener("pointerleave", hide);
  }

  function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed.codes), (letter) => letter.charCodeAt(0));
    return Uint16Array.from({ length: bytes.length / 2 }, (_, i) => bytes[2 * i] | (bytes[2 * i + 1] << 8));
  }

  function hatching(context) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, 6, 6);
    pen.fillStyle = "#333";
    for (let y = 0; y < 6; y += 1) for (let x = 0; x < 6; x += 1) if ((x + y) % 6 < 2) pen.fillRect(x, y, 1, 1);
    return context.createPattern(tile, "repeat");
  }

  class OutputsMap {
    constructor(canvas) {
      const card = data.cards[canvas.dataset.outputs], packed = card.outputs;
      this.card = card;
      this.codes = unpack(packed);
      this.rows = packed.rows;
      this.columns = packed.columns;
      canvas.width = packed.columns * packed.scale[1];
      canvas.height = packed.rows * packed.scale[0];
      this.canvas = canvas;
      this.context = canvas.getContext("2d");
      this.context.imageSmoothingEnabled = false;
      this.small = document.createElement("canvas");
      this.small.width = packed.columns;
      this.small.height = packed.rows;
      this.pattern = hatching(this.context);
      this.abstaining = new Path2D();
      this.codes.forEach((code, i) => {
        if (code !== ABSTAINS) return;
        const y = Math.floor(i / this.columns), x = i % this.columns;
        this.abstaining.rect(x * packed.scale[1], y * packed.scale[0], packed.scale[1], packed.scale[0]);
      });
    }
    draw(view) {
      const now = place(this.card.budgets, view.epsilon), pen = this.small.getContext("2d");
      const picture = pen.createImageData(this.columns, this.rows);
      this.codes.forEach((code, i) => {
        let color = WHITE;
        if (code < ABSTAINS) {
          const falls = now < 0 || (code & ~WRONG) <= now;
          color = data.marks.includes(view.target) && code & WRONG ? WRONG_COLOR : falls ? FALLS : KEEPS;
        }
        picture.data.set([...color, 255], 4 * i);
      });
      pen.putImageData(picture, 0, 0);
      this.context.drawImage(this.small, 0, 0, this.canvas.width, this.canvas.height);
      this.context.fillStyle = this.pattern;
      this.context.fill(this.abstaining);
    }
  }

  class WordsMap {
    constructor(paragraph) {
      this.card = data.cards[paragraph.dataset.words];
      this.codes = unpack(this.card.outputs);
      this.cells = Array.from(paragraph.children);
    }
    draw(view) {
      const now = place(this.card.budgets, view.epsilon);
      this.cells.forEach((cell, i) => {
        const code = this.codes[i], falls = now < 0 || (code & ~WRONG) <= now;
        const wrong = data.marks.includes(view.target) && code & WRONG;
        cell.className = code === IGNORED ? "" : code === ABSTAINS ? "abstains" : wrong ? "wrong" : falls ? "falls" : "keeps";
      });
    }
  }

  class AttackMap {
    constructor(canvas) {
      const card = data.cards[canvas.dataset.attack], input = card.input;
      this.card = card;
      const [sy, sx] = input.scale;
      canvas.width = input.columns * sx;
      canvas.height = input.rows * sy;
      this.canvas = canvas;
      this.context = canvas.getContext("2d");
      this.groups = new Map();
      for (const [group, top, left, height, width] of input.rectangles) {
        if (!this.groups.has(group)) this.groups.set(group, { path: new Path2D(), area: 0, largest: 0, label: null });
        const entry = this.groups.get(group);
        entry.path.rect(left * sx, top * sy, width * sx, height * sy);
        entry.area += height * width;
        if (height * width > entry.largest) {
          entry.largest = height * width;
          entry.label = { x: (left + width / 2) * sx, y: (top + height / 2) * sy, w: width * sx, h: height * sy };
        }
      }
      this.lines = input.rectangles.length <= 4000 && input.rectangles.length === this.groups.size;
      if (input.picture) {
        this.picture = new Image();
        this.picture.addEventListener("load", () => this.draw(this.last));
        this.picture.src = input.picture;
      }
    }
    draw(view) {
      this.last = view;
      const pen = this.context, now = place(this.card.budgets, view.epsilon);
      pen.fillStyle = "#eef0f2";
      pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
      if (this.picture && this.picture.complete) pen.drawImage(this.picture, 0, 0, this.canvas.width, this.canvas.height);
      const plans = (this.card.attack[view.target] || {})[view.bound];
      const plan = plans && now >= 0 ? plans[now] : [];
      const most = Math.max(0, ...plan);
      for (const [group, entry] of this.groups) {
        const share = plan[group] || 0;
        if (share > 0) {
          pen.fillStyle = "rgba(165, 0, 38, " + (0.08 + 0.62 * (share / most)).toFixed(3) + ")";
          pen.fill(entry.path);
        }
        if (this.lines) {
          pen.strokeStyle = "rgba(27, 31, 36, .45)";
          pen.lineWidth = 1;
          pen.stroke(entry.path);
        }
      }
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      for (const [group, entry] of this.groups) {
        const share = plan[group] || 0, size = Math.min(15, entry.label.w / 3, entry.label.h / 1.6);
        if (share < 0.005 || size < 7) continue;
        pen.font = "600 " + size.toFixed(1) + "px system-ui, sans-serif";
        const text = Math.round(100 * share) + "%";
        pen.lineWidth = 3;
        pen.strokeStyle = "rgba(255, 255, 255, .85)";
        pen.strokeText(text, entry.label.x, entry.label.y);
        pen.fillStyle = "#1b1f24";
        pen.fillText(text, entry.label.x, entry.label.y);
      }
    }
  }

  function count(element, view) {
    const card = data.cards[element.dataset.count], now = place(card.budgets, view.epsilon);
    const values = (card.certified[view.target] || {})[view.bound], total = card.total[view.target];
    element.replaceChildren();
    if (!values || !total) return element.append("no certificate for this choice");
    if (now < 0) return element.append("nothing was computed at budgets as large as this");
    const bold = document.createElement("b");
    bold.textContent = together(values[now], total, view.target);
    element.append("certified ", bold, " together");
    const alone = card.certified[view.target].naive;
    if (alone && view.bound !== "naive") element.append(" · each on its own: " + amount(alone[now], total, view.target));
    const upper = card.upper[view.target][view.bound][now];
    if (upper !== null) element.append(" · the best attack found leaves " + left(upper, total, view.target));
  }

  const slider = document.getElementById("budget");
  document.querySelectorAll("svg[data-chart]").forEach(readCurves);
  if (!slider) return;
  const budgets = JSON.parse(slider.dataset.budgets);
  const target = document.getElementById("target"), bound = document.getElementById("bound");
  const maps = [
    ...Array.from(document.querySelectorAll("canvas[data-outputs]"), (canvas) => new OutputsMap(canvas)),
    ...Array.from(document.querySelectorAll("[data-words]"), (paragraph) => new WordsMap(paragraph)),
    ...Array.from(document.querySelectorAll("canvas[data-attack]"), (canvas) => new AttackMap(canvas)),
  ];
  let waiting = false;
  function draw() {
    waiting = false;
    const view = { epsilon: budgets[Number(slider.value)], target: target.value, bound: bound.value };
    document.getElementById("epsilon").textContent = number(view.epsilon);
    document.querySelectorAll("[data-count]").forEach((element) => count(element, view));
    document.querySelectorAll(".wrong-key").forEach((element) => { element.hidden = !data.marks.includes(view.target); });
    maps.forEach((map) => map.draw(view));
  }
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  [slider, target, bound].forEach((control) => control.addEventListener("input", later));
  draw();
})();
