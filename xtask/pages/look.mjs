// Looks at pages of lockwright as a person would, with a browser.
//
// node look.mjs FOLDER BROWSER: FOLDER has pairs of NAME.html and NAME.json, the page and the object of one command.
// Prints a line for each fault, and exits with 1 if there is any.
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import axe from "axe-core";
import { chromium } from "playwright-core";

const [folder, executablePath] = process.argv.slice(2);
const faults = [];
let name = "";
const check = (holds, what) => {
  if (!holds) faults.push(`${name}: ${what}`);
};

/** The largest page of an ordinary system, and of any system, in bytes. */
const SIZES = Object.fromEntries(["check", "all", "simulate", "late"].map((name) => [`pathfinder-${name}`, 150_000]));
const SIZE_MAX = 2_000_000;

/** The values of a table row by the keys of JSON. */
const rows = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("table")].map((table) => {
      const keys = [...table.tHead.rows[0].cells].map((cell) => cell.dataset.key);
      const row = (row) => Object.fromEntries([...row.cells].map((cell, place) => [keys[place], cell.dataset.v ?? null]));
      const names = [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
      return { caption: table.caption.textContent, names, rows: [...table.tBodies[0].rows].map(row) };
    }),
  );

/** Every number of the tables of tasks is the one of JSON. */
async function numbers(page, output) {
  const tables = await rows(page);
  let compared = 0;
  for (const result of output.results.filter((result) => result.same_rules_as === undefined)) {
    const scheduler = result.scheduler === "p-fp" ? "" : ` and ${result.scheduler}`;
    const table = tables.find((table) => table.caption === `The tasks under ${result.protocol}${scheduler}`);
    check(table !== undefined, `there is no table for ${result.protocol}`);
    if (table === undefined) continue;
    check(table.names.join() === result.tasks.map((task) => task.name).join(), `the tasks of ${result.protocol} differ`);
    result.tasks.forEach((task, place) => {
      for (const [key, shown] of Object.entries(table.rows[place] ?? {})) {
        if (!/_ns$|^(jobs|misses|restarts|priority)$/.test(key)) continue;
        const told = task[key] ?? task.blocking?.[key] ?? null;
        compared += 1;
        check(String(told) === String(shown), `${task.name}: ${key} is ${shown} instead of ${told}`);
      }
    });
  }
  check(compared > 0, "no number was compared");
}

/** A click on a title sorts, a second one reverses the order, and absent values stay last. */
async function sorting(page) {
  const table = page.locator("table").first();
  const heads = table.locator("thead th");
  for (let place = 0; place < (await heads.count()); place++) {
    const head = heads.nth(place);
    const values = () =>
      table.locator("tbody tr").evaluateAll((rows, place) => {
        const isNumber = rows[0].cells[place].classList.contains("n");
        return rows.map((row) => (isNumber ? (row.cells[place].dataset.v ?? null) : row.cells[place].textContent));
      }, place);
    for (const order of ["ascending", "descending"]) {
      await head.locator("button").click();
      check((await head.getAttribute("aria-sort")) === order, `column ${place} is not ${order}`);
      const seen = await values();
      const present = seen.filter((value) => value !== null);
      check(seen.slice(0, present.length).every((value) => value !== null), `column ${place}: absent values are not last`);
      if (!(await heads.nth(place).evaluate((head) => head.classList.contains("n")))) continue;
      const sorted = present.map(BigInt).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
      if (order === "descending") sorted.reverse();
      check(present.join() === sorted.join(), `column ${place} is not sorted: ${present}`);
    }
  }
}

/** The search leaves the rows and pictures of one task. */
async function searching(page, task) {
  const shown = () =>
    page.$$eval("[data-name]", (items) => items.filter((item) => !item.hidden).map((item) => item.dataset.name));
  const all = (await shown()).length;
  await page.getByRole("searchbox").fill(task);
  const found = await shown();
  check(found.length > 0 && found.every((name) => name.includes(task)), `the search for ${task} shows ${found}`);
  await page.getByRole("searchbox").fill("");
  check((await shown()).length === all, "an empty search does not show everything");
}

