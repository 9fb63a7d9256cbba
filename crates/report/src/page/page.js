"use strict";
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (name, properties) => Object.assign(document.createElement(name), properties);

  const enhance = () => {
    // A click on the title of a column sorts by it, and a second click reverses the order. Absent values stay last.
    for (const table of all("table")) {
      const heads = [...table.tHead.rows[0].cells];
      heads.forEach((head, place) => {
        const button = make("button", { type: "button" });
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => {
          const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
          heads.forEach((other) => other.removeAttribute("aria-sort"));
          head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
          const isNumber = head.classList.contains("n");
          const key = (row) => {
            const cell = row.cells[place];
            if (!isNumber) return cell.textContent;
            return cell.dataset.v === undefined ? null : BigInt(cell.dataset.v);
          };
          const compare = (a, b) => {
            if (a === null || b === null) return (a === null) - (b === null);
            if (isNumber) return sign * (a < b ? -1 : a > b ? 1 : 0);
            return sign * a.localeCompare(b, undefined, { numeric: true });
          };
          const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
          rows.sort((a, b) => compare(a[0], b[0]));
          table.tBodies[0].append(...rows.map((pair) => pair[1]));
        });
      });
    }

    // The search hides rows and pictures of tasks whose name does not contain the text.
    for (const row of all("tbody tr")) row.dataset.name = row.cells[0].textContent;
    const named = all("[data-name]");
    if (named.length > 0) {
      const tools = make("div", { className: "tools" });
      const label = make("label", { textContent: "Search for a name: " });
      const input = make("input", { type: "search" });
      const found = make("output", { className: "faint" });
      label.append(input);
      tools.append(label, " ", found);
      tools.setAttribute("role", "search");
      document.querySelector("main").prepend(tools);
      input.addEventListener("input", () => {
        const wanted = input.value.trim().toLowerCase();
        let shown = 0;
        for (const item of named) {
          item.hidden = !item.dataset.name.toLowerCase().includes(wanted);
          shown += !item.hidden;
        }
        found.textContent = wanted === "" ? "" : `${shown} of ${named.length} rows and pictures`;
      });
    }

    // The pointer and the arrow keys show the parts of a picture in words.
    for (const figure of all("figure")) {
      const area = figure.querySelector(".scroll");
      const parts = all("title", area).filter((title) => !["svg", "g"].includes(title.parentNode.tagName));
      if (parts.length === 0) continue;
      const told = make("p", { className: "told" });
      told.setAttribute("role", "status");
      figure.append(told);
      let place = -1;
      const show = (next) => {
        parts[place]?.parentNode.classList.remove("on");
        place = next;
        parts[place].parentNode.classList.add("on");
        const row = parts[place].parentNode.closest(".row")?.querySelector("title").textContent;
        told.textContent = (row === undefined ? "" : `${row}: `) + parts[place].textContent;
      };
      area.addEventListener("pointerover", (event) => {
        const next = parts.findIndex((title) => title.parentNode === event.target);
        if (next >= 0) show(next);
      });
      area.addEventListener("keydown", (event) => {
        const last = parts.length - 1;
        const next = {
          ArrowRight: Math.min(place + 1, last), ArrowLeft: Math.max(place - 1, 0), Home: 0, End: last,
        }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        show(next);
        parts[next].parentNode.scrollIntoView({ block: "nearest", inline: "nearest" });
      });
    }
  };

  // Everything is printed, also what is folded.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details").filter((details) => !details.open);
    closed.forEach((details) => (details.open = true));
  });
  addEventListener("afterprint", () => closed.forEach((details) => (details.open = false)));

  // A live page has a new result at times.
  enhance();
  document.addEventListener("result", enhance);
})();
