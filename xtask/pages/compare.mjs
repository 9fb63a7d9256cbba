// Compares pictures as two programs draw them: Chromium, and rsvg-convert.
//
// node compare.mjs FOLDER BROWSER: FOLDER has NAME.svg. Text is left out, because fonts differ, and so are pixels that
// pixelmatch takes for the smoothed edge of a shape. What is left may differ along edges, but nowhere in a square of
// SQUARE pixels. The drawings are so large that the thinnest line has more pixels than that. As controls, each picture is
// also compared with one that lacks a filled shape, and with one that lacks a line of each kind, and must differ.
// Pictures whose names begin with `phone` are also opened at the width of one.
// Prints a line for each fault, and exits with 1 if there is any.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import pixelmatch from "pixelmatch";
import { chromium } from "playwright-core";
import { PNG } from "pngjs";

const [folder, executablePath] = process.argv.slice(2);
const faults = [];

/** The pixels of a unit of a picture: a line of one unit is wider than SQUARE. */
const SCALE = 4;
/** The side of the least square in which all pixels differ if a shape is missing, moved or of another colour. */
const SQUARE = 3;
/** How different two colours must be, as a share of the greatest difference. */
const THRESHOLD = 0.1;
/** The width of a phone, and the least size of letters there, in pixels. */
const PHONE = 360;
const LETTERS = 10;

/** The drawing of the second program. */
const second = (svg) =>
  PNG.sync.read(
    execFileSync("rsvg-convert", ["--zoom", SCALE, "--background-color", "white"], { input: svg, maxBuffer: 2 ** 28 }),
  );

/** The drawing of the browser in the same size. */
async function first(page, svg, { width, height }) {
  const source = `data:image/svg+xml;base64,${Buffer.from(svg).toString("base64")}`;
  await page.setViewportSize({ width, height });
  await page.setContent(`<body style="margin:0"><img style="display:block;width:${width}px;height:${height}px" src="${source}">`);
  await page.locator("img").evaluate((image) => image.decode());
  return PNG.sync.read(await page.screenshot());
}

/** The number of squares in which all pixels differ, and the drawing of the differences. */
function differing(one, other) {
  const { width, height } = one;
  const drawn = new PNG({ width, height });
  const share = pixelmatch(one.data, other.data, drawn.data, width, height, { threshold: THRESHOLD, diffMask: true }) / (width * height);
  const differs = (x, y) => drawn.data[4 * (y * width + x) + 3] > 0 && drawn.data[4 * (y * width + x) + 1] === 0;
  let squares = 0;
  for (let y = 0; y + SQUARE <= height; y++) {
    for (let x = 0; x + SQUARE <= width; x++) {
      let all = true;
      for (let place = 0; all && place < SQUARE * SQUARE; place++) all = differs(x + (place % SQUARE), y + Math.trunc(place / SQUARE));
      if (all) squares += 1;
    }
  }
  return { squares, share, drawn };
}

/** The picture without its last filled shape that is large enough to be seen. */
function lacking(svg) {
  const body = svg.lastIndexOf("</defs>");
  const number = (tag, name) => Number(tag.match(new RegExp(`\\b${name}="([\\d.]+)"`))?.[1] ?? 0);
  const isSeen = ([tag]) =>
    (/class="[^"]*\b([cr]\d|run|bin)\b/.test(tag) || /fill="#(?!ffffff)[\da-f]{6}"/i.test(tag)) &&
    Math.max(2 * number(tag, "r"), Math.min(number(tag, "width"), number(tag, "height"))) >= 2;
  const shapes = [...svg.matchAll(/<(rect|circle)\b[^>]*?(\/>|>[\s\S]*?<\/\1>)/g)];
  const last = shapes.findLast((shape) => shape.index > body && isSeen(shape));
  return last === undefined ? svg : svg.slice(0, last.index) + svg.slice(last.index + last[0].length);
}

