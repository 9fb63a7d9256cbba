// Uses `lockwright serve` as a person would, with a browser, and asks it from a page of another origin.
//
// node serve.mjs ADDRESS FILE BROWSER MS: the address that the server printed, its file, which is Pathfinder's, and how
// long to wait for a result. The server was started with --save. Prints a line for each fault, and exits with 1 if there
// is any.
import { createServer } from "node:http";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import axe from "axe-core";
import { chromium } from "playwright-core";

const [address, file, executablePath, patience] = process.argv.slice(2);
const faults = [];
const check = (holds, what) => {
  if (!holds) faults.push(`serve: ${what}`);
};

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
page.setDefaultTimeout(Number(patience));
page.on("console", (message) => check(false, `the console reports: ${message.text()}`));
page.on("pageerror", (error) => check(false, `the script fails: ${error}`));
page.on("dialog", (dialog) => check(false, `a dialog opens: ${dialog.message()}`));
page.on("request", (request) => check(request.url().startsWith(address), `a request for ${request.url()}`));

/** Waits for a verdict that contains these words. */
const verdict = async (words) => {
  try {
    await page.locator(".verdict", { hasText: words }).first().waitFor();
  } catch {
    check(false, `no verdict says ${words}, but: ${await page.locator("#state, #faults, .verdict").allTextContents()}`);
  }
};
const text = page.locator("#text");

await page.goto(address);
await verdict("Under pip, no deadline was missed");
const original = readFileSync(file, "utf8");
check((await text.inputValue()) === original, "the editor has another text than the file");

// Another protocol.
await page.locator("#protocol").selectOption("none");
await verdict(/\d+ deadlines? w/);
await page.locator("#protocol").selectOption("file");
await verdict("Under pip, no deadline was missed");

// A section is dragged, by the keyboard and by the pointer: the text, the bounds and the schedule follow.
const slider = page.locator("#sections input").last();
const length = () => page.locator("#sections output").last().textContent();
check((await length()) === "23 ms", `the section of tache_meteo has ${await length()}`);
await slider.focus();
const pictures = await page.locator("svg.schedule").first().innerHTML();
for (let step = 0; step < 30; step++) await page.keyboard.press("ArrowRight");
check((await length()) === "53 ms", `after 30 steps the section has ${await length()}`);
await verdict(/\d+ deadlines? w/);
check((await text.inputValue()).includes('length = "53 ms"'), "the text does not follow the slider");
check((await text.inputValue()).includes('wcet = "53 ms"'), "the execution time does not follow the section");
check((await page.locator("svg.schedule").first().innerHTML()) !== pictures, "the schedule does not follow");
check(await slider.evaluate((input) => input === document.activeElement), "the slider loses the focus");
const box = await slider.boundingBox();
await page.mouse.move(box.x + box.width * 0.58, box.y + box.height / 2);
await page.mouse.down();
await page.mouse.move(box.x + box.width * 0.25, box.y + box.height / 2, { steps: 20 });
await page.mouse.up();
await verdict("Under pip, no deadline was missed");
check(readFileSync(file, "utf8") === original, "a change was saved without a request");

// What is opened, sorted and searched for stays.
await page.locator("#result table").first().locator("th button").nth(3).click();
await page.getByRole("searchbox").fill("radio");
await text.fill(original.replace('wcet = "23 ms"', 'wcet = "25 ms"'));
await page.locator("#result", { hasText: "tache_meteo" }).waitFor();
await page.waitForFunction(() => document.querySelector("#result pre:last-of-type")?.textContent.includes("25 ms"));
check((await page.getByRole("searchbox").inputValue()) === "radio", "the search is forgotten");
check((await page.locator("#result th[aria-sort=ascending]").count()) === 1, "the order is forgotten");
await page.getByRole("searchbox").fill("");

// A fault has its place, and the page before it stays.
await text.fill(original.replace("cpus = 1", "cpus = one"));
await page.locator("#faults li", { hasText: "line 8" }).waitFor();
check((await page.locator(".verdict").count()) > 0, "the last result is gone");

// While the text is wrong, its sections have no places: the sliders write nothing.
const wrong = original.replace("cpus = 1", "# A line more.\ncpus = one");
await text.fill(wrong);
check(await page.locator("#sections").evaluate((sliders) => sliders.disabled), "sliders of a wrong text can be used");
await slider.evaluate((input) => {
  input.value = input.max;
  input.dispatchEvent(new Event("input"));
});
check((await text.inputValue()) === wrong, "a slider changes a wrong text");
await text.fill(original);
await page.waitForFunction(() => !document.getElementById("sections").disabled);
check((await length()) === "23 ms", "the slider does not return");

// The file is away for a while.
renameSync(file, `${file}.away`);
await page.locator("#state", { hasText: "The file cannot be read." }).waitFor();
renameSync(`${file}.away`, file);
await page.locator("#state", { hasText: "Computed in" }).waitFor();

// Names that are markup stay text.
const hostile = `</textarea><script>alert(1)</script><img src=x onerror=alert(2)>`;
await text.fill(original.replaceAll("tache_radio", hostile));
await page.locator("#result th", { hasText: "<script>alert(1)</script>" }).first().waitFor();

