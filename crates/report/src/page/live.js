"use strict";
// An editor beside the result. Up to two results are under way: one is waited for, so that something is shown while the
// text goes on changing, and one is that of the newest text, which does not wait for a slow one.
(() => {
  const names = ["protocol", "save", "load", "state", "faults", "text", "sections", "notes", "result"];
  const [protocol, save, load, state, faults, text, sliders, notes, result] =
    names.map((name) => document.getElementById(name));
  const make = (name, properties) => Object.assign(document.createElement(name), properties);
  // The version of the file that the editor was filled with, and its text.
  let seen = "", original = "";
  // A version of the file that was written meanwhile.
  let newer = null;
  let isStale = false, isUnreadable = false;
  // The requests for results that are under way, the older one first.
  const running = [];
  // How long a newer text waits for the result of an older one, in milliseconds.
  const PATIENCE = 100;
  // The sections, and the text in which they have their places.
  let sections = [], placed = null;

  const ask = async (path, question, signal) => {
    const answer = await fetch(path, question === undefined ? {} : {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question), signal,
    });
    if (answer.status === 204) return null;
    if (answer.headers.get("content-type") === "application/json") return answer.json();
    return { faults: [{ message: `the server refuses: ${answer.status} ${await answer.text()}` }] };
  };
  const tell = (words, list = []) => {
    state.textContent = words;
    faults.hidden = list.length === 0;
    faults.replaceChildren(...list.map(({ place, message, help }) => {
      // The text of the editor is standard input to the command that the server executes.
      const file = place && place.file !== "standard input" ? `${place.file}: ` : "";
      const where = file + (place?.line ? `line ${place.line}, column ${place.column}: ` : "");
      return make("li", { textContent: `${where}${message}${help ? ` (${help})` : ""}` });
    }));
  };

  // What the reader opened, searched for and sorted by stays.
  const show = (html) => {
    const title = (details) => details.querySelector("summary").textContent.split(":")[0];
    const folded = new Map([...result.querySelectorAll("details")].map((details) => [title(details), details.open]));
    const wanted = result.querySelector("[type=search]")?.value ?? "";
    const sorted = [...result.querySelectorAll("th[aria-sort]")].map((head) =>
      [head.closest("table").caption.textContent, head.cellIndex, head.getAttribute("aria-sort")]);
    result.innerHTML = html;
    document.dispatchEvent(new Event("result"));
    for (const details of result.querySelectorAll("details")) details.open = folded.get(title(details)) ?? details.open;
    const search = result.querySelector("[type=search]");
    if (search !== null && wanted !== "") {
      search.value = wanted;
      search.dispatchEvent(new Event("input"));
    }
    for (const [caption, place, order] of sorted) {
      const table = [...result.querySelectorAll("table")].find((table) => table.caption.textContent === caption);
      const button = table?.tHead.rows[0].cells[place]?.querySelector("button");
      for (let click = order === "ascending" ? 1 : 2; click > 0; click--) button?.click();
    }
  };

  const follow = () => {
    isStale = true;
    advance();
  };
  const advance = () => {
    const [older, newer] = running;
    const left = older === undefined ? 0 : older.begun + PATIENCE - performance.now();
    if (!isStale) return;
    if (left > 0) return void setTimeout(advance, left);
    isStale = false;
    if (newer !== undefined) give(newer);
    request(Object.assign(new AbortController(), { begun: performance.now() }));
  };
  // Gives a request up: the server ends its computation.
  const give = (request) => {
    request.abort();
    running.splice(running.indexOf(request), 1);
  };
  const request = async (mine) => {
    running.push(mine);
    const sent = text.value;
    try {
      const answer = await ask("result", { text: sent, protocol: protocol.value }, mine.signal);
      if (mine.signal.aborted) return;
      while (running[0] !== mine) give(running[0]);
      running.shift();
      if (answer.html !== undefined) show(answer.html);
      result.classList.toggle("old", answer.html === undefined);
      const words = answer.html === undefined ? "The result below is that of an earlier text." : `Computed in ${answer.ms} ms.`;
      tell(words, answer.faults);
      notes.hidden = !answer.notes;
      notes.textContent = answer.notes ?? "";
      if (sent === text.value && answer.sections !== undefined) slide(answer.sections);
    } catch {
      if (mine.signal.aborted) return;
      running.splice(running.indexOf(mine), 1);
      tell("The server does not answer.");
    }
    advance();
  };
  const edited = () => {
    sliders.disabled = text.value !== placed;
    if (save !== null) save.disabled = text.value === original;
    follow();
  };

  // The sliders of the sections. While the sections stay the same, their sliders stay, with their ends.
  const slide = (found) => {
    const key = (all) => JSON.stringify(all.map(({ task, resources }) => [task, resources]));
    if (key(found) !== key(sections)) {
      sliders.replaceChildren(sliders.querySelector("legend"), ...found.map((section, place) => {
        const label = make("label", { textContent: `${section.task} holds ${section.resources}: ` });
        const step = 10 ** Math.max(0, Math.floor(Math.log10(section.ns)) - 1);
        const input = make("input", { type: "range", min: step, max: Math.max(4 * section.ns, 10 * step), step });
        input.addEventListener("input", () => drag(place, Number(input.value)));
        label.append(make("output"), input);
        return label;
      }));
    }
    [sections, placed] = [found, text.value];
    sliders.disabled = false;
    sliders.hidden = found.length === 0;
    found.forEach((section, place) => {
      const label = sliders.querySelectorAll("label")[place];
      const input = label.querySelector("input");
      if (document.activeElement !== input) input.value = section.ns;
      label.querySelector("output").textContent = words(section.ns);
    });
  };
  const words = (ns) => {
    const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find(([, size]) => ns >= size) ?? ["ns", 1];
    return `${Number((ns / size).toFixed(9))} ${unit}`;
  };
  // Writes a length into the text, and lengthens or shortens the job by as much.
  const drag = (place, ns) => {
    if (text.value !== placed) return;
    const section = sections[place];
    const edits = [[section.place, ns]];
    if (section.wcet) edits.push([section.wcet.place, section.wcet.ns + (ns - section.ns) * section.count]);
    edits.sort((a, b) => b[0][0] - a[0][0]);
    for (const [[from, until], time] of edits) {
      const written = JSON.stringify(words(time));
      text.value = text.value.slice(0, from) + written + text.value.slice(until);
      const longer = written.length - (until - from);
      const move = (place) => place.map((at) => (at >= until ? at + longer : at));
      for (const other of sections) {
        other.place = move(other.place);
        if (other.wcet) other.wcet.place = move(other.wcet.place);
      }
    }
    const grown = ns - section.ns;
    for (const other of sections) if (other.wcet && other.task === section.task) other.wcet.ns += grown * section.count;
    section.ns = ns;
    placed = text.value;
    sliders.querySelectorAll("output")[place].textContent = words(ns);
    edited();
  };

  const take = ({ version, text: content }) => {
    text.value = content;
    // The browser writes ends of lines in its own way.
    [seen, original, newer] = [version, text.value, null];
    load.hidden = true;
    edited();
  };
  // The file may be written by another editor. What was typed here is not replaced without a question.
  const watch = async () => {
    try {
      const file = await ask(`file?seen=${newer?.version ?? seen}`);
      const wasUnreadable = isUnreadable;
      isUnreadable = file?.faults !== undefined;
      if (isUnreadable) {
        tell("The file cannot be read.", file.faults);
      } else {
        // The words about the result return.
        if (wasUnreadable) follow();
        if (file !== null && (seen === "" || text.value === original)) take(file);
        else if (file !== null) {
          newer = file.version === seen ? null : file;
          load.hidden = newer === null;
        }
      }
    } catch {
      isUnreadable = true;
      tell("The server does not answer.");
    }
    setTimeout(watch, 400);
  };

  text.addEventListener("input", edited);
  protocol.addEventListener("input", follow);
  load.addEventListener("click", () => newer !== null && take(newer));
  save?.addEventListener("click", async () => {
    const sent = text.value;
    let answer;
    try {
      answer = await ask("save", { text: sent, seen });
    } catch {
      return tell("The file was not saved: the server does not answer.");
    }
    if (answer.faults !== undefined) return tell("The file was not saved.", answer.faults);
    [seen, original, newer] = [answer.version, sent, null];
    load.hidden = true;
    edited();
  });
  watch();
})();