/** Pictures without a line: the kinds of lines that the picture has, and the picture without the last one of the kind. */
function lackingLines(svg) {
  const body = svg.lastIndexOf("</defs>");
  const without = (from, length) => svg.slice(0, from) + svg.slice(from + length);
  const last = (pattern) => [...svg.matchAll(pattern)].findLast((found) => found.index > body);
  const controls = [];
  for (const kind of ["mark", "late", "step", "deadline"]) {
    const line = last(new RegExp(`<(path|line) class="${kind}"[^>]*?(/>|>[\\s\\S]*?</\\1>)`, "g"));
    if (line !== undefined) controls.push([kind, without(line.index, line[0].length)]);
  }
  // All lines of the grid are one path.
  const tick = last(/M[\d.]+ [\d.]+V[\d.]+(?=[^">]*"\/>)/g);
  if (tick !== undefined) controls.push(["tick", without(tick.index, tick[0].length)]);
  return controls;
}

/** A narrow picture alone on a phone: all text is inside, large enough to be read, and apart. Returns the faults. */
async function phone(page, path) {
  await page.setViewportSize({ width: PHONE, height: 2 * PHONE });
  await page.goto(`file://${resolve(path)}`);
  const texts = await page.evaluate(() =>
    [...document.querySelectorAll("text")].map((text) => {
      const { left, right, top, bottom } = text.getBoundingClientRect();
      const size = parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
      return { words: text.textContent, left, right, top, bottom, size };
    }),
  );
  const found = texts.length > 0 ? [] : ["there is no text"];
  for (const [place, text] of texts.entries()) {
    if (text.size < LETTERS) found.push(`"${text.words}" has letters of ${text.size.toFixed(1)} pixels`);
    if (text.left < 0 || text.right > PHONE) found.push(`"${text.words}" is cut`);
    for (const other of texts.slice(place + 1)) {
      const over = (from, to) => Math.min(text[to], other[to]) - Math.max(text[from], other[from]);
      if (over("left", "right") > 1 && over("top", "bottom") > 3) found.push(`"${text.words}" is over "${other.words}"`);
    }
  }
  return found;
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage();
const pictures = readdirSync(folder).filter((file) => file.endsWith(".svg"));
if (pictures.length === 0) faults.push("there are no pictures");
for (const file of pictures) {
  const svg = readFileSync(join(folder, file), "utf8").replace(/<text\b[\s\S]*?<\/text>/g, "");
  const other = second(svg);
  const drawn = await first(page, svg, other);
  const { squares, share, drawn: difference } = differing(drawn, other);
  const control = differing(drawn, second(lacking(svg)));
  const lines = lackingLines(svg).map(([kind, lacking]) => [kind, differing(drawn, second(lacking)).squares]);
  const controls = [["shape", control.squares], ...lines].map(([kind, found]) => `${kind} ${found}`).join(", ");
  console.log(`${file}: ${(100 * share).toFixed(3)} % of the pixels differ, ${squares} squares; without ${controls}`);
  for (const [kind, found] of lines) if (found === 0) faults.push(`${file}: a missing line (${kind}) was not found`);
  if (squares > 0) {
    faults.push(`${file}: the two programs draw ${squares} squares differently`);
    for (const [kind, png] of Object.entries({ first: drawn, second: other, difference })) {
      writeFileSync(join(folder, `${file}.${kind}.png`), PNG.sync.write(png));
    }
  }
  if (control.squares === 0) faults.push(`${file}: a missing shape was not found`);
}
// Pictures for a phone are read there; the control is one for a desk.
for (const file of pictures.filter((file) => file.startsWith("phone"))) {
  for (const fault of await phone(page, join(folder, file))) faults.push(`${file} on a phone: ${fault}`);
}
if (pictures.includes("schedule.svg") && (await phone(page, join(folder, "schedule.svg"))).length === 0) {
  faults.push("schedule.svg: small letters on a phone were not found");
}
await browser.close();
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