/** The arrow keys and the pointer show the parts of a picture in words. */
async function walking(page) {
  const figure = page.locator("figure:visible").first();
  const told = figure.locator(".told");
  await figure.locator(".scroll").focus();
  await page.keyboard.press("ArrowRight");
  const first = await told.textContent();
  await page.keyboard.press("ArrowRight");
  const second = await told.textContent();
  check(first !== "" && second !== "", "the arrow keys tell nothing");
  await page.keyboard.press("Home");
  check((await told.textContent()) === first, "Home does not lead to the first part");
  const part = figure.locator("svg rect:has(> title)").last();
  const title = await part.locator("title").textContent();
  await part.hover({ force: true });
  check((await told.textContent()) === title, `the pointer tells ${await told.textContent()} instead of ${title}`);
  // In the row of a task, the descriptions do not name it; the page does.
  const row = page.locator("figure:visible svg.schedule .row:has(rect > title)").first();
  if ((await row.count()) > 0) {
    await row.locator("rect:has(> title)").first().hover({ force: true });
    const expected = await row.evaluate((row) => [row, row.querySelector("rect")].map((part) => part.querySelector("title").textContent).join(": "));
    const shown = await row.locator("xpath=ancestor::figure").locator(".told").textContent();
    check(shown === expected, `the pointer tells ${shown} instead of ${expected}`);
  }
  const outline = await figure.locator(".scroll").evaluate((area) => {
    area.focus();
    return getComputedStyle(area).outlineStyle;
  });
  check(outline !== "none", "the focus is invisible");
}

/** Nothing serious for readers with disabilities, in both themes. */
async function accessibility(page) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = paper.match(/\d+/g).slice(0, 3).every((part) => Number(part) > 127);
    check(light === (colorScheme === "light"), `the ${colorScheme} theme has the background ${paper}`);
    // The policy of the page refuses scripts of others, so axe is evaluated by the browser's own console.
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() => axe.run(document));
    for (const { id, impact, help, nodes } of violations) {
      if (["serious", "critical"].includes(impact)) faults.push(`${name}, ${colorScheme}: ${id}: ${help}: ${nodes[0].html}`);
    }
  }
  await page.emulateMedia({ colorScheme: null });
}

/** Nothing is wider than a small phone, except what scrolls by itself. */
async function phone(page) {
  await page.setViewportSize({ width: 320, height: 640 });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  check(width <= 320, `the page is ${width} pixels wide on a phone of 320`);
  await page.setViewportSize({ width: 1200, height: 900 });
}

/** What is folded is printed, and what needs a screen is not. */
async function printing(page) {
  const pdf = await page.pdf({ format: "A4" });
  check(pdf.length > 5_000, `the printed page has ${pdf.length} bytes`);
  await page.emulateMedia({ media: "print" });
  check(!(await page.locator("nav").isVisible()), "the navigation is printed");
  await page.emulateMedia({ media: null });
}

/** The page as it is at first. */
async function fresh(page) {
  await page.reload();
  return page;
}

async function look(browser, file) {
  name = file.replace(/\.html$/, "");
  const path = join(folder, file);
  const size = statSync(path).size;
  check(size <= (SIZES[name] ?? SIZE_MAX), `${size} bytes`);
  // A comparison has no object of its own.
  const json = path.replace(/html$/, "json");
  const output = existsSync(json) ? JSON.parse(readFileSync(json)) : null;
  const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  // On a busy machine, the largest pages take their time.
  page.setDefaultTimeout(120_000);
  page.on("console", (message) => check(false, `the console reports: ${message.text()}`));
  page.on("pageerror", (error) => check(false, `the script fails: ${error}`));
  page.on("dialog", (dialog) => check(false, `a dialog opens: ${dialog.message()}`));
  const url = `file://${resolve(path)}`;
  page.on("request", (request) => check(request.url() === url, `a request for ${request.url()}`));
  await page.goto(url);
  await sorting(page);
  if (output !== null) {
    await numbers(await fresh(page), output);
    await searching(page, output.results[0].tasks[0].name);
    if ((await page.locator("figure").count()) > 0) await walking(page);
  }
  await accessibility(page);
  await phone(page);
  await printing(page);
  await page.screenshot({ path: path.replace(/html$/, "png") });
  await page.close();
  // Without the script, the same text is there.
  const plain = await browser.newPage({ javaScriptEnabled: false });
  await plain.goto(url);
  const text = await plain.locator("body").innerText();
  const tasks = output?.results[0].tasks ?? [];
  check(tasks.every((task) => text.includes(task.name)), "without the script, tasks are missing");
  await plain.close();
  console.log(`${name}: ${size} bytes`);
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const pages = readdirSync(folder).filter((file) => file.endsWith(".html"));
if (pages.length === 0) faults.push("there are no pages");
for (const file of pages) await look(browser, file);
await browser.close();
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
