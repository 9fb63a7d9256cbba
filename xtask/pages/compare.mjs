// Compares pictures as two programs draw them: Chromium, and rsvg-convert.
//
// node compare.mjs FOLDER BROWSER: FOLDER has NAME.svg. Text is left out, because fonts differ, and so are pixels that
// pixelmatch takes for the smoothed edge of a shape. What is left may differ along edges, but nowhere in a square of
// SQUARE pixels. As a control, each picture is also compared with one that lacks a filled shape, and must differ.
// Prints a line for each fault, and exits with 1 if there is any.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pixelmatch from "pixelmatch";
import { chromium } from "playwright-core";
import { PNG } from "pngjs";

const [folder, executablePath] = process.argv.slice(2);
const faults = [];

/** The width of the drawings in pixels. */
const WIDTH = 1200;
/** The side of the least square in which all pixels differ if a shape is missing, moved or of another colour. */
const SQUARE = 3;
/** How different two colours must be, as a share of the greatest difference. */
const THRESHOLD = 0.1;

/** The drawing of the second program. */
const second = (svg) =>
  PNG.sync.read(
    execFileSync("rsvg-convert", ["--width", WIDTH, "--keep-aspect-ratio", "--background-color", "white"], { input: svg }),
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
    (/class="[^"]*\b(c\d|run|bin)\b/.test(tag) || /fill="#(?!ffffff)[\da-f]{6}"/i.test(tag)) &&
    Math.max(2 * number(tag, "r"), Math.min(number(tag, "width"), number(tag, "height"))) >= 2 * SQUARE;
  const shapes = [...svg.matchAll(/<(rect|circle)\b[^>]*?(\/>|>[\s\S]*?<\/\1>)/g)];
  const last = shapes.findLast((shape) => shape.index > body && isSeen(shape));
  return last === undefined ? svg : svg.slice(0, last.index) + svg.slice(last.index + last[0].length);
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
  console.log(`${file}: ${(100 * share).toFixed(3)} % of the pixels differ, ${squares} squares; control ${control.squares}`);
  if (squares > 0) {
    faults.push(`${file}: the two programs draw ${squares} squares differently`);
    for (const [kind, png] of Object.entries({ first: drawn, second: other, difference })) {
      writeFileSync(join(folder, `${file}.${kind}.png`), PNG.sync.write(png));
    }
  }
  if (control.squares === 0) faults.push(`${file}: a missing shape was not found`);
}
await browser.close();
for (const fault of faults) console.error(fault);
process.exit(faults.length > 0 ? 1 : 0);