// An editor writes the file: the page does not replace what was typed, and then it follows.
writeFileSync(file, original.replace('name = "pathfinder"', 'name = "rewritten"'));
await page.locator("#load").click();
await page.locator("h1", { hasText: "rewritten" }).waitFor();
writeFileSync(file, original.replace('name = "pathfinder"', 'name = "again"'));
await page.locator("h1", { hasText: "again" }).waitFor();

// The file is saved on request.
await text.fill(original);
await page.locator("h1", { hasText: "pathfinder" }).waitFor();
await page.locator("#save").click();
await page.waitForFunction(() => document.getElementById("save").disabled);
check(readFileSync(file, "utf8") === original, "the file was not saved");

// Nothing serious for readers with disabilities, in both themes; nothing is wider than a phone.
for (const colorScheme of ["light", "dark"]) {
  await page.emulateMedia({ colorScheme });
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => axe.run(document));
  for (const { id, impact, help, nodes } of violations) {
    check(!["serious", "critical"].includes(impact), `${colorScheme}: ${id}: ${help}: ${nodes[0].html}`);
  }
}
await page.screenshot({ path: `${file}.png` });
await page.setViewportSize({ width: 320, height: 640 });
const width = await page.evaluate(() => document.documentElement.scrollWidth);
check(width <= 320, `the page is ${width} pixels wide on a phone of 320`);
await page.setViewportSize({ width: 1400, height: 900 });

// How long a change takes, from the key to the picture.
const change = (content) =>
  page.evaluate(async (content) => {
    const area = document.getElementById("text");
    area.value = content;
    const begun = performance.now();
    const shown = new Promise((resolve) => {
      document.addEventListener("result", () => requestAnimationFrame(() => setTimeout(resolve)), { once: true });
    });
    area.dispatchEvent(new Event("input"));
    await shown;
    return performance.now() - begun;
  }, content);
const renamed = (name) => original.replace(/^name = ".*"$/m, `name = "${name}"`);
const times = [];
for (let round = 0; round < 20; round++) times.push(await change(renamed(`round${round}`)));
times.sort((a, b) => a - b);
console.log(`serve: a change is shown after ${times[10].toFixed(0)} ms (median), at most ${times[19].toFixed(0)} ms`);

// A text whose result takes very long keeps no newer text waiting.
const large = Array.from({ length: 1000 }, (_, n) => {
  const requests = [0, 1, 2, 3].map((k) => `{ resource = "r${(n + k) % 30}", length = "1 us" }`);
  return `[[task]]\nname = "t${n}"\nperiod = "${100 + 7 * n} ms"\nwcet = "50 us"\ncpu = ${n % 2}\nrequests = [${requests}]\n`;
});
const resources = Array.from({ length: 30 }, (_, n) => `[[resource]]\nname = "r${n}"\n`);
await page.locator("#protocol").selectOption("all");
await page.locator("h2", { hasText: "Protocols compared" }).waitFor();
const alone = await change(renamed("alone"));
const slow = `[platform]\ncpus = 2\npriorities = "rate-monotonic"\n${resources.join("")}${large.join("")}`;
// Typing so much takes the browser long.
await text.evaluate((area, slow) => {
  area.value = slow;
  area.dispatchEvent(new Event("input"));
}, slow);
await page.waitForTimeout(500);
const beside = await change(renamed("beside"));
await page.locator("h1", { hasText: "beside" }).waitFor();
// The server gives a result up after ten seconds; the newer text does not wait for that.
check(beside < 10_000, `a newer text waits for ${beside.toFixed(0)} ms`);
console.log(`serve: under all protocols in ${alone.toFixed(0)} ms; behind a text that takes very long in ${beside.toFixed(0)} ms`);
await page.close();

// A page of another origin, which knows the address, neither reads nor writes nor frames anything.
const other = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!DOCTYPE html><p>other"));
await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
const stranger = await browser.newPage();
await stranger.goto(`http://127.0.0.1:${other.address().port}/`);
const found = await stranger.evaluate(async ([address, body]) => {
  const tried = [];
  for (const [path, more] of [
    ["", {}],
    ["file", {}],
    ["file", { mode: "no-cors" }],
    ["result", { method: "POST", headers: { "content-type": "application/json" }, body }],
    ["save", { method: "POST", headers: { "content-type": "application/json" }, body }],
    ["save", { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body }],
  ]) {
    const read = await fetch(address + path, more).then((answer) => answer.text(), () => "");
    if (read !== "") tried.push(`${path}: ${read.slice(0, 80)}`);
  }
  const frame = document.createElement("iframe");
  frame.src = address;
  document.body.append(frame);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  return tried;
}, [address, JSON.stringify({ text: "stolen", seen: "" })]);
check(found.length === 0, `another origin reads ${found}`);
for (const frame of stranger.frames().slice(1)) {
  check((await frame.locator("textarea").count()) === 0, "another origin frames the page");
}
check(readFileSync(file, "utf8") === original, "another origin changed the file");
// The server refused: it is not gone.
const own = await (await browser.newPage()).goto(address);
check(own.status() === 200, `afterwards the server answers ${own.status()}`);
other.close();
await browser.close();
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
