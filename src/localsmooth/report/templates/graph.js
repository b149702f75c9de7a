(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const sliders = { a: document.getElementById("graph-additions"), d: document.getElementById("graph-deletions") };
  if (!sliders.a) return;
  const target = document.getElementById("graph-target"), bound = document.getElementById("graph-bound");
  const graphs = Object.entries(data.graphs);
  const KEEPS = "#56b4e9", SPARED = "#f0e442", FALLS = "#d55e00", WRONG = "#b9bec4", INK = "#1b1f24";
  const WORDS = {
    keeps: "keeps its prediction, whatever the attack", spared: "could fall on its own, spared by this plan",
    falls: "broken by this plan", wrong: "predicted otherwise than it should be", abstains: "abstains", uncounted: "not certified",
  };
  const percent = (share) => (Math.floor(share * 1000 + 1e-9) / 10).toFixed(1) + "\u2009%";
  // What is certified of a target: outputs and their share, or the share of what they are worth.
  const amount = (value, total, target) => data.counts.includes(target) ? value + " (" + percent(value / total) + ")" : percent(value / total);
  const together = (value, total, target) => data.counts.includes(target) ? value + " of " + total + " (" + percent(value / total) + ")" : percent(value / total);
  const left = (value, total, target) => data.counts.includes(target) ? value : percent(value / total);
  const place = (budgets, wanted) => budgets.findIndex((budget) => budget >= wanted);
  const unpack = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

  class Bits {
    constructor(text, columns, nodes) {
      this.bytes = unpack(text);
      this.columns = columns;
      this.stride = Math.ceil(nodes / 8);
    }
    get(a, d, node) {
      return (this.bytes[(a * this.columns + d) * this.stride + (node >> 3)] >> (7 - (node & 7))) & 1;
    }
  }

  class Graph {
    constructor(key, card) {
      this.card = card;
      this.size = card.prediction.length;
      this.reference = card.label || card.clean;
      this.alone = new Bits(card.alone, card.deletions.length, this.size);
      this.falls = new Map();
      this.canvas = document.querySelector(`canvas[data-graph="${key}"]`);
      this.pen = this.canvas.getContext("2d");
      this.heat = document.querySelector(`svg[data-heat="${key}"]`);
      this.cells = Array.from(this.heat.querySelectorAll("rect[data-a]"));
      this.text = document.querySelector(`[data-graph-count="${key}"]`);
      const side = this.canvas.width, margin = 0.05 * side;
      this.x = card.prediction.map((_, i) => margin + (card.places[2 * i] / card.scale) * (side - 2 * margin));
      this.y = card.prediction.map((_, i) => margin + (card.places[2 * i + 1] / card.scale) * (side - 2 * margin));
      this.radius = Math.max(3, Math.min(9, 0.3 * (side / Math.sqrt(this.size))));
      this.discs = this.clusters();
      this.links = new Path2D();
      for (let i = 0; i < card.edges.length; i += 2) {
        const [from, to] = [card.edges[i], card.edges[i + 1]];
        this.links.moveTo(this.x[from], this.y[from]);
        this.links.lineTo(this.x[to], this.y[to]);
      }
      this.cells.forEach((cell) => {
        const choose = () => {
          sliders.a.value = place(graphs[0][1].additions, card.additions[Number(cell.dataset.a)]);
          sliders.d.value = place(graphs[0][1].deletions, card.deletions[Number(cell.dataset.d)]);
          later();
        };
        cell.addEventListener("click", choose);
        cell.addEventListener("pointermove", (event) => this.tellCell(cell, event));
      });
      this.heat.addEventListener("pointerleave", () => { this.heat.parentElement.querySelector(".tip").hidden = true; });
      this.canvas.addEventListener("pointermove", (event) => this.tellNode(event));
      this.canvas.addEventListener("pointerleave", () => { this.canvas.parentElement.querySelector(".tip").hidden = true; });
    }
    clusters() {
      const discs = [];
      this.card.clusters.forEach((cluster, i) => {
        const disc = (discs[cluster] = discs[cluster] || { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity });
        disc.left = Math.min(disc.left, this.x[i]);
        disc.right = Math.max(disc.right, this.x[i]);
        disc.top = Math.min(disc.top, this.y[i]);
        disc.bottom = Math.max(disc.bottom, this.y[i]);
      });
      discs.forEach((disc) => {
        disc.x = (disc.left + disc.right) / 2;
        disc.y = (disc.top + disc.bottom) / 2;
        disc.radius = 0;
      });
      this.card.clusters.forEach((cluster, i) => {
        const disc = discs[cluster];
        disc.radius = Math.max(disc.radius, Math.hypot(this.x[i] - disc.x, this.y[i] - disc.y) + 2 * this.radius);
      });
      return discs;
    }
    bits(view) {
      const key = view.target + "\u0000" + view.bound, texts = this.card.falls[view.target];
      if (!this.falls.has(key)) {
        const text = texts && texts[view.bound];
        this.falls.set(key, text === undefined ? null : new Bits(text, this.card.deletions.length, this.size));
      }
      return this.falls.get(key);
    }
    state(i, view) {
      if (!this.card.counted[i]) return "uncounted";
      if (this.card.prediction[i] === this.card.abstains) return "abstains";
      if (data.marks.includes(view.target) && this.reference && this.reference[i] !== this.card.prediction[i]) return "wrong";
      if (this.a < 0 || this.d < 0 || !this.broken) return "falls";
      if (this.broken.get(this.a, this.d, i)) return "falls";
      return this.alone.get(this.a, this.d, i) ? "keeps" : "spared";
    }
    draw(view) {
      this.view = view;
      this.a = place(this.card.additions, view.additions);
      this.d = place(this.card.deletions, view.deletions);
      this.broken = this.bits(view);
      this.drawHeat(view);
      this.drawText(view);
      const pen = this.pen, side = this.canvas.width;
      pen.clearRect(0, 0, side, side);
      this.plan = this.broken && this.a >= 0 && this.d >= 0 ? this.card.attack[view.target][view.bound][this.a][this.d] : null;
      const spent = this.discs.map((_, c) => (this.plan ? this.plan[0][c] + this.plan[1][c] : 0));
      const most = Math.max(...spent);
      this.discs.forEach((disc, c) => {
        pen.beginPath();
        pen.arc(disc.x, disc.y, disc.radius, 0, 2 * Math.PI);
        pen.fillStyle = "#f5f7f9";
        pen.fill();
        if (spent[c] > 0) {
          pen.fillStyle = "rgba(165, 0, 38, " + (0.06 + 0.4 * (spent[c] / most)).toFixed(3) + ")";
          pen.fill();
        }
        pen.strokeStyle = "#c4cad0";
        pen.lineWidth = 1.5;
        pen.stroke();
      });
      pen.strokeStyle = "rgba(87, 96, 106, .22)";
      pen.lineWidth = 1;
      pen.stroke(this.links);
      const colors = { keeps: KEEPS, spared: SPARED, falls: FALLS, wrong: WRONG };
      for (let i = 0; i < this.size; i += 1) {
        const state = this.state(i, view);
        pen.beginPath();
        pen.arc(this.x[i], this.y[i], state === "uncounted" ? this.radius * 0.45 : this.radius, 0, 2 * Math.PI);
        pen.fillStyle = colors[state] || (state === "uncounted" ? "#8a929a" : "#fff");
        pen.fill();
        if (state === "uncounted") continue;
        pen.strokeStyle = "rgba(27, 31, 36, .65)";
        pen.lineWidth = state === "abstains" ? 1.6 : 0.8;
        pen.stroke();
      }
      this.drawLabels(spent);
    }
    drawLabels(spent) {
      const pen = this.pen, round = (value) => Number(value.toFixed(1)).toString();
      pen.font = "600 30px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      this.discs.forEach((disc, c) => {
        if (!(spent[c] > 0)) return;
        const parts = [];
        if (this.plan[0][c] > 0) parts.push("+" + round(this.plan[0][c]));
        if (this.plan[1][c] > 0) parts.push("\u2212" + round(this.plan[1][c]));
        pen.lineWidth = 7;
        pen.strokeStyle = "rgba(255, 255, 255, .9)";
        pen.strokeText(parts.join("  "), disc.x, disc.y);
        pen.fillStyle = INK;
        pen.fillText(parts.join("  "), disc.x, disc.y);
      });
    }
    drawHeat(view) {
      const values = (this.card.certified[view.target] || {})[view.bound], total = this.card.total[view.target];
      const chosen = this.heat.querySelector(".chosen");
      chosen.setAttribute("visibility", "hidden");
      this.cells.forEach((cell) => {
        const a = Number(cell.dataset.a), d = Number(cell.dataset.d);
        const share = values && total ? values[a][d] / total : 0;
        cell.setAttribute("fill", data.shareColors[Math.floor(share * (data.shareColors.length - 1))]);
        if (a === this.a && d === this.d) {
          for (const name of ["x", "y", "width", "height"]) chosen.setAttribute(name, cell.getAttribute(name));
          chosen.setAttribute("visibility", "visible");
        }
      });
    }
    drawText(view) {
      const values = (this.card.certified[view.target] || {})[view.bound], total = this.card.total[view.target];
      this.text.replaceChildren();
      if (!values || !total) return this.text.append("no certificate for this choice");
      if (this.a < 0 || this.d < 0) return this.text.append("nothing was computed at budgets as large as these");
      const certified = values[this.a][this.d], bold = document.createElement("b");
      bold.textContent = together(certified, total, view.target);
      this.text.append("certified ", bold, " together");
      const naive = this.card.certified[view.target].naive;
      if (naive && view.bound !== "naive") {
        this.text.append(" · each on its own: " + amount(naive[this.a][this.d], total, view.target));
      }
      this.text.append(" · the best attack found leaves " + left(this.card.upper[view.target][view.bound][this.a][this.d], total, view.target));
    }
    tell(tip, lines, event, box) {
      tip.replaceChildren();
      lines.forEach((line, number) => {
        const row = document.createElement(number ? "div" : "b");
        row.textContent = line;
        tip.append(row);
      });
      tip.hidden = false;
      const x = event.clientX - box.left, y = event.clientY - box.top;
      tip.style.left = (x > box.width / 2 ? x - tip.offsetWidth - 12 : x + 12) + "px";
      tip.style.top = y + 12 + "px";
    }
    tellCell(cell, event) {
      const a = Number(cell.dataset.a), d = Number(cell.dataset.d), view = this.view;
      const values = (this.card.certified[view.target] || {})[view.bound], total = this.card.total[view.target];
      if (!values || !total) return;
      const lines = [`ε⁺ = ${this.card.additions[a]}, ε⁻ = ${this.card.deletions[d]}`];
      lines.push(`certified ${together(values[a][d], total, view.target)}`);
      this.tell(this.heat.parentElement.querySelector(".tip"), lines, event, this.heat.getBoundingClientRect());
    }
    tellNode(event) {
      const box = this.canvas.getBoundingClientRect(), scale = this.canvas.width / box.width;
      const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
      let nearest = -1, least = (2.5 * this.radius) ** 2;
      for (let i = 0; i < this.size; i += 1) {
        const distance = (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
        if (distance < least) { least = distance; nearest = i; }
      }
      const tip = this.canvas.parentElement.querySelector(".tip");
      if (nearest < 0) { tip.hidden = true; return; }
      const lines = [`node ${nearest}: ${WORDS[this.state(nearest, this.view)]}`];
      if (this.card.described) lines.push("by a bound of its own");
      const prediction = this.card.prediction[nearest];
      if (prediction !== this.card.abstains) lines.push("predicted: " + data.classNames[prediction]);
      if (this.card.label && this.card.label[nearest] >= 0) lines.push("true: " + data.classNames[this.card.label[nearest]]);
      this.tell(tip, lines, event, box);
    }
  }

  const shown = graphs.map(([key, card]) => new Graph(key, card));
  let waiting = false;
  function draw() {
    waiting = false;
    const first = graphs[0][1];
    const view = {
      additions: first.additions[Number(sliders.a.value)], deletions: first.deletions[Number(sliders.d.value)],
      target: target.value, bound: bound.value,
    };
    document.getElementById("graph-additions-value").textContent = view.additions;
    document.getElementById("graph-deletions-value").textContent = view.deletions;
    document.querySelectorAll(".graph-wrong-key").forEach((key) => { key.hidden = !data.marks.includes(view.target); });
    shown.forEach((graph) => graph.draw(view));
  }
  function later() { if (!waiting) { waiting = true; requestAnimationFrame(draw); } }
  [sliders.a, sliders.d, target, bound].forEach((control) => control.addEventListener("input", later));
  draw();
})();
